package tcp

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/internal/serve"
)

const (
	// maxPresence is the largest presence frame in bytes; Salt's is below 1 KiB. maxPresences is how many frames a
	// subscriber may send: checking one costs a decryption, and Salt's minions send one.
	maxPresence  = 16 << 10
	maxPresences = 100
	// maxRunning is how many requests of one connection are handled at the same time. Others wait in the kernel.
	maxRunning = 64
)

type server struct{ *serve.Base }

// Listen starts the master side.
func Listen(o transport.ServerOptions) (transport.Server, error) {
	base, err := serve.Listen(o, true)
	if err != nil {
		return nil, err
	}
	s := &server{base}
	s.Accept(s.acceptSubscriber, s.acceptRequests, serve.HandshakePrice)
	return s, nil
}

// Publish implements transport.Publisher. The body is bin, because minions of 3007 and later do not accept a map.
func (s *server) Publish(msg []byte, topics []string) error {
	start := appendBin(frameHead(emptyHead), len(msg))
	if !s.Roster.Each(topics, len(msg), func(m *serve.Member, _ bool) { m.Box.Put(start, msg) }) {
		return transport.ErrClosed
	}
	return nil
}

// PublishTo implements transport.Publisher.
func (s *server) PublishTo(peer string, msg []byte) bool {
	return s.Roster.One(peer, func(m *serve.Member) { m.Box.Put(appendBin(frameHead(emptyHead), len(msg)), msg) })
}

// subscriber is one connection of the publish side.
type subscriber struct {
	s      *server
	peer   string
	c      net.Conn
	r      *reader
	came   *serve.Arrival
	member *serve.Member
	frames int // read so far
}

func (s *server) acceptSubscriber(c net.Conn) (serve.Session, error) {
	return &subscriber{s: s, peer: c.RemoteAddr().String(), c: c, r: newReader(c, subscriberBuffer, maxPresence, s.Options.ReadTimeout, nil),
		came: s.Roster.Expect()}, nil
}

// Begin implements serve.Session.
func (sub *subscriber) Begin() {
	sub.member = sub.s.Join(sub.peer, sub.s.Outbox(serve.Stream{Conn: sub.c}, sub.c.RemoteAddr()), sub.c, sub.came)
	sub.came = nil
}

// Await implements serve.Session.
func (sub *subscriber) Await() error { return sub.r.wait() }

// Sleep implements serve.Sleeper.
func (sub *subscriber) Sleep() bool { return sub.r.r.Buffered() == 0 }

// End implements serve.Session.
func (sub *subscriber) End() { sub.s.Leave(sub.member) }

// Serve reads a presence frame. A frame that cannot be verified is ignored: the connection stays without a name.
func (sub *subscriber) Serve() (answer func() error, err error) {
	f, err := sub.r.next()
	if err != nil {
		return nil, err
	}
	if sub.frames++; sub.frames > maxPresences {
		return nil, fmt.Errorf("tcp: more than %d presence frames: %w", maxPresences, transport.ErrProtocol)
	}
	if sub.s.Options.Presence == nil {
		return nil, nil
	}
	id, ok := sub.s.Options.Presence(sub.peer, f.body)
	if !ok {
		sub.s.Options.Log.Debug("Presence not believed", "peer", sub.peer)
		return nil, nil
	}
	sub.s.Roster.Name(sub.member, id)
	return nil, nil
}

// requester is one connection of the request side.
type requester struct {
	s        *server
	c        net.Conn
	peer     string
	r        *reader
	approved atomic.Bool
	running  chan struct{}
	share    *serve.Share // of the message being received; only the reading goroutine uses it
	total    int64

	wmu sync.Mutex // guards the write side
}

func (s *server) acceptRequests(c net.Conn) (serve.Session, error) {
	r := &requester{s: s, c: c, peer: c.RemoteAddr().String(), running: make(chan struct{}, maxRunning)}
	r.r = newReader(c, readBuffer, s.Options.MaxMessage, s.Options.ReadTimeout, r.grant)
	return r, nil
}

// Begin implements serve.Session.
func (r *requester) Begin() {}

// Await implements serve.Session.
func (r *requester) Await() error {
	if r.r.r == nil {
		r.r.r = buffers.Get().(*bufio.Reader)
		r.r.r.Reset(deadlines{r.r})
	}
	return r.r.wait()
}

// Sleep implements serve.Sleeper. The connection has no buffer until Await.
func (r *requester) Sleep() bool {
	if r.r.r == nil {
		return true
	}
	if r.r.r.Buffered() > 0 {
		return false
	}
	r.r.r.Reset(nil)
	buffers.Put(r.r.r)
	r.r.r = nil
	return true
}

// buffers are those of connections without a request.
var buffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readBuffer) }}

// End implements serve.Session.
func (r *requester) End() { r.share.Release() }

// grant reserves memory for a message of an unapproved peer.
func (r *requester) grant(total int64) error {
	if r.approved.Load() || total <= r.total {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.s.Group.Context(), r.s.Options.ReadTimeout)
	defer cancel()
	r.s.Group.Bytes(r.c, total-r.total)
	share, err := r.s.Budget.Grow(ctx, r.share, r.c, total-r.total)
	r.share, r.total = share, total
	return err
}

// Serve reads a request. It is answered while the next requests arrive.
func (r *requester) Serve() (answer func() error, err error) {
	f, err := r.r.next()
	if err != nil {
		return nil, err
	}
	share := r.share
	r.share, r.total = nil, 0
	if f.head == nil {
		share.Release()
		return nil, fmt.Errorf("tcp: request without a header: %w", transport.ErrProtocol)
	}
	select {
	case r.running <- struct{}{}:
	case <-r.s.Group.Context().Done():
		share.Release()
		return nil, net.ErrClosed
	}
	if !r.s.Group.Work(r.c, func() error { return r.answerRequest(f, share) }) {
		share.Release()
		return nil, net.ErrClosed
	}
	return nil, nil
}

// answerRequest handles one request and sends the reply with the request's header.
func (r *requester) answerRequest(f frame, share *serve.Share) error {
	defer func() { <-r.running }()
	defer share.Release()
	ctx := r.s.RequestContext(r.c, func() {
		r.approved.Store(true)
		r.s.Prove(r.c)
		share.Release()
	})
	reply := r.s.Options.Handler(ctx, r.peer, f.body)
	if reply == nil {
		return transport.ErrNoReply
	}
	r.wmu.Lock()
	defer r.wmu.Unlock()
	if err := serve.Write(r.c, r.s.Options.WriteTimeout, frameHead(f.head), reply); err != nil {
		return fmt.Errorf("tcp: cannot send: %w", err)
	}
	return nil
}
