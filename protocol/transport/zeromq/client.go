package zeromq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/internal/redial"
)

const (
	// maxConns is how many requests of one requester may be in progress. Others wait.
	maxConns = 128
	// maxIdle is how many idle connections are kept.
	maxIdle = 2
)

type dialer struct{}

// New returns the client side.
func New() transport.Dialer { return dialer{} }

// Subscribe implements transport.Dialer.
func (dialer) Subscribe(ctx context.Context, o transport.ClientOptions) (transport.Subscriber, error) {
	o = o.WithDefaults()
	if err := transport.CheckAddr(o.PublishAddr); err != nil {
		return nil, err
	}
	if o.Filter && o.ID == "" {
		return nil, fmt.Errorf("zeromq: zmq_filtering needs an id")
	}
	return redial.Subscribe(ctx, o, o.PublishAddr, func(ctx context.Context) (redial.Session, error) {
		s := &session{}
		var greeting []byte
		if o.Filter {
			s.topic = topic(o.ID)
			greeting = appendFrame(greeting, 0, []byte("\x01"+broadcast))
			greeting = appendFrame(greeting, 0, []byte("\x01"+s.topic))
		} else {
			greeting = appendFrame(greeting, 0, []byte{1})
		}
		c, err := dialZMTP(ctx, o, o.PublishAddr, o.PublishSource, zmq4.Sub, greeting)
		s.conn = c
		return s, err
	}), nil
}

// dialZMTP connects and performs the handshake. greeting is sent after it.
func dialZMTP(ctx context.Context, o transport.ClientOptions, addr, source string, typ zmq4.SocketType, greeting []byte) (*conn, error) {
	c, err := redial.Dial(ctx, o, addr, source, false)
	if err != nil {
		return nil, err
	}
	stop := redial.Guard(ctx, c)
	defer stop()
	var k *conn
	if err = c.SetDeadline(time.Now().Add(o.HandshakeTimeout)); err == nil {
		k, err = newConn(c, typ, false, o.MaxMessage+frameSlack, o.ReadTimeout, o.WriteTimeout, nil)
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err == nil && len(greeting) > 0 {
		err = k.write(greeting)
	}
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("zeromq: cannot use connection to %s: %w", addr, err)
	}
	return k, nil
}

// session is a SUB connection.
type session struct {
	*conn
	topic   string // of this minion with filtering, else ""
	answers atomic.Uint64
}

var _ redial.Prober = (*session)(nil)

// ping is a PING with a time to live of 0 and no context: flags, size, name, two bytes.
var ping = []byte{flagCommand, 7, 4, 'P', 'I', 'N', 'G', 0, 0}

// Probe implements redial.Prober. libzmq answers since version 4.2, even with heartbeats off.
func (s *session) Probe() error { return s.write(ping) }

// Answers implements redial.Prober.
func (s *session) Answers() uint64 { return s.answers.Load() }

// Receive implements redial.Session.
func (s *session) Receive() ([]byte, error) {
	for {
		frames, cmd, err := s.recv()
		if err != nil {
			return nil, err
		}
		switch cmd {
		case "":
		case "PING":
			answer, err := s.countPong(frames)
			if err == nil {
				err = s.write(answer)
			}
			if err != nil {
				return nil, err
			}
			continue
		case "PONG":
			s.answers.Add(1)
			return nil, nil
		default:
			continue
		}
		switch {
		case len(frames) == 1 && s.topic == "":
			return frames[0], nil
		case len(frames) == 2 && (s.topic == "" || sameTopic(frames[0], s.topic) || sameTopic(frames[0], broadcast)):
			return frames[1], nil
		}
		// The message is not for this minion: a subscription is a prefix, and the topic may be longer.
	}
}

// requestPool is the REQ side: connections with one request each.
type requestPool struct {
	o      transport.ClientOptions
	ctx    context.Context
	cancel context.CancelFunc
	slots  chan struct{}
	wg     sync.WaitGroup

	mu   sync.Mutex // guards the fields below
	idle []*reqConn
	all  map[*reqConn]struct{} // nil once closed
}

// Requester implements transport.Dialer.
func (dialer) Requester(o transport.ClientOptions) (transport.Requester, error) {
	o = o.WithDefaults()
	if err := transport.CheckAddr(o.RequestAddr); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &requestPool{o: o, ctx: ctx, cancel: cancel, slots: make(chan struct{}, maxConns),
		all: make(map[*reqConn]struct{})}, nil
}

// reqConn is one REQ connection. A goroutine reads it all the time, so that the end of the server is noticed while
// the connection is idle.
type reqConn struct {
	p       *requestPool
	c       *conn
	replies chan reply
	timer   *time.Timer // closes it after KeepIdle

	mu     sync.Mutex // guards busy
	busy   bool
	closed bool
}

type reply struct {
	body []byte
	err  error
}

// Request implements transport.Requester.
func (p *requestPool) Request(ctx context.Context, body []byte) ([]byte, error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, p.wrapError(ctx.Err())
	case <-p.ctx.Done():
		return nil, transport.ErrClosed
	}
	c, err := p.takeConn(ctx)
	if err != nil {
		return nil, p.wrapError(err)
	}
	b, err := c.exchange(ctx, body)
	if err != nil {
		return nil, p.wrapError(err)
	}
	return b, nil
}

// wrapError adds the server's address to an error, or returns ErrClosed if the pool was closed.
func (p *requestPool) wrapError(err error) error {
	if p.ctx.Err() != nil {
		return transport.ErrClosed
	}
	return fmt.Errorf("zeromq: no reply from %s: %w", p.o.RequestAddr, err)
}

// takeConn returns an idle connection. If there is none it connects, retrying until ctx ends.
func (p *requestPool) takeConn(ctx context.Context) (*reqConn, error) {
	p.mu.Lock()
	for len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if c.claim() {
			p.mu.Unlock()
			return c, nil
		}
	}
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	k, err := redial.Retry(ctx, p.o, func(ctx context.Context) (*conn, error) {
		return dialZMTP(ctx, p.o, p.o.RequestAddr, p.o.RequestSource, zmq4.Req, nil)
	})
	if err != nil {
		return nil, err
	}
	c := &reqConn{p: p, c: k, replies: make(chan reply, 1), busy: true}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		k.Close()
		return nil, transport.ErrClosed
	}
	p.all[c] = struct{}{}
	p.wg.Add(1)
	go c.readReplies()
	return c, nil
}

// putIdle keeps a connection for the next request after its reply arrived.
func (p *requestPool) putIdle(c *reqConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.all == nil || len(p.idle) >= maxIdle || c.closed {
		c.c.Close()
		return
	}
	c.busy = false
	c.timer = time.AfterFunc(p.o.KeepIdle, func() { c.c.Close() })
	p.idle = append(p.idle, c)
}

// removeConn removes a connection that ended.
func (p *requestPool) removeConn(c *reqConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, c)
	for i, x := range p.idle {
		if x == c {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
			return
		}
	}
}

// Close implements transport.Requester.
func (p *requestPool) Close() error {
	p.mu.Lock()
	p.cancel()
	for c := range p.all {
		c.c.Close()
	}
	p.all = nil
	p.mu.Unlock()
	p.wg.Wait()
	return nil
}

// claim marks an idle connection as busy. It returns false if the connection ended meanwhile.
func (c *reqConn) claim() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || peerClosed(c.c.Conn) || !c.timer.Stop() {
		return false
	}
	c.busy = true
	return true
}

// readReplies passes each reply to the request that waits. A message without a waiting request is a late or invented
// reply and ends the connection.
func (c *reqConn) readReplies() {
	defer c.p.wg.Done()
	defer c.p.o.OnWork()
	var err error
	for err == nil {
		var body []byte
		if body, err = c.receive(); err != nil || body == nil {
			continue
		}
		c.mu.Lock()
		if !c.busy || len(c.replies) > 0 {
			err = fmt.Errorf("zeromq: reply without a request: %w", transport.ErrProtocol)
		} else {
			c.replies <- reply{body: body}
		}
		c.mu.Unlock()
	}
	c.c.Close()
	c.p.removeConn(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.timer != nil {
		c.timer.Stop()
	}
	if !errors.Is(err, transport.ErrTooBig) && !errors.Is(err, transport.ErrProtocol) {
		err = fmt.Errorf("%w: %w", transport.ErrNoReply, err)
	}
	select {
	case c.replies <- reply{err: err}:
	default: // an earlier reply counts
	}
}

// receive returns the next reply, or nil for a command.
func (c *reqConn) receive() ([]byte, error) {
	frames, cmd, err := c.c.recv()
	if err != nil {
		return nil, err
	}
	if cmd == "PING" {
		answer, err := c.c.countPong(frames)
		if err != nil {
			return nil, err
		}
		return nil, c.c.write(answer)
	}
	if cmd != "" {
		return nil, nil
	}
	if len(frames) != 2 || len(frames[0]) != 0 {
		return nil, fmt.Errorf("zeromq: reply is not a delimiter and one frame: %w", transport.ErrProtocol)
	}
	return frames[1], nil
}

// quickWrite is the largest request in bytes that always fits into the empty buffer of a socket, so that writing it
// does not wait.
const quickWrite = 16 << 10

// exchange sends body and waits for the reply. If ctx ends first the connection is closed, so that a late reply
// cannot be taken for that of the next request.
func (c *reqConn) exchange(ctx context.Context, body []byte) ([]byte, error) {
	if err := c.sendRequest(ctx, body); err != nil {
		c.c.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", transport.ErrNoReply, err)
	}
	select {
	case r := <-c.replies:
		return c.finish(r)
	case <-ctx.Done():
	case <-c.p.ctx.Done():
	}
	select {
	case r := <-c.replies: // the reply arrived at the same moment
		return c.finish(r)
	default:
	}
	c.c.Close()
	if ctx.Err() == nil {
		return nil, transport.ErrClosed
	}
	return nil, ctx.Err()
}

// sendRequest writes a request.
func (c *reqConn) sendRequest(ctx context.Context, body []byte) error {
	if len(body) > quickWrite {
		defer redial.Guard(ctx, c.c)()
	}
	return c.c.write(appendHeader([]byte{flagMore, 0}, 0, len(body)), body)
}

// finish ends an exchange with its reply.
func (c *reqConn) finish(r reply) ([]byte, error) {
	if r.err != nil {
		return nil, r.err
	}
	c.p.putIdle(c)
	return r.body, nil
}
