package zeromq

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/go-zeromq/zmq4"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/internal/serve"
)

const (
	// maxTopics is how many subscriptions one connection may hold, maxTopic how long each may be: Salt has two of 40 bytes.
	maxTopics = 64
	maxTopic  = 255
	broadcast = "broadcast"
)

// topic is the name of a minion on the publish channel: the SHA-1 of its id in lower-case hex (Salt 3007
// transport/zeromq.py:publish_payload).
func topic(id string) string {
	sum := sha1.Sum([]byte(id))
	return hex.EncodeToString(sum[:])
}

// server is a PUB and a ROUTER side.
type server struct {
	o        transport.ServerOptions
	g        *serve.Group
	pub, req net.Listener
	budget   *serve.Budget
	dropped  atomic.Int64

	// roster has the subscribers, where they do not choose topics themselves (Filter). Its lock comes after mu.
	roster *serve.Roster

	mu          sync.Mutex // guards the fields below
	members     map[*serve.Member]*subscriber
	index       map[string]map[*subscriber]struct{}
	longest     int // longest subscription ever seen, so that matching looks no further
	subscribers int
	seq         uint64
	closed      bool
}

// subscriber is one connection of the PUB side.
type subscriber struct {
	c      *conn
	box    *serve.Outbox
	topics []subscription // guarded by server.mu
	seen   uint64         // the last message it was given; guarded by server.mu
	member *serve.Member  // nil before the first subscription; of the reader only
}

// subscription is counted: a peer may ask twice and must then cancel twice.
type subscription struct {
	prefix string
	n      int
}

// Listen starts the master side. TLS is not part of Salt's ZeroMQ transport: o.Wrap is ignored.
func Listen(o transport.ServerOptions) (transport.Server, error) {
	o, err := o.WithDefaults()
	if err != nil {
		return nil, err
	}
	pub, req, err := o.Listeners(false)
	if err != nil {
		return nil, err
	}
	s := &server{o: o, g: serve.NewGroup(o), pub: pub, req: req, budget: serve.NewBudget(o.MaxUnauthenticated),
		index: make(map[string]map[*subscriber]struct{}), roster: serve.NewRoster(o.Isolate), members: make(map[*serve.Member]*subscriber)}
	s.g.Accept(pub, s.acceptSubscriber)
	s.g.Accept(req, s.acceptRequests)
	return s, nil
}

// PublishAddr implements transport.Server.
func (s *server) PublishAddr() net.Addr { return s.pub.Addr() }

// RequestAddr implements transport.Server.
func (s *server) RequestAddr() net.Addr { return s.req.Addr() }

// Subscribers implements transport.Publisher.
func (s *server) Subscribers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subscribers
}

// Present implements transport.Publisher.
func (s *server) Present() []string { return s.roster.Present() }

// Reach implements transport.Publisher. With Filter, where subscribers choose topics, each of them may have chosen any.
func (s *server) Reach(ids ...string) (named, nameless int) {
	named, nameless = s.roster.Reach(ids...)
	if s.o.Filter && !s.isolated() {
		nameless = s.Subscribers()
	}
	return named, nameless
}

func (s *server) isolated() bool { return s.o.Isolate != nil && s.o.Isolate() }

// Name implements transport.Publisher.
func (s *server) Name(peer, id string) bool { return s.roster.NamePeer(peer, id) }

// Dropped implements transport.Publisher.
func (s *server) Dropped() int64 { return s.dropped.Load() }

// Shutdown implements transport.Server.
func (s *server) Shutdown(ctx context.Context) error {
	s.refuse()
	return s.g.Shutdown(ctx)
}

// Close implements transport.Server.
func (s *server) Close() error {
	s.refuse()
	s.g.Close()
	return nil
}

func (s *server) refuse() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
}

// Publish implements transport.Publisher.
func (s *server) Publish(msg []byte, topics []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return transport.ErrClosed
	}
	switch {
	case !s.o.Filter || s.isolated():
		head, key := s.frame(msg)
		s.roster.Each(topics, func(m *serve.Member) {
			if s.members[m].takes(key) {
				m.Box.Put(head, msg)
			}
		})
	case topics == nil:
		s.sendTopic(broadcast, msg)
	default:
		for _, id := range topics {
			s.sendTopic(topic(id), msg)
		}
	}
	return nil
}

// Unnamed implements transport.Publisher.
func (s *server) Unnamed(peer string) bool { return s.roster.Unnamed(peer) }

// PublishTo implements transport.Publisher. With Filter it goes out as what is for everybody.
func (s *server) PublishTo(peer string, msg []byte) bool {
	head, key := s.frame(msg)
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := false
	s.roster.One(peer, func(m *serve.Member) {
		if sent = s.members[m].takes(key); sent {
			m.Box.Put(head, msg)
		}
	})
	return sent
}

// frame is what goes before a message to a subscriber that the roster chose, and what its subscriptions must match.
func (s *server) frame(msg []byte) (head, key []byte) {
	if !s.o.Filter {
		return appendHeader(nil, 0, len(msg)), msg
	}
	key = []byte(broadcast)
	return appendHeader(appendFrame(nil, flagMore, key), 0, len(msg)), key
}

// takes says whether a message is subscribed to. The caller holds server.mu.
func (sub *subscriber) takes(key []byte) bool {
	for _, t := range sub.topics {
		if len(t.prefix) <= len(key) && string(key[:len(t.prefix)]) == t.prefix {
			return true
		}
	}
	return false
}

// sendTopic sends the frames [topic][msg]. The caller holds mu.
func (s *server) sendTopic(topic string, msg []byte) {
	head := appendFrame(make([]byte, 0, len(topic)+11), flagMore, []byte(topic))
	s.send([]byte(topic), appendHeader(head, 0, len(msg)), msg)
}

// send queues head and body with everybody whose subscription is a prefix of key. The bytes are shared by all. The caller holds mu,
// under which nothing waits for a peer.
func (s *server) send(key, head, body []byte) {
	s.seq++
	for n := 0; n <= min(len(key), s.longest); n++ {
		for sub := range s.index[string(key[:n])] {
			if sub.seen != s.seq {
				sub.seen = s.seq
				sub.box.Put(head, body)
			}
		}
	}
}

func (s *server) acceptSubscriber(c net.Conn) (func() error, error) {
	k, err := newConn(c, zmq4.Pub, true, maxCommand, s.o.ReadTimeout, s.o.WriteTimeout, nil)
	if err != nil {
		return nil, err
	}
	sub := &subscriber{c: k}
	sub.box = serve.NewOutbox(s.g, serve.Stream{Conn: c}, func() {
		s.dropped.Add(1)
		s.o.Log.Warn("Dropped subscriber that does not keep up", "peer", c.RemoteAddr().String())
	})
	return func() error { return s.readSubscriber(sub) }, nil
}

// readSubscriber handles subscriptions until the connection ends.
func (s *server) readSubscriber(sub *subscriber) error {
	defer s.forget(sub)
	peer := sub.c.RemoteAddr().String()
	defer func() {
		if sub.member != nil {
			s.leave(sub.member)
			s.o.Subscriber(peer, false)
		}
	}()
	for {
		frames, cmd, err := sub.c.recv()
		if err != nil {
			return quiet(err)
		}
		var add bool
		var prefix []byte
		switch {
		case cmd == "PING":
			sub.box.Put(pong(frames), nil)
			continue
		case cmd == "SUBSCRIBE" || cmd == "CANCEL":
			add = cmd == "SUBSCRIBE"
			if len(frames) == 1 {
				prefix = frames[0]
			}
		case cmd == "" && len(frames) == 1 && len(frames[0]) > 0 && frames[0][0] <= 1:
			add, prefix = frames[0][0] == 1, frames[0][1:]
		default:
			// A message of an XSUB peer, or a command of a later version: neither is for us.
			continue
		}
		first := add && sub.member == nil
		if first {
			sub.member = s.enter(sub, peer)
		}
		if err := s.subscribe(sub, string(prefix), add); err != nil {
			return err
		}
		if first {
			s.o.Subscriber(peer, true)
		}
	}
}

// enter notes a connection that subscribes to something.
func (s *server) enter(sub *subscriber, peer string) *serve.Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.roster.Add(peer, sub.box)
	s.members[m] = sub
	return m
}

func (s *server) leave(m *serve.Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roster.Remove(m)
	delete(s.members, m)
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

func (s *server) forget(sub *subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(sub.topics) > 0 {
		last := len(sub.topics) - 1
		prefix := sub.topics[last].prefix
		sub.topics = sub.topics[:last]
		s.unindex(sub, prefix)
	}
}

// requester is one connection of the ROUTER side. Requests are answered in order by the goroutine that reads them: REQ has one
// under way, and a DEALER that sends more waits.
type requester struct {
	s        *server
	c        *conn
	ctx      context.Context
	approved atomic.Bool
	mu       sync.Mutex   // guards share: Approve may be called late, from any goroutine
	share    *serve.Share // what the message being received or handled holds of the budget
	total    int64        // bytes of the budget asked for, for this message
}

func (s *server) acceptRequests(c net.Conn) (func() error, error) {
	r := &requester{s: s}
	k, err := newConn(c, zmq4.Router, true, s.o.MaxMessage+frameSlack, s.o.ReadTimeout, s.o.WriteTimeout, r.grant)
	if err != nil {
		return nil, err
	}
	r.c = k
	r.ctx = transport.WithApprove(s.g.Context(), r.approve)
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
	share, err := r.s.budget.Grow(ctx, share, r.c.Conn, more)
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
	defer r.release()
	peer := r.c.RemoteAddr().String()
	for {
		frames, cmd, err := r.c.recv()
		if err != nil {
			return quiet(err)
		}
		if cmd != "" {
			if cmd == "PING" {
				if err := r.c.write(pong(frames)); err != nil {
					return err
				}
			}
			continue
		}
		route, body, err := splitRoute(frames)
		if err != nil {
			return err
		}
		frames = nil
		if r.s.g.Draining() || !r.s.g.Begin() {
			return nil
		}
		err = r.answer(peer, route, body)
		r.s.g.End()
		if err != nil {
			return err
		}
		body = nil
		r.release()
	}
}

// answer handles one request and sends the reply.
func (r *requester) answer(peer string, route, body []byte) error {
	reply := r.s.o.Handler(r.ctx, peer, body)
	if reply == nil {
		return transport.ErrNoReply
	}
	return r.c.write(appendHeader(route, 0, len(reply)), reply)
}

// splitRoute takes a request apart: the frames up to the first empty one go back before the reply, already encoded; one frame
// follows, the envelope.
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

// quiet takes the error out of a peer that just went away.
func quiet(err error) error {
	if gone(err) {
		return nil
	}
	return err
}

// sameTopic reports whether frame is the topic t.
func sameTopic(frame []byte, t string) bool { return bytes.Equal(frame, []byte(t)) }
