package ws

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/internal/serve"
)

// lingering is how long a request connection may stay without a request: Python's clients make a new one for every request
// and do not close the old ones.
const lingering = 30 * time.Second

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

// Publish implements transport.Publisher. Messages are packed twice; a Python minion gets nothing that it would choke on.
func (s *server) Publish(msg []byte, topics []string) error {
	b := packed(msg)
	if !s.roster.Each(topics, func(m *serve.Member) { m.Box.Put(b, nil) }) {
		return transport.ErrClosed
	}
	return nil
}

// Unnamed implements transport.Publisher.
func (s *server) Unnamed(peer string) bool { return s.roster.Unnamed(peer) }

// PublishTo implements transport.Publisher.
func (s *server) PublishTo(peer string, msg []byte) bool {
	return s.roster.One(peer, func(m *serve.Member) { m.Box.Put(packed(msg), nil) })
}

// packed is a message as bin.
func packed(msg []byte) []byte {
	b := binary.BigEndian.AppendUint32(append(make([]byte, 0, 5+len(msg)), 0xc6), uint32(len(msg)))
	return append(b, msg...)
}

// sink sends publishes.
type sink struct {
	c *conn
	s *server
}

// Send implements serve.Sink: every part is a message.
func (k sink) Send(_ time.Duration, parts ...[]byte) error {
	for _, p := range parts {
		if len(p) == 0 {
			continue
		}
		err := k.c.send(p)
		if errors.Is(err, transport.ErrTooBig) {
			k.s.o.Log.Warn("Publish kept from a subscriber", "peer", k.c.stream.RemoteAddr().String(), "err", err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Close implements serve.Sink.
func (k sink) Close() error { return k.c.stream.Close() }

func (s *server) acceptSubscriber(c net.Conn) (func() error, error) {
	k, err := upgrade(c, s.o.ReadTimeout, s.o.WriteTimeout)
	if err != nil {
		return nil, err
	}
	return func() error { return s.readSubscriber(k) }, nil
}

// readSubscriber waits for the end of a connection, answering pings. Subscribers have nothing to say.
func (s *server) readSubscriber(c *conn) error {
	defer c.CloseNow()
	peer := c.stream.RemoteAddr().String()
	sub := s.roster.Add(peer, serve.NewOutbox(s.g, sink{c, s}, func() {
		s.dropped.Add(1)
		s.o.Log.Warn("Dropped subscriber that does not keep up", "peer", peer)
	}))
	s.o.Subscriber(peer, true)
	defer s.o.Subscriber(peer, false)
	defer s.roster.Remove(sub)
	_, _, err := c.Reader(context.Background())
	if err == nil {
		return fmt.Errorf("ws: message on the publish channel: %w", transport.ErrProtocol)
	}
	return quiet(err)
}

// requester is one connection of the request side.
type requester struct {
	s        *server
	c        *conn
	approved atomic.Bool
	mu       sync.Mutex   // guards share: Approve may be called from any goroutine
	share    *serve.Share // what the message being received or handled holds of the budget
	total    int64
}

func (s *server) acceptRequests(c net.Conn) (func() error, error) {
	k, err := upgrade(c, s.o.ReadTimeout, s.o.WriteTimeout)
	if err != nil {
		return nil, err
	}
	k.stream.idleTimeout = lingering
	r := &requester{s: s, c: k}
	return r.serve, nil
}

// grant asks for memory for a large message of a peer that nobody vouched for.
func (r *requester) grant(total int64) error {
	if r.approved.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.s.g.Context(), r.s.o.ReadTimeout)
	defer cancel()
	r.mu.Lock()
	share, more := r.share, total-r.total
	r.mu.Unlock()
	share, err := r.s.budget.Grow(ctx, share, r.c.stream.Conn, more)
	r.mu.Lock()
	r.share, r.total = share, total
	r.mu.Unlock()
	return err
}

func (r *requester) approve() {
	if r.approved.CompareAndSwap(false, true) {
		r.release()
	}
}

func (r *requester) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.share.Release()
	r.share, r.total = nil, 0
}

func (r *requester) serve() error {
	defer r.c.CloseNow()
	defer r.release()
	ctx := transport.WithApprove(r.s.g.Context(), r.approve)
	peer := r.c.stream.RemoteAddr().String()
	for {
		body, err := r.c.receive(r.s.o.MaxMessage, r.grant)
		if err != nil {
			return quiet(err)
		}
		if r.s.g.Draining() || !r.s.g.Begin() {
			return nil
		}
		err = r.answer(ctx, peer, body)
		r.s.g.End()
		if err != nil {
			return err
		}
		r.release()
	}
}

// answer handles one request and sends the reply.
func (r *requester) answer(ctx context.Context, peer string, body []byte) error {
	reply := r.s.o.Handler(ctx, peer, body)
	if reply == nil {
		return transport.ErrNoReply
	}
	return r.c.send(reply)
}

// quiet takes the error out of a peer that just went away.
func quiet(err error) error {
	var ce websocket.CloseError
	if errors.As(err, &ce) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
