package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/internal/serve"
)

const (
	// maxPresence is the largest presence frame in bytes; Salt's is below 1 KiB. maxPresences is how many a subscriber may
	// send, since judging one costs a decryption; Salt's minions send one.
	maxPresence  = 16 << 10
	maxPresences = 100
	// maxRunning is how many requests of one connection are handled at one time; the others wait in the kernel.
	maxRunning = 64
)

type server struct {
	o        transport.ServerOptions
	g        *serve.Group
	pub, req net.Listener
	budget   *serve.Budget
	dropped  atomic.Int64
	roster   *serve.Roster
}

// Listen starts the master side.
func Listen(o transport.ServerOptions) (transport.Server, error) {
	o, err := o.WithDefaults()
	if err != nil {
		return nil, err
	}
	pub, req, err := o.Listeners(true)
	if err != nil {
		return nil, err
	}
	s := &server{o: o, g: serve.NewGroup(o), pub: pub, req: req, budget: serve.NewBudget(o.MaxUnauthenticated),
		roster: serve.NewRoster(o.Isolate)}
	s.g.Accept(pub, s.acceptSubscriber)
	s.g.Accept(req, s.acceptRequests)
	return s, nil
}

// PublishAddr implements transport.Server.
func (s *server) PublishAddr() net.Addr { return s.pub.Addr() }

// RequestAddr implements transport.Server.
func (s *server) RequestAddr() net.Addr { return s.req.Addr() }

// Subscribers implements transport.Publisher.
func (s *server) Subscribers() int { return s.roster.Count() }

// Present implements transport.Publisher.
func (s *server) Present() []string { return s.roster.Present() }

// Reach implements transport.Publisher.
func (s *server) Reach(ids ...string) (named, nameless int) { return s.roster.Reach(ids...) }

// Name implements transport.Publisher.
func (s *server) Name(peer, id string) bool { return s.roster.NamePeer(peer, id) }

// Dropped implements transport.Publisher.
func (s *server) Dropped() int64 { return s.dropped.Load() }

// Shutdown implements transport.Server.
func (s *server) Shutdown(ctx context.Context) error {
	s.roster.Close()
	return s.g.Shutdown(ctx)
}

// Close implements transport.Server.
func (s *server) Close() error {
	s.roster.Close()
	s.g.Close()
	return nil
}

// Publish implements transport.Publisher. The body is bin: minions of 3007 and later do not take a map.
func (s *server) Publish(msg []byte, topics []string) error {
	start := appendBin(head(emptyHead), len(msg))
	if !s.roster.Each(topics, func(m *serve.Member) { m.Box.Put(start, msg) }) {
		return transport.ErrClosed
	}
	return nil
}

// Unnamed implements transport.Publisher.
func (s *server) Unnamed(peer string) bool { return s.roster.Unnamed(peer) }

// PublishTo implements transport.Publisher.
func (s *server) PublishTo(peer string, msg []byte) bool {
	return s.roster.One(peer, func(m *serve.Member) { m.Box.Put(appendBin(head(emptyHead), len(msg)), msg) })
}

func (s *server) acceptSubscriber(c net.Conn) (func() error, error) {
	return func() error { return s.readSubscriber(c) }, nil
}

// readSubscriber handles presence frames until the connection ends.
func (s *server) readSubscriber(c net.Conn) error {
	peer := c.RemoteAddr().String()
	sub := s.roster.Add(peer, serve.NewOutbox(s.g, serve.Stream{Conn: c}, func() {
		s.dropped.Add(1)
		s.o.Log.Warn("Dropped subscriber that does not keep up", "peer", peer)
	}))
	s.o.Subscriber(peer, true)
	defer s.o.Subscriber(peer, false)
	defer s.roster.Remove(sub)
	r := newReader(c, subscriberBuffer, maxPresence, s.o.ReadTimeout, nil)
	done := make(chan error)
	for range maxPresences {
		if err := r.wait(); err != nil {
			return quiet(err)
		}
		// What it takes to judge a frame ends with a goroutine of its own: ten thousand of these wait, for hours, and keep the stack that they
		// once needed.
		go func() { done <- s.readPresence(r, sub, peer) }()
		if err := <-done; err != nil {
			return quiet(err)
		}
	}
	return fmt.Errorf("tcp: more than %d presence frames: %w", maxPresences, transport.ErrProtocol)
}

// readPresence takes one frame of a subscriber.
func (s *server) readPresence(r *reader, sub *serve.Member, peer string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("tcp: panic on presence: %v", p)
		}
	}()
	f, err := r.next()
	if err != nil || s.o.Presence == nil {
		return err
	}
	id, ok := s.o.Presence(f.body)
	if !ok {
		s.o.Log.Debug("Presence not believed", "peer", peer)
		return nil
	}
	s.roster.Name(sub, id)
	return nil
}

// requester is one connection of the request side.
type requester struct {
	s        *server
	c        net.Conn
	approved atomic.Bool
	running  chan struct{}
	share    *serve.Share // of the message being received; only the reading goroutine uses it
	total    int64

	wmu sync.Mutex // guards the write side
}

func (s *server) acceptRequests(c net.Conn) (func() error, error) {
	r := &requester{s: s, c: c}
	return r.serve, nil
}

// grant asks for memory for a large message of a peer that nobody vouched for.
func (r *requester) grant(total int64) error {
	if r.approved.Load() || total <= r.total {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.s.g.Context(), r.s.o.ReadTimeout)
	defer cancel()
	share, err := r.s.budget.Grow(ctx, r.share, r.c, total-r.total)
	r.share, r.total = share, total
	return err
}

func (r *requester) serve() error {
	defer func() { r.share.Release() }()
	rd := newReader(r.c, readBuffer, r.s.o.MaxMessage, r.s.o.ReadTimeout, r.grant)
	r.running = make(chan struct{}, maxRunning)
	peer := r.c.RemoteAddr().String()
	for {
		f, err := rd.next()
		if err != nil {
			return quiet(err)
		}
		share := r.share
		r.share, r.total = nil, 0
		if f.head == nil {
			share.Release()
			return fmt.Errorf("tcp: request without a header: %w", transport.ErrProtocol)
		}
		select {
		case r.running <- struct{}{}:
		case <-r.s.g.Context().Done():
			share.Release()
			return nil
		}
		if !r.s.g.Work(r.c, func() error { return r.answer(peer, f, share) }) {
			share.Release()
			return nil
		}
	}
}

// answer handles one request and sends the reply under the request's header.
func (r *requester) answer(peer string, f frame, share *serve.Share) error {
	defer func() { <-r.running }()
	defer share.Release()
	ctx := transport.WithApprove(r.s.g.Context(), func() {
		r.approved.Store(true)
		share.Release()
	})
	reply := r.s.o.Handler(ctx, peer, f.body)
	if reply == nil {
		return transport.ErrNoReply
	}
	r.wmu.Lock()
	defer r.wmu.Unlock()
	if err := serve.Write(r.c, r.s.o.WriteTimeout, head(f.head), reply); err != nil {
		return fmt.Errorf("tcp: cannot send: %w", err)
	}
	return nil
}

// quiet takes the error out of a peer that just went away.
func quiet(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
