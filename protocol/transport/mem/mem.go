// Package mem connects minions and masters inside one process, without sockets, for tests and for programs that
// contain both. It behaves like the network transports: it reconnects, has limits, and disconnects slow subscribers.
//
//	client ──▶ Network (address → server) ──▶ server ──▶ session (queue, limits) ──▶ Subscriber
package mem

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/internal/redial"
)

// A Network is a set of addresses that servers listen on and clients dial. Its zero value is empty and ready for
// use.
type Network struct {
	mu       sync.Mutex         // guards the fields below
	servers  map[string]*server // by address, of either channel
	lastPort int
}

// shared is the network of Listen and New.
var shared Network

// Listen starts a master on the network that the whole process shares.
func Listen(o transport.ServerOptions) (transport.Server, error) { return shared.Listen(o) }

// New returns a dialer for the network that the whole process shares.
func New() transport.Dialer { return shared.Dialer() }

// errRefused is the error of dialling an address on which no server listens.
var errRefused = errors.New("mem: connection refused")

// addr is an address of a Network, as a net.Addr.
type addr string

func (addr) Network() string  { return "mem" }
func (a addr) String() string { return string(a) }

// server is one master on a Network, with both channels.
type server struct {
	n        *Network
	o        transport.ServerOptions
	pub, req addr
	ctx      context.Context
	cancel   context.CancelFunc
	wg       sync.WaitGroup // requests in progress
	ends     sync.WaitGroup // subscriptions whose end is awaited
	dropped  atomic.Int64

	mu       sync.Mutex // guards the fields below
	closed   bool       // no new requests
	sessions map[*session]struct{}
}

// Listen starts a master. PublishAddr and RequestAddr are names of the form "host:port"; port 0 or an empty address
// means a free port. Listeners, Wrap, KeepAlive and the deadlines are ignored.
func (n *Network) Listen(o transport.ServerOptions) (transport.Server, error) {
	o, err := o.WithDefaults()
	if err != nil {
		return nil, err
	}
	s := &server{n: n, o: o, sessions: make(map[*session]struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.pub, err = n.bindAddr(o.PublishAddr, s); err != nil {
		return nil, err
	}
	if s.req, err = n.bindAddr(o.RequestAddr, s); err != nil {
		delete(n.servers, string(s.pub))
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// bindAddr assigns an address to a server. The caller holds mu.
func (n *Network) bindAddr(a string, s *server) (addr, error) {
	host, port := "mem", "0"
	if a != "" {
		var err error
		if host, port, err = net.SplitHostPort(a); err != nil {
			return "", fmt.Errorf("mem: bad address %q: %w", a, err)
		}
	}
	if port == "0" {
		n.lastPort++
		port = strconv.Itoa(n.lastPort)
	}
	a = net.JoinHostPort(host, port)
	if n.servers == nil {
		n.servers = make(map[string]*server)
	}
	if n.servers[a] != nil {
		return "", fmt.Errorf("mem: address %q is in use", a)
	}
	n.servers[a] = s
	return addr(a), nil
}

// lookupServer returns the server at an address, or nil.
func (n *Network) lookupServer(a string) *server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.servers[a]
}

func (s *server) PublishAddr() net.Addr { return s.pub }
func (s *server) RequestAddr() net.Addr { return s.req }
func (s *server) Dropped() int64        { return s.dropped.Load() }

func (s *server) Subscribers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

func (s *server) Named() int { return len(s.Present()) }

func (s *server) Present() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := []string{}
	for x := range s.sessions {
		if x.id != "" {
			ids = append(ids, x.id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Reach implements transport.Publisher.
func (s *server) Reach(ids ...string) (named, nameless int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make(map[string]struct{})
	for x := range s.sessions {
		if names[x.id] = struct{}{}; x.id == "" {
			nameless++
		}
	}
	for _, id := range ids {
		if _, ok := names[id]; ok {
			named++
		}
	}
	return named, nameless
}

// Name implements transport.Publisher. Subscribers of this transport have no remote addresses to identify them.
func (s *server) Name(string, string) bool { return false }

// Unnamed implements transport.Publisher.
func (s *server) Unnamed(string) bool { return false }

// MinionAt implements transport.Publisher.
func (s *server) MinionAt(string) bool { return false }

// PublishTo implements transport.Publisher.
func (s *server) PublishTo(string, []byte) bool { return false }

func (s *server) Publish(msg []byte, topics []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return transport.ErrClosed
	}
	strict := s.o.Isolate != nil && s.o.Isolate()
	for x := range s.sessions {
		if x.id == "" && strict || topics != nil && x.id != "" && !slices.Contains(topics, x.id) {
			continue
		}
		if !x.putMessage(msg, s.o.PubHWM, s.o.PubBytes) {
			s.dropped.Add(1)
			delete(s.sessions, x)
		}
	}
	return nil
}

// unbind removes the server from the network.
func (s *server) unbind() {
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	for _, a := range []addr{s.pub, s.req} {
		if s.n.servers[string(a)] == s {
			delete(s.n.servers, string(a))
		}
	}
}

func (s *server) stop() {
	s.unbind()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

func (s *server) Shutdown(ctx context.Context) error {
	s.stop()
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("mem: shutdown not finished: %w", ctx.Err())
	}
	s.Close()
	<-done
	return err
}

func (s *server) Close() error {
	s.stop()
	s.cancel()
	s.mu.Lock()
	for x := range s.sessions {
		x.end()
		delete(s.sessions, x)
	}
	s.mu.Unlock()
	s.wg.Wait()
	s.ends.Wait()
	return nil
}

// handleRequest answers one request in a new goroutine. The body is copied: the caller may change its slice
// meanwhile. left reports whether the peer no longer waits.
func (s *server) handleRequest(body []byte, reply chan<- []byte, left func() bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errRefused
	}
	if int64(len(body)) > s.o.MaxMessage {
		return transport.ErrNoReply
	}
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		defer close(reply)
		defer func() {
			if p := recover(); p != nil {
				s.o.Log.Error("Recovered from panic in handler", "err", p, "stack", string(debug.Stack()))
			}
		}()
		if b := s.o.Handler(transport.WithLeft(s.ctx, left), "mem", slices.Clone(body)); b != nil {
			reply <- b
		}
	}()
	return nil
}

type dialer struct{ n *Network }

// Dialer returns the client side of the network.
func (n *Network) Dialer() transport.Dialer { return dialer{n} }

type requester struct {
	n      *Network
	o      transport.ClientOptions
	ctx    context.Context
	cancel context.CancelFunc
}

// Requester implements transport.Dialer.
func (d dialer) Requester(o transport.ClientOptions) (transport.Requester, error) {
	if err := transport.CheckAddr(o.RequestAddr); err != nil {
		return nil, err
	}
	r := &requester{n: d.n, o: o.WithDefaults()}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r, nil
}

// Request implements transport.Requester.
func (r *requester) Request(ctx context.Context, body []byte) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	b, err := r.tryRequest(ctx, body)
	switch {
	case err == nil:
		return b, nil
	case r.ctx.Err() != nil:
		return nil, transport.ErrClosed
	}
	return nil, fmt.Errorf("mem: no reply from %s: %w", r.o.RequestAddr, err)
}

// tryRequest sends the request to the server that listens now, and waits for its reply.
func (r *requester) tryRequest(ctx context.Context, body []byte) ([]byte, error) {
	reply := make(chan []byte, 1)
	s, err := redial.Retry(ctx, r.o, func(context.Context) (*server, error) {
		s := r.n.lookupServer(r.o.RequestAddr)
		if s == nil {
			return nil, errRefused
		}
		switch err := s.handleRequest(body, reply, func() bool { return ctx.Err() != nil || r.ctx.Err() != nil }); {
		case errors.Is(err, errRefused):
			return nil, err
		case err != nil:
			close(reply) // the server has seen the request, so it must not be sent again
		}
		return s, nil
	})
	if err != nil {
		return nil, err
	}
	select {
	case b, ok := <-reply:
		if !ok {
			return nil, transport.ErrNoReply
		}
		if int64(len(b)) > r.o.MaxMessage {
			return nil, fmt.Errorf("mem: reply of %d bytes exceeds %d: %w", len(b), r.o.MaxMessage, transport.ErrTooBig)
		}
		return b, nil
	case <-s.ctx.Done():
		return nil, transport.ErrNoReply
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close implements transport.Requester.
func (r *requester) Close() error {
	r.cancel()
	return nil
}

// Subscribe implements transport.Dialer. The subscriber's name is ID, or the proven id if both sides have a Presence
// function.
func (d dialer) Subscribe(ctx context.Context, o transport.ClientOptions) (transport.Subscriber, error) {
	if err := transport.CheckAddr(o.PublishAddr); err != nil {
		return nil, err
	}
	o = o.WithDefaults()
	return redial.Subscribe(ctx, o, o.PublishAddr, func(context.Context) (redial.Session, error) {
		s := d.n.lookupServer(o.PublishAddr)
		if s == nil {
			return nil, errRefused
		}
		x := &session{s: s, id: o.ID, max: o.MaxMessage, ready: make(chan struct{}, 1), done: make(chan struct{})}
		if o.Presence != nil && s.o.Presence != nil {
			load, err := o.Presence()
			if err != nil {
				return nil, fmt.Errorf("mem: cannot announce presence: %w", err)
			}
			if id, ok := s.o.Presence("mem", load); ok {
				x.id = id
			} else {
				x.id = ""
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			return nil, errRefused
		}
		s.sessions[x] = struct{}{}
		s.ends.Go(func() {
			s.o.Subscriber("mem", true)
			<-x.done
			s.o.Subscriber("mem", false)
		})
		return client{x}, nil
	}), nil
}

// A session is one subscription.
type session struct {
	s     *server
	id    string
	max   int64
	ready chan struct{} // holds a value if the queue may hold a message
	done  chan struct{} // closed by end

	mu     sync.Mutex // guards the fields below
	queue  [][]byte
	bytes  int64
	closed bool
}

// putMessage queues a message. If a limit is exceeded the session ends, and it returns false.
func (x *session) putMessage(msg []byte, hwm int, limit int64) bool {
	x.mu.Lock()
	full := len(x.queue) > 0 && (len(x.queue) >= hwm || x.bytes+int64(len(msg)) > limit)
	if !full {
		x.queue = append(x.queue, msg)
		x.bytes += int64(len(msg))
	}
	x.mu.Unlock()
	if full {
		x.end()
		return false
	}
	select {
	case x.ready <- struct{}{}:
	default:
	}
	return true
}

// Receive implements redial.Session.
func (x *session) Receive() ([]byte, error) {
	for {
		x.mu.Lock()
		if len(x.queue) > 0 && !x.closed {
			msg := x.queue[0]
			x.queue[0] = nil
			x.queue = x.queue[1:]
			x.bytes -= int64(len(msg))
			x.mu.Unlock()
			if int64(len(msg)) > x.max {
				return nil, fmt.Errorf("mem: message of %d bytes exceeds %d: %w", len(msg), x.max, transport.ErrTooBig)
			}
			return slices.Clone(msg), nil
		}
		x.mu.Unlock()
		select {
		case <-x.ready:
		case <-x.done:
			return nil, errors.New("mem: connection closed by server")
		}
	}
}

// RemoteAddr implements redial.Session.
func (x *session) RemoteAddr() net.Addr { return x.s.pub }

func (x *session) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.closed {
		x.closed = true
		x.queue = nil
		close(x.done)
	}
}

// client is the minion's end of a session.
type client struct{ *session }

// Close implements redial.Session.
func (c client) Close() error {
	c.end()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	delete(c.s.sessions, c.session)
	return nil
}
