package ws

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/internal/redial"
)

// maxConns is how many requests of one requester may be in progress, each on its own connection. Others wait.
const maxConns = 128

type dialer struct{}

// New returns the client side.
func New() transport.Dialer { return dialer{} }

// dialUpgrade connects and upgrades to WebSocket.
func dialUpgrade(ctx context.Context, o transport.ClientOptions, addr, source, path string) (*conn, error) {
	c, err := redial.Dial(ctx, o, addr, source, true)
	if err != nil {
		return nil, err
	}
	stop := redial.Guard(ctx, c)
	defer stop()
	s := &stream{Conn: c, readTimeout: o.ReadTimeout, writeTimeout: o.WriteTimeout}
	hctx, cancel := context.WithTimeout(ctx, o.HandshakeTimeout)
	defer cancel()
	once := make(chan net.Conn, 1)
	once <- s
	tr := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case c := <-once:
				return c, nil
			default:
				return nil, errors.New("ws: second connection in one handshake")
			}
		},
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxUpgrade,
		ReadBufferSize:         1024,
		WriteBufferSize:        1024,
	}
	// TLS, if any, is below: the URL is http even then.
	ws, resp, err := websocket.Dial(hctx, "http://"+addr+path, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		HTTPHeader: http.Header{"User-Agent": {agent}},
	})
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("ws: cannot upgrade connection to %s: %w", addr, err)
	}
	ws.SetReadLimit(-1) // receive has its own
	return &conn{Conn: ws, stream: s, python: strings.Contains(resp.Header.Get("Server"), "aiohttp")}, nil
}

// Subscribe implements transport.Dialer.
func (dialer) Subscribe(ctx context.Context, o transport.ClientOptions) (transport.Subscriber, error) {
	o = o.WithDefaults()
	if err := transport.CheckAddr(o.PublishAddr); err != nil {
		return nil, err
	}
	return redial.Subscribe(ctx, o, o.PublishAddr, func(ctx context.Context) (redial.Session, error) {
		c, err := dialUpgrade(ctx, o, o.PublishAddr, o.PublishSource, "/ws")
		if err != nil {
			return nil, err
		}
		return &session{conn: c, max: o.MaxMessage}, nil
	}), nil
}

// session is a publish connection.
type session struct {
	*conn
	max int64
}

// Receive implements redial.Session. The message is a packed bin or str whose content is the envelope.
func (s *session) Receive() ([]byte, error) {
	b, err := s.receive(s.max+5, nil)
	if err != nil {
		return nil, err
	}
	return unpackBin(b)
}

// unpackBin returns the content of a packed bin or str.
func unpackBin(b []byte) ([]byte, error) {
	n, size := 0, 0
	if len(b) > 0 {
		switch c := b[0]; {
		case c >= 0xa0 && c <= 0xbf:
			n, size = 1, int(c&0x1f)
		case c == 0xc4 || c == 0xd9:
			n = 2
		case c == 0xc5 || c == 0xda:
			n = 3
		case c == 0xc6 || c == 0xdb:
			n = 5
		}
	}
	if n == 0 || len(b) < n {
		return nil, fmt.Errorf("ws: publish is not packed bytes: %w", transport.ErrProtocol)
	}
	for _, x := range b[1:n] {
		size = size<<8 | int(x)
	}
	if len(b)-n != size {
		return nil, fmt.Errorf("ws: publish of %d bytes says %d: %w", len(b)-n, size, transport.ErrProtocol)
	}
	return b[n:], nil
}

// RemoteAddr implements redial.Session.
func (s *session) RemoteAddr() net.Addr { return s.stream.RemoteAddr() }

// requests is the client of the request channel.
type requests struct {
	o      transport.ClientOptions
	ctx    context.Context
	cancel context.CancelFunc
	slots  chan struct{}
	wg     sync.WaitGroup
	mu     sync.Mutex // guards closed, and wg.Add against wg.Wait
	closed bool
}

// Requester implements transport.Dialer.
func (dialer) Requester(o transport.ClientOptions) (transport.Requester, error) {
	o = o.WithDefaults()
	if err := transport.CheckAddr(o.RequestAddr); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &requests{o: o, ctx: ctx, cancel: cancel, slots: make(chan struct{}, maxConns)}, nil
}

// Request implements transport.Requester.
func (p *requests) Request(ctx context.Context, body []byte) ([]byte, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, transport.ErrClosed
	}
	p.wg.Add(1)
	p.mu.Unlock()
	defer p.wg.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	b, err := p.tryRequest(ctx, body)
	switch {
	case err == nil:
		return b, nil
	case p.ctx.Err() != nil:
		return nil, transport.ErrClosed
	}
	return nil, fmt.Errorf("ws: no reply from %s: %w", p.o.RequestAddr, err)
}

// tryRequest sends one request on a connection of its own, as Salt's client does.
func (p *requests) tryRequest(ctx context.Context, body []byte) ([]byte, error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c, err := redial.Retry(ctx, p.o, func(ctx context.Context) (*conn, error) {
		return dialUpgrade(ctx, p.o, p.o.RequestAddr, p.o.RequestSource, "/")
	})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	defer redial.Guard(ctx, c.stream.Conn)()
	b, err := c.exchange(body, p.o.MaxMessage)
	switch {
	case err == nil:
		return b, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, transport.ErrTooBig) || errors.Is(err, transport.ErrProtocol):
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", transport.ErrNoReply, err)
}

// exchange sends a request and receives the reply.
func (c *conn) exchange(body []byte, limit int64) ([]byte, error) {
	if err := c.send(body); err != nil {
		return nil, err
	}
	return c.receive(limit, nil)
}

// Close implements transport.Requester.
func (p *requests) Close() error {
	p.mu.Lock()
	p.closed = true
	p.cancel()
	p.mu.Unlock()
	p.wg.Wait()
	return nil
}
