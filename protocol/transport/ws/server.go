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

// handshakePrice is the approximate processor time for a connection with its HTTP request.
const handshakePrice = 240 * time.Microsecond

type server struct{ *serve.Base }

// Listen starts the master side.
func Listen(o transport.ServerOptions) (transport.Server, error) {
	base, err := serve.Listen(o, true)
	if err != nil {
		return nil, err
	}
	s := &server{base}
	s.Accept(s.acceptSubscriber, s.acceptRequests, handshakePrice)
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

// upgrade upgrades a new connection to WebSocket. An unapproved peer pays for each frame.
func (s *server) upgrade(c net.Conn) (*conn, error) {
	// guard: ping-flood TestFramesArePaid instead: pay := func(int) bool { return true }
	pay := func(n int) bool { return s.Group.PayMessages(c, n) }
	return upgradeConn(c, s.Options.ReadTimeout, s.Options.WriteTimeout, pay)
}

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
	k, err := s.upgrade(c)
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

// Await implements serve.Session.
func (sub *subscriber) Await() error { return asEOF(sub.c.wait()) }

// Sleep implements serve.Sleeper.
func (sub *subscriber) Sleep() bool { return sub.c.empty() }

// Serve answers pings until the end of the connection. Subscribers must not send messages.
func (sub *subscriber) Serve() (answer func() error, err error) {
	if err := sub.c.stream.beginServe(); err != nil {
		return nil, err
	}
	if _, _, err := sub.c.Reader(context.Background()); err != nil {
		return nil, asEOF(err)
	}
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
}

func (s *server) acceptRequests(c net.Conn) (serve.Session, error) {
	k, err := s.upgrade(c)
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

// Await implements serve.Session. The connection does not wait in a poller, which knows no idleTimeout.
func (r *requester) Await() error { return asEOF(r.c.wait()) }

// Serve receives a request. The library answers pings before it.
func (r *requester) Serve() (answer func() error, err error) {
	if err := r.c.stream.beginServe(); err != nil {
		return nil, err
	}
	body, err := r.c.receive(r.s.Options.MaxMessage, r.room.Grant)
	r.c.stream.serving = false
	if err != nil {
		return nil, asEOF(err)
	}
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
