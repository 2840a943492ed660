package ws

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/coder/websocket"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/internal/serve"
)

// lingering is how long a request connection may stay without a request: Python's clients make a new one for every request
// and do not close the old ones.
const lingering = 30 * time.Second

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

// Publish implements transport.Publisher. Messages are packed twice; a Python minion gets nothing that it would choke on.
func (s *server) Publish(msg []byte, topics []string) error {
	b := packed(msg)
	if !s.Roster.Each(topics, func(m *serve.Member) { m.Box.Put(b, nil) }) {
		return transport.ErrClosed
	}
	return nil
}

// PublishTo implements transport.Publisher.
func (s *server) PublishTo(peer string, msg []byte) bool {
	return s.Roster.One(peer, func(m *serve.Member) { m.Box.Put(packed(msg), nil) })
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
			k.s.Options.Log.Warn("Publish kept from a subscriber", "peer", k.c.stream.RemoteAddr().String(), "err", err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Close implements serve.Sink.
func (k sink) Close() error { return k.c.stream.Close() }

func (s *server) acceptSubscriber(c net.Conn) (func() error, error) {
	k, err := upgrade(c, s.Options.ReadTimeout, s.Options.WriteTimeout)
	if err != nil {
		return nil, err
	}
	return func() error { return s.readSubscriber(k) }, nil
}

// readSubscriber waits for the end of a connection, answering pings. Subscribers have nothing to say.
func (s *server) readSubscriber(c *conn) error {
	defer c.CloseNow()
	peer := c.stream.RemoteAddr().String()
	sub := s.Roster.Add(peer, s.Outbox(sink{c, s}, c.stream.RemoteAddr()))
	s.Options.Subscriber(peer, true)
	defer s.Options.Subscriber(peer, false)
	defer s.Roster.Remove(sub)
	_, _, err := c.Reader(context.Background())
	if err == nil {
		return fmt.Errorf("ws: message on the publish channel: %w", transport.ErrProtocol)
	}
	return quiet(err)
}

// requester is one connection of the request side.
type requester struct {
	s    *server
	c    *conn
	room serve.Allowance
}

func (s *server) acceptRequests(c net.Conn) (func() error, error) {
	k, err := upgrade(c, s.Options.ReadTimeout, s.Options.WriteTimeout)
	if err != nil {
		return nil, err
	}
	k.stream.idleTimeout = lingering
	r := &requester{s: s, c: k, room: serve.Allowance{Base: s.Base, Conn: c}}
	return r.serve, nil
}

func (r *requester) serve() error {
	defer r.c.CloseNow()
	defer r.room.Release()
	ctx := r.room.Context()
	peer := r.c.stream.RemoteAddr().String()
	for {
		body, err := r.c.receive(r.s.Options.MaxMessage, r.room.Grant)
		if err != nil {
			return quiet(err)
		}
		if err := r.s.Group.Do(r.c.stream, func() error { return r.answer(ctx, peer, body) }); err != nil {
			return quiet(err)
		}
		r.room.Release()
	}
}

// answer handles one request and sends the reply.
func (r *requester) answer(ctx context.Context, peer string, body []byte) error {
	reply := r.s.Options.Handler(ctx, peer, body)
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
