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

type server struct{ *serve.Base }

// Listen starts the master side.
func Listen(o transport.ServerOptions) (transport.Server, error) {
	base, err := serve.Listen(o, true)
	if err != nil {
		return nil, err
	}
	s := &server{base}
	s.Accept(s.acceptSubscriber, s.acceptRequests)
	return s, nil
}

// Publish implements transport.Publisher. The body is bin: minions of 3007 and later do not take a map.
func (s *server) Publish(msg []byte, topics []string) error {
	start := appendBin(head(emptyHead), len(msg))
	if !s.Roster.Each(topics, func(m *serve.Member) { m.Box.Put(start, msg) }) {
		return transport.ErrClosed
	}
	return nil
}

// PublishTo implements transport.Publisher.
func (s *server) PublishTo(peer string, msg []byte) bool {
	return s.Roster.One(peer, func(m *serve.Member) { m.Box.Put(appendBin(head(emptyHead), len(msg)), msg) })
}

func (s *server) acceptSubscriber(c net.Conn) (func() error, error) {
	return func() error { return s.readSubscriber(c) }, nil
}

// readSubscriber handles presence frames until the connection ends.
func (s *server) readSubscriber(c net.Conn) error {
	peer := c.RemoteAddr().String()
	sub := s.Roster.Add(peer, s.Outbox(serve.Stream{Conn: c}, c.RemoteAddr()))
	s.Options.Subscriber(peer, true)
	defer s.Options.Subscriber(peer, false)
	defer s.Roster.Remove(sub)
	r := newReader(c, subscriberBuffer, maxPresence, s.Options.ReadTimeout, nil)
	for range maxPresences {
		if err := r.wait(); err != nil {
			return quiet(err)
		}
		// What it takes to judge a frame ends with a goroutine of its own: ten thousand of these wait, for hours, and keep the stack that they
		// once needed.
		done := make(chan error)
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
	if err != nil || s.Options.Presence == nil {
		return err
	}
	id, ok := s.Options.Presence(peer, f.body)
	if !ok {
		s.Options.Log.Debug("Presence not believed", "peer", peer)
		return nil
	}
	s.Roster.Name(sub, id)
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
	ctx, cancel := context.WithTimeout(r.s.Group.Context(), r.s.Options.ReadTimeout)
	defer cancel()
	share, err := r.s.Budget.Grow(ctx, r.share, r.c, total-r.total)
	r.share, r.total = share, total
	return err
}

func (r *requester) serve() error {
	defer func() { r.share.Release() }()
	rd := newReader(r.c, readBuffer, r.s.Options.MaxMessage, r.s.Options.ReadTimeout, r.grant)
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
		case <-r.s.Group.Context().Done():
			share.Release()
			return nil
		}
		if !r.s.Group.Work(r.c, func() error { return r.answer(peer, f, share) }) {
			share.Release()
			return nil
		}
	}
}

// answer handles one request and sends the reply under the request's header.
func (r *requester) answer(peer string, f frame, share *serve.Share) error {
	defer func() { <-r.running }()
	defer share.Release()
	ctx := transport.WithApprove(r.s.Group.Context(), func() {
		r.approved.Store(true)
		share.Release()
	})
	reply := r.s.Options.Handler(ctx, peer, f.body)
	if reply == nil {
		return transport.ErrNoReply
	}
	r.wmu.Lock()
	defer r.wmu.Unlock()
	if err := serve.Write(r.c, r.s.Options.WriteTimeout, head(f.head), reply); err != nil {
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
