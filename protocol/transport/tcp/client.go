package tcp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/internal/redial"
	"github.com/brine-salt/brine/protocol/transport/internal/serve"
)

// lastWords is how long to wait for the reason when the peer has closed the connection.
const lastWords = time.Second

type dialer struct{}

// New returns the client side.
func New() transport.Dialer { return dialer{} }

// Subscribe implements transport.Dialer.
func (dialer) Subscribe(ctx context.Context, o transport.ClientOptions) (transport.Subscriber, error) {
	o = o.WithDefaults()
	if err := transport.CheckAddr(o.PublishAddr); err != nil {
		return nil, err
	}
	return redial.Subscribe(ctx, o, o.PublishAddr, func(ctx context.Context) (redial.Session, error) {
		var hello []byte
		if o.Presence != nil {
			load, err := o.Presence()
			if err != nil {
				return nil, fmt.Errorf("tcp: cannot announce presence: %w", err)
			}
			hello = append(frameHead(emptyHead), load...)
		}
		c, err := redial.Dial(ctx, o, o.PublishAddr, o.PublishSource, true)
		if err != nil {
			return nil, err
		}
		if len(hello) > 0 {
			if err := serve.Write(c, o.WriteTimeout, hello); err != nil {
				c.Close()
				return nil, fmt.Errorf("tcp: cannot announce presence: %w", err)
			}
		}
		return &session{Conn: c, r: newReader(c, readBuffer, o.MaxMessage+16, o.ReadTimeout, nil)}, nil
	}), nil
}

// session is a publish connection.
type session struct {
	net.Conn
	r *reader
}

// Receive implements redial.Session.
func (s *session) Receive() ([]byte, error) {
	f, err := s.r.next()
	if err != nil {
		return nil, err
	}
	if isMap(f.body) { // 3006
		return f.body, nil
	}
	if b, ok := content(f.body); ok {
		return b, nil
	}
	return nil, fmt.Errorf("tcp: publish is neither a map nor bytes: %w", transport.ErrProtocol)
}

// requests is the client of the request channel. As in Salt, one connection carries many requests, and message ids
// assign the replies.
type requests struct {
	o       transport.ClientOptions
	ctx     context.Context
	cancel  context.CancelFunc
	dialing chan struct{} // a lock that a context can stop waiting for
	wg      sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	present *link      // takes new requests; nil if there is no connection
	all     map[*link]struct{}
	closed  bool
}

// link is one connection.
type link struct {
	p       *requests
	c       net.Conn
	writing chan struct{} // the lock of the write side
	frames  atomic.Int64  // received so far

	mu      sync.Mutex // guards the fields below
	waiting map[string]chan reply
	err     error       // why the connection ended
	retired bool        // closed after the last reply
	idle    *time.Timer // runs while no request waits
}

type reply struct {
	body []byte
	err  error
}

// Requester implements transport.Dialer.
func (dialer) Requester(o transport.ClientOptions) (transport.Requester, error) {
	o = o.WithDefaults()
	if err := transport.CheckAddr(o.RequestAddr); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &requests{o: o, ctx: ctx, cancel: cancel, dialing: make(chan struct{}, 1), all: make(map[*link]struct{})}, nil
}

// Request implements transport.Requester.
func (p *requests) Request(ctx context.Context, body []byte) ([]byte, error) {
	b, err := p.tryRequest(ctx, body)
	switch {
	case err == nil:
		return b, nil
	case p.ctx.Err() != nil:
		return nil, transport.ErrClosed
	}
	return nil, fmt.Errorf("tcp: no reply from %s: %w", p.o.RequestAddr, err)
}

// tryRequest sends one request over the current connection and waits for its reply.
func (p *requests) tryRequest(ctx context.Context, body []byte) ([]byte, error) {
	id := newMid()
	var l *link
	var answer chan reply
	for answer == nil {
		var err error
		if l, err = p.currentLink(ctx); err != nil {
			return nil, err
		}
		answer = l.register(id)
	}
	seen := l.frames.Load()
	defer l.unregister(id)
	if !p.startTask(func() { l.send(frameHead(midHead(id)), body) }) {
		return nil, transport.ErrClosed
	}
	select {
	case r := <-answer:
		return r.body, r.err
	case <-p.ctx.Done():
		return nil, transport.ErrClosed
	case <-ctx.Done():
		// Nothing was received since, so the path may be dead. Use a new connection for later requests.
		if l.frames.Load() == seen {
			l.retire()
		}
		return nil, ctx.Err()
	}
}

// startTask runs f in a goroutine that Close waits for.
func (p *requests) startTask(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.wg.Go(f)
	return true
}

// currentLink returns the current connection. If there is none it connects, retrying until ctx ends.
func (p *requests) currentLink(ctx context.Context) (*link, error) {
	select {
	case p.dialing <- struct{}{}:
		defer func() { <-p.dialing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.ctx.Done():
		return nil, transport.ErrClosed
	}
	p.mu.Lock()
	l := p.present
	p.mu.Unlock()
	if l != nil {
		return l, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	c, err := redial.Retry(ctx, p.o, func(ctx context.Context) (net.Conn, error) {
		return redial.Dial(ctx, p.o, p.o.RequestAddr, p.o.RequestSource, true)
	})
	if err != nil {
		return nil, err
	}
	l = &link{p: p, c: c, writing: make(chan struct{}, 1), waiting: make(map[string]chan reply)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
		return nil, transport.ErrClosed
	}
	p.present = l
	p.all[l] = struct{}{}
	p.wg.Go(l.readReplies)
	return l, nil
}

// retireLink makes l accept no more requests; with forget it is also removed.
func (p *requests) retireLink(l *link, forget bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.present == l {
		p.present = nil
	}
	if forget {
		delete(p.all, l)
	}
}

// Close implements transport.Requester.
func (p *requests) Close() error {
	p.mu.Lock()
	p.closed = true
	p.cancel()
	for l := range p.all {
		l.c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
	return nil
}

// register prepares for the reply to id. It returns nil if the connection has ended or accepts no more requests.
func (l *link) register(id string) chan reply {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || l.retired {
		return nil
	}
	if l.idle != nil && !l.idle.Stop() {
		return nil
	}
	l.idle = nil
	answer := make(chan reply, 1)
	l.waiting[id] = answer
	return answer
}

// unregister forgets id. A reply that comes later is dropped.
func (l *link) unregister(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, id)
	if len(l.waiting) > 0 || l.err != nil {
		return
	}
	if l.retired {
		l.c.Close()
		return
	}
	l.idle = time.AfterFunc(l.p.o.KeepIdle, l.retireIdle)
}

// retireIdle closes a connection that was idle for KeepIdle.
func (l *link) retireIdle() {
	l.p.retireLink(l, false)
	l.c.Close()
}

// retire makes the connection accept no more requests. It is closed after the last reply.
func (l *link) retire() {
	l.p.retireLink(l, false)
	l.mu.Lock()
	l.retired = true
	l.mu.Unlock()
}

// send writes one request. It ignores the request's context, because half a frame would break the stream for all
// other requests.
func (l *link) send(start, body []byte) {
	l.writing <- struct{}{}
	err := serve.Write(l.c, l.p.o.WriteTimeout, start, body)
	<-l.writing
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded):
		l.c.Close() // the peer is connected but does not read
	default:
		// The peer closed the connection, and its reason (a TLS alert) may still be unread. The reader will report it.
		time.AfterFunc(lastWords, func() { l.c.Close() })
	}
}

// readReplies passes each reply to the request that waits for it.
func (l *link) readReplies() {
	defer l.p.o.OnWork()
	r := newReader(l.c, readBuffer, l.p.o.MaxMessage, l.p.o.ReadTimeout, nil)
	var err error
	for {
		var f frame
		if f, err = r.next(); err != nil {
			break
		}
		l.frames.Add(1)
		id, ok := messageID(f.head)
		if !ok {
			err = fmt.Errorf("tcp: reply without a message id: %w", transport.ErrProtocol)
			break
		}
		l.mu.Lock()
		if answer := l.waiting[id]; answer != nil {
			answer <- reply{body: f.body}
			delete(l.waiting, id) // a second reply is dropped
		}
		l.mu.Unlock()
	}
	l.c.Close()
	l.p.retireLink(l, true)
	if !errors.Is(err, transport.ErrTooBig) && !errors.Is(err, transport.ErrProtocol) {
		err = fmt.Errorf("%w: %w", transport.ErrNoReply, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
	if l.idle != nil {
		l.idle.Stop()
	}
	for id, answer := range l.waiting {
		answer <- reply{err: err}
		delete(l.waiting, id)
	}
}

// newMid returns a random UUID (version 4), like Salt's message ids.
func newMid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	var text [36]byte
	at := 0
	for _, part := range [][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
		if at > 0 {
			text[at] = '-'
			at++
		}
		at += hex.Encode(text[at:], part)
	}
	return string(text[:])
}
