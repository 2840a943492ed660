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

// lingering is how long a request connection may stay open without a request. Python's clients make a new connection
// for every request and do not close the old ones.
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

// Publish implements transport.Publisher. The envelope is packed once more as a bin. A Python minion is not sent a
// message that aiohttp would refuse.
func (s *server) Publish(msg []byte, topics []string) error {
	b := packedBin(msg)
	if !s.Roster.Each(topics, len(b), func(m *serve.Member, _ bool) { m.Box.Put(b, nil) }) {
		return transport.ErrClosed
	}
	return nil
}

// PublishTo implements transport.Publisher.
func (s *server) PublishTo(peer string, msg []byte) bool {
	return s.Roster.One(peer, func(m *serve.Member) { m.Box.Put(packedBin(msg), nil) })
}

// packedBin returns msg packed as a bin.
func packedBin(msg []byte) []byte {
	b := binary.BigEndian.AppendUint32(append(make([]byte, 0, 5+len(msg)), 0xc6), uint32(len(msg)))
	return append(b, msg...)
}

// sink sends publishes to one subscriber.
type sink struct {
	c *conn
	s *server
}

// Send implements serve.Sink. Each part is one message.
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

// subscriber is one connection of the publish side.
type subscriber struct {
	s      *server
	c      *conn
	peer   string
	came   *serve.Arrival
	member *serve.Member
}

func (s *server) acceptSubscriber(c net.Conn) (serve.Session, error) {
	came := s.Roster.Expect()
	k, err := upgradeConn(c, s.Options.ReadTimeout, s.Options.WriteTimeout)
	if err != nil {
		s.Roster.Arrived(came)
		return nil, err
	}
	return &subscriber{s: s, c: k, peer: c.RemoteAddr().String(), came: came}, nil
}

// Begin implements serve.Session.
func (sub *subscriber) Begin() {
	sub.member = sub.s.Join(sub.peer, sub.s.Outbox(sink{sub.c, sub.s}, sub.c.stream.RemoteAddr()), sub.c.stream.Conn, sub.came)
	sub.came = nil
}

// Await waits for the end of the connection and answers pings.
func (sub *subscriber) Await() error {
	_, _, err := sub.c.Reader(context.Background())
	return asEOF(err)
}

// Serve returns an error: subscribers must not send messages.
func (sub *subscriber) Serve() (answer func() error, err error) {
	return nil, fmt.Errorf("ws: message on the publish channel: %w", transport.ErrProtocol)
}

// End implements serve.Session.
func (sub *subscriber) End() {
	sub.s.Leave(sub.member)
	sub.c.CloseNow()
}

// requester is one connection of the request side.
type requester struct {
	s    *server
	c    *conn
	peer string
	ctx  context.Context
	room serve.Allowance
	body []byte // of the received request
}

func (s *server) acceptRequests(c net.Conn) (serve.Session, error) {
	k, err := upgradeConn(c, s.Options.ReadTimeout, s.Options.WriteTimeout)
	if err != nil {
		return nil, err
	}
	k.stream.idleTimeout = lingering
	r := &requester{s: s, c: k, peer: c.RemoteAddr().String(), room: serve.Allowance{Base: s.Base, Conn: c}}
	r.ctx = r.room.Context()
	return r, nil
}

// Begin implements serve.Session.
func (r *requester) Begin() {}

// Await receives a whole request, because the library waits for its beginning and its end in one call.
func (r *requester) Await() (err error) {
	r.body, err = r.c.receive(r.s.Options.MaxMessage, r.room.Grant)
	return asEOF(err)
}

// Serve implements serve.Session.
func (r *requester) Serve() (answer func() error, err error) {
	body := r.body
	r.body = nil
	return func() error { return r.answerRequest(body) }, nil
}

// End implements serve.Session.
func (r *requester) End() {
	r.room.Release()
	r.c.CloseNow()
}

// answerRequest handles one request and sends the reply.
func (r *requester) answerRequest(body []byte) error {
	defer r.room.Release()
	reply := r.s.Options.Handler(r.ctx, r.peer, body)
	if reply == nil {
		return transport.ErrNoReply
	}
	return r.c.send(reply)
}

// asEOF converts a closing handshake of the peer to io.EOF, so that it is handled like any other end.
func asEOF(err error) error {
	var ce websocket.CloseError
	if errors.As(err, &ce) {
		return io.EOF
	}
	return err
}
