package zeromq

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net"
	"sync"

	"github.com/go-zeromq/zmq4"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/internal/serve"
)

const (
	// maxTopics is how many subscriptions one connection may have, and maxTopic how long each may be. Salt's minions
	// have two of 40 bytes.
	maxTopics = 64
	maxTopic  = 255
	broadcast = "broadcast"
)

// topic returns the topic of a minion on the publish channel: the SHA-1 of its id in lower-case hex (Salt 3007
// transport/zeromq.py:publish_payload).
func topic(id string) string {
	sum := sha1.Sum([]byte(id))
	return hex.EncodeToString(sum[:])
}

// server is the PUB and the ROUTER side of a master.
type server struct {
	// The roster holds the subscribers, unless they choose topics (Filter). Its lock is taken after mu.
	*serve.Base

	mu          sync.Mutex // guards the fields below
	members     map[*serve.Member]*subscriber
	index       map[string]map[*subscriber]struct{}
	longest     int // the length of the longest subscription so far, which bounds the search
	subscribers int
	seq         uint64
}

// subscriber is one connection of the PUB side.
type subscriber struct {
	s      *server
	c      *conn
	peer   string
	box    *serve.Outbox
	topics []subscription // guarded by server.mu
	seen   uint64         // the last message sent to it; guarded by server.mu
	member *serve.Member  // nil before the first subscription; only the serving goroutine uses it
	came   *serve.Arrival // nil once no message can be missed; likewise
}

// A subscription has a count: a peer that subscribes twice must cancel twice.
type subscription struct {
	prefix string
	n      int
}

// Listen starts the master side. Salt's ZeroMQ transport has no TLS, so o.Wrap is ignored.
func Listen(o transport.ServerOptions) (transport.Server, error) {
	base, err := serve.Listen(o, false)
	if err != nil {
		return nil, err
	}
	s := &server{Base: base, index: make(map[string]map[*subscriber]struct{}), members: make(map[*serve.Member]*subscriber)}
	base.Around = &s.mu
	s.Accept(s.acceptSubscriber, s.acceptRequests, serve.HandshakePrice)
	return s, nil
}

// Subscribers implements transport.Publisher.
func (s *server) Subscribers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.subscribers-s.Roster.Silent())
}

// Reach implements transport.Publisher. With Filter each subscriber may have subscribed to any topic.
func (s *server) Reach(ids ...string) (named, nameless int) {
	named, nameless = s.Roster.Reach(ids...)
	if s.Options.Filter && !s.isolated() {
		nameless = s.Subscribers() + s.Roster.Arriving()
	}
	return named, nameless
}

func (s *server) isolated() bool { return s.Options.Isolate != nil && s.Options.Isolate() }

// Publish implements transport.Publisher.
func (s *server) Publish(msg []byte, topics []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Roster.Closed() {
		return transport.ErrClosed
	}
	switch {
	case !s.Options.Filter || s.isolated():
		head, key := s.frameFor(msg)
		s.Roster.Each(topics, len(msg), s.putTo(key, head, msg))
	case topics == nil:
		s.sendTopic(broadcast, msg)
	default:
		for _, id := range topics {
			s.sendTopic(topic(id), msg)
		}
	}
	return nil
}

// PublishTo implements transport.Publisher. With Filter the message is sent under the broadcast topic.
func (s *server) PublishTo(peer string, msg []byte) bool {
	head, key := s.frameFor(msg)
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := false
	s.Roster.One(peer, func(m *serve.Member) {
		if sent = s.members[m].takes(key, false); sent {
			m.Box.Put(head, msg)
		}
	})
	return sent
}

// frameFor returns the bytes before a message to a subscriber that the roster chose, and the key that its
// subscriptions must match.
func (s *server) frameFor(msg []byte) (head, key []byte) {
	if !s.Options.Filter {
		return appendHeader(nil, 0, len(msg)), msg
	}
	key = []byte(broadcast)
	return appendHeader(appendFrame(nil, flagMore, key), 0, len(msg)), key
}

// putTo returns a function that sends a message to subscribers whose subscriptions match.
func (s *server) putTo(key, head, body []byte) func(m *serve.Member, late bool) {
	return func(m *serve.Member, late bool) {
		if s.members[m].takes(key, late) {
			m.Box.Put(head, body)
		}
	}
}

// takes reports whether a subscription matches a message. A late message must match the newest subscription and no
// other, since the others have received it. The caller holds server.mu.
func (sub *subscriber) takes(key []byte, late bool) bool {
	for i, t := range sub.topics {
		if len(t.prefix) <= len(key) && string(key[:len(t.prefix)]) == t.prefix {
			return !late || i == len(sub.topics)-1
		}
	}
	return false
}

// sendTopic sends the frames [topic][msg]. The caller holds mu.
func (s *server) sendTopic(topic string, msg []byte) {
	head := appendFrame(make([]byte, 0, len(topic)+11), flagMore, []byte(topic))
	s.sendPrefix([]byte(topic), appendHeader(head, 0, len(msg)), msg)
}

// sendPrefix queues head and body for all subscribers whose subscription is a prefix of key. They share the bytes.
// The caller holds mu; nothing under it waits for a peer.
func (s *server) sendPrefix(key, head, body []byte) {
	s.seq++
	for n := 0; n <= min(len(key), s.longest); n++ {
		for sub := range s.index[string(key[:n])] {
			if sub.seen != s.seq && sub.member.Receives() {
				sub.seen = s.seq
				sub.box.Put(head, body)
			}
		}
	}
	s.Roster.Keep(len(body), s.putTo(key, head, body))
}

func (s *server) acceptSubscriber(c net.Conn) (serve.Session, error) {
	came := s.Roster.Expect()
	k, err := newConn(c, zmq4.Pub, true, maxCommand, s.Options.ReadTimeout, s.Options.WriteTimeout, nil)
	if err != nil {
		s.Roster.Arrived(came)
		return nil, err
	}
	return &subscriber{s: s, c: k, peer: c.RemoteAddr().String(), box: s.Outbox(serve.Stream{Conn: c}, c.RemoteAddr()), came: came}, nil
}

// Begin implements serve.Session.
func (sub *subscriber) Begin() {}

// Await implements serve.Session.
func (sub *subscriber) Await() error { return sub.c.await() }

// Sleep implements serve.Sleeper.
func (sub *subscriber) Sleep() bool { return sub.c.at == sub.c.end }

// End implements serve.Session.
func (sub *subscriber) End() {
	if sub.member != nil {
		sub.s.Leave(sub.member)
	}
	sub.s.removeSubscriber(sub)
	sub.s.Roster.Arrived(sub.came)
}

// Serve handles a subscription.
func (sub *subscriber) Serve() (answer func() error, err error) {
	frames, cmd, err := sub.c.recv()
	if err != nil {
		return nil, err
	}
	var add bool
	var prefix []byte
	switch {
	case cmd == "PING":
		answer, err := sub.c.countPong(frames)
		if err == nil {
			sub.box.Put(answer, nil)
		}
		return nil, err
	case cmd == "SUBSCRIBE" || cmd == "CANCEL":
		add = cmd == "SUBSCRIBE"
		if len(frames) == 1 {
			prefix = frames[0]
		}
	case cmd == "" && len(frames) == 1 && len(frames[0]) > 0 && frames[0][0] <= 1:
		add, prefix = frames[0][0] == 1, frames[0][1:]
	default:
		// A message of an XSUB peer, or a command of a later version. Both are ignored.
		return nil, nil
	}
	first := add && sub.member == nil
	if first {
		sub.member = sub.s.addMember(sub)
	}
	if err := sub.s.subscribe(sub, string(prefix), add); err != nil {
		return nil, err
	}
	if first {
		sub.s.Options.Subscriber(sub.peer, true)
	}
	return nil, nil
}

// addMember adds a connection at its first subscription.
func (s *server) addMember(sub *subscriber) *serve.Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.Roster.Add(sub.peer, sub.box, sub.c.Conn, nil)
	s.members[m] = sub
	return m
}

// subscribe changes one subscription.
func (s *server) subscribe(sub *subscriber, prefix string, add bool) error {
	if len(prefix) > maxTopic {
		return fmt.Errorf("zeromq: subscription of %d bytes exceeds %d: %w", len(prefix), maxTopic, transport.ErrTooBig)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := 0
	for i < len(sub.topics) && sub.topics[i].prefix != prefix {
		i++
	}
	if !add {
		if i == len(sub.topics) {
			return nil
		}
		if sub.topics[i].n--; sub.topics[i].n == 0 {
			sub.topics = append(sub.topics[:i], sub.topics[i+1:]...)
			s.unindex(sub, prefix)
		}
		return nil
	}
	if i < len(sub.topics) {
		sub.topics[i].n++
		return nil
	}
	if i >= maxTopics {
		return fmt.Errorf("zeromq: more than %d subscriptions: %w", maxTopics, transport.ErrTooBig)
	}
	sub.topics = append(sub.topics, subscription{prefix, 1})
	if s.index[prefix] == nil {
		s.index[prefix] = make(map[*subscriber]struct{})
	}
	s.index[prefix][sub] = struct{}{}
	s.longest = max(s.longest, len(prefix))
	if len(sub.topics) == 1 {
		s.subscribers++
	}
	s.Roster.CatchUp(sub.member, sub.came)
	if !s.Options.Filter || len(sub.topics) == 2 { // a minion sends no more subscriptions
		s.Roster.Arrived(sub.came)
		sub.came = nil
	}
	return nil
}

// unindex removes one subscription from the index. The caller holds mu and has removed it from sub.
func (s *server) unindex(sub *subscriber, prefix string) {
	delete(s.index[prefix], sub)
	if len(s.index[prefix]) == 0 {
		delete(s.index, prefix)
	}
	if len(sub.topics) == 0 {
		s.subscribers--
	}
}

func (s *server) removeSubscriber(sub *subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.members, sub.member)
	for len(sub.topics) > 0 {
		last := len(sub.topics) - 1
		prefix := sub.topics[last].prefix
		sub.topics = sub.topics[:last]
		s.unindex(sub, prefix)
	}
}

// requester is one connection of the ROUTER side. Requests are answered in order, and no request is read while one is
// answered. A REQ peer has one request in progress; a DEALER that sends more must wait.
type requester struct {
	s    *server
	c    *conn
	peer string
	ctx  context.Context
	room serve.Allowance
}

func (s *server) acceptRequests(c net.Conn) (serve.Session, error) {
	r := &requester{s: s, peer: c.RemoteAddr().String(), room: serve.Allowance{Base: s.Base, Conn: c}}
	k, err := newConn(c, zmq4.Router, true, s.Options.MaxMessage+frameSlack, s.Options.ReadTimeout, s.Options.WriteTimeout, r.room.Grant)
	if err != nil {
		return nil, err
	}
	r.c = k
	r.ctx = r.room.Context()
	return r, nil
}

// Begin implements serve.Session.
func (r *requester) Begin() {}

// Await implements serve.Session.
func (r *requester) Await() error {
	if r.c.buf == nil {
		r.c.buf = requestBuffers.Get().(*[requestBuffer]byte)[:]
	}
	return r.c.await()
}

// Sleep implements serve.Sleeper. The connection has no buffer until Await.
func (r *requester) Sleep() bool {
	if r.c.at < r.c.end {
		return false
	}
	if r.c.buf != nil {
		requestBuffers.Put((*[requestBuffer]byte)(r.c.buf))
		r.c.buf = nil
	}
	return true
}

// requestBuffers are those of connections without a request.
var requestBuffers = sync.Pool{New: func() any { return new([requestBuffer]byte) }}

// End implements serve.Session.
func (r *requester) End() { r.room.Release() }

// Serve implements serve.Session.
func (r *requester) Serve() (answer func() error, err error) {
	frames, cmd, err := r.c.recv()
	if err != nil {
		return nil, err
	}
	if cmd == "PING" {
		answer, err := r.c.countPong(frames)
		if err != nil {
			return nil, err
		}
		return nil, r.c.write(answer)
	}
	if cmd != "" {
		return nil, nil
	}
	route, body, err := splitRoute(frames)
	if err != nil {
		return nil, err
	}
	return func() error { return r.answerRequest(route, body) }, nil
}

// answerRequest handles one request and sends the reply.
func (r *requester) answerRequest(route, body []byte) error {
	defer r.room.Release()
	reply := r.s.Options.Handler(r.ctx, r.peer, body)
	if reply == nil {
		return transport.ErrNoReply
	}
	return r.c.write(appendHeader(route, 0, len(reply)), reply)
}

// splitRoute splits a request. It returns the frames up to the first empty one in encoded form, because they precede
// the reply. One frame follows them: the envelope.
func splitRoute(frames [][]byte) (route, body []byte, err error) {
	for i, f := range frames {
		route = appendFrame(route, flagMore, f)
		if len(f) > 0 {
			continue
		}
		if i != len(frames)-2 {
			break
		}
		return route, frames[i+1], nil
	}
	return nil, nil, fmt.Errorf("zeromq: request is not a delimiter and one frame: %w", transport.ErrProtocol)
}

// sameTopic reports whether frame is the topic t.
func sameTopic(frame []byte, t string) bool { return bytes.Equal(frame, []byte(t)) }
