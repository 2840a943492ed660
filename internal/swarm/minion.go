package swarm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
	"github.com/brine-salt/brine/protocol/transport"
)

const (
	// rememberJobs is how many job ids a stock minion remembers (minion_jid_queue_hwm).
	rememberJobs = 100
	// minWait and maxWait limit the random pause before the minion tries another master.
	minWait, maxWait = 50 * time.Millisecond, time.Second
	// signInTime is Salt's auth_timeout: how long a minion waits for the response to a sign-in before it tries another
	// master.
	signInTime = 5 * time.Second
	// connectTime is the time limit for the publish connection.
	connectTime = 20 * time.Second
	// keepIdle is longer than any test.
	keepIdle = 24 * time.Hour
)

// minion is a minion of the swarm.
type minion struct {
	s          *Swarm
	id, source string
	keep       bool // keep the request connection open

	signing sync.Mutex // held while signing in
	asking  sync.Mutex // held for a request on the kept connection: a stock minion has one connection, and sends one request at a time

	mu      sync.Mutex // guards the fields below
	at      int        // index of the master in use
	conn    *requestConn
	connAt  int
	session *crypt.Key
	aes     *crypt.Key
	master  *crypt.PublicKey
	port    int
	begun   bool // the start event has been sent
	seen    []protocol.JID
	running map[protocol.JID]map[string]any
	done    map[protocol.JID]map[string]any // the data of all jobs, for find_cached_job
}

// live keeps the minion connected until ctx ends.
func (m *minion) live(ctx context.Context) {
	defer m.close()
	var jobs sync.WaitGroup
	defer jobs.Wait()
	for first := true; ctx.Err() == nil; first = false {
		if !first {
			m.next(ctx)
		}
		select {
		case m.s.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		err := m.signIn(ctx, nil)
		<-m.s.slots
		if err == nil {
			err = m.listen(ctx, &jobs)
		}
		if err != nil && ctx.Err() == nil {
			m.s.o.Log.Debug("Connection ended", "minion", m.id, "err", err)
		}
	}
}

// next switches to the next master after a random pause.
func (m *minion) next(ctx context.Context) {
	m.mu.Lock()
	m.at = (m.at + 1) % len(m.s.o.Masters)
	m.mu.Unlock()
	select {
	case <-time.After(minWait + rand.N(maxWait-minWait)):
	case <-ctx.Done():
	}
}

// requestConn is a request connection to a master.
type requestConn struct {
	transport.Requester
	giveUp atomic.Pointer[context.CancelCauseFunc] // ends the current request
}

// dial creates a request connection to the current master. If the master cannot be reached, the current request fails
// at once: otherwise it would hold its slot for as long as a master may take to answer, and others wait for that
// slot.
func (m *minion) dial() (*requestConn, error) {
	c := &requestConn{}
	addr := m.s.o.Masters[m.at].Request
	var err error
	c.Requester, err = m.s.o.Dialer.Requester(transport.ClientOptions{RequestAddr: addr,
		PublishAddr: addr, RequestSource: m.source, ID: m.id, KeepIdle: keepIdle,
		OnRetry: func(err error) { (*c.giveUp.Load())(err) }})
	return c, err
}

// request sends bytes to the current master, and waits up to wait for the response.
func (m *minion) request(ctx context.Context, body []byte, wait time.Duration) (any, error) {
	if !m.keep && m.s.dials != nil {
		select {
		case m.s.dials <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		defer func() { <-m.s.dials }()
	}
	if m.keep {
		m.asking.Lock()
		defer m.asking.Unlock()
	}
	m.mu.Lock()
	conn := m.conn
	if conn == nil || m.connAt != m.at {
		if conn != nil {
			go conn.Close()
		}
		var err error
		if conn, err = m.dial(); err != nil {
			m.conn = nil
			m.mu.Unlock()
			return nil, err
		}
		m.conn, m.connAt = conn, m.at
	}
	if !m.keep {
		m.conn = nil // it is used only once
	}
	m.mu.Unlock()
	if !m.keep {
		defer conn.Close()
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	conn.giveUp.Store(&giveUp)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	b, err := conn.Request(ctx, body)
	if err != nil {
		return nil, err
	}
	return payload.Unmarshal(b)
}

func (m *minion) close() {
	m.mu.Lock()
	conn := m.conn
	m.conn = nil
	m.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
}

var errRefused = errors.New("the master does not accept the key")

// signIn signs in, unless another goroutine has replaced the session bad meanwhile.
func (m *minion) signIn(ctx context.Context, bad *crypt.Key) error {
	m.signing.Lock()
	defer m.signing.Unlock()
	m.mu.Lock()
	fresh := bad != nil && m.session != nil && !m.session.Equal(bad)
	in := protocol.Signin{ID: m.id, Key: m.s.o.Key, MasterKey: m.master, AES: m.s.shared.Load(), VerifyPubkeySign: m.s.o.SignKey != nil, VerifyKey: m.s.o.SignKey}
	m.mu.Unlock()
	if fresh {
		return nil
	}
	e, err := in.Request()
	if err != nil {
		return err
	}
	b, err := e.Marshal()
	if err != nil {
		return err
	}
	v, err := m.request(ctx, b, signInTime)
	var res protocol.SigninResult
	if err == nil {
		res, err = in.Reply(v)
	}
	if err != nil {
		m.s.failed.Add(1)
		return fmt.Errorf("cannot sign in: %w", err)
	}
	if res.Status != protocol.Accepted {
		m.s.refused.Add(1)
		return fmt.Errorf("%w: %v", errRefused, res.Status)
	}
	m.mu.Lock()
	m.session, m.aes, m.master, m.port = res.Session, res.AES, m.s.known(res.MasterKey), res.PublishPort
	m.mu.Unlock()
	m.s.shared.Store(res.AES)
	m.s.signIns.Add(1)
	return nil
}

// call sends an encrypted request. If the session has ended it signs in again.
func (m *minion) call(ctx context.Context, load map[string]any) (any, error) {
	for try := 0; ; try++ {
		m.mu.Lock()
		session := m.session
		m.mu.Unlock()
		r := protocol.Requester{ID: m.id, Session: session, Token: m.s.token}
		e, nonce, err := r.Pack(load, time.Now())
		if err != nil {
			return nil, err
		}
		b, err := e.Marshal()
		if err != nil {
			return nil, err
		}
		v, err := m.request(ctx, b, m.s.o.RequestTime)
		if err != nil {
			return nil, err
		}
		out, err := r.OpenReply(v, nonce)
		if !errors.Is(err, protocol.ErrReauth) || try == 2 {
			return out, err
		}
		if err := m.signIn(ctx, session); err != nil {
			return nil, err
		}
	}
}

// publishAddr returns the publish address of the current master.
func (m *minion) publishAddr() (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.s.o.Masters[m.at]
	if a.Publish != "" {
		return a.Publish, nil
	}
	host, _, err := net.SplitHostPort(a.Request)
	return net.JoinHostPort(host, strconv.Itoa(m.port)), err
}

// listen subscribes and handles jobs until the connection breaks.
func (m *minion) listen(ctx context.Context, jobs *sync.WaitGroup) error {
	addr, err := m.publishAddr()
	if err != nil {
		return err
	}
	states := make(chan bool, 4)
	o := transport.ClientOptions{RequestAddr: addr, PublishAddr: addr, PublishSource: m.source, ID: m.id, OnState: func(s transport.State) {
		select {
		case states <- s.Connected:
		default:
		}
	}}
	if m.s.o.Presence {
		o.Presence = m.presence
	}
	sub, err := m.s.o.Dialer.Subscribe(ctx, o)
	if err != nil {
		return err
	}
	defer sub.Close()
	timer := time.NewTimer(connectTime)
	select {
	case up := <-states:
		timer.Stop()
		if !up {
			return errors.New("cannot subscribe")
		}
	case <-timer.C:
		return errors.New("cannot subscribe in time")
	case <-ctx.Done():
		timer.Stop()
		return ctx.Err()
	}
	m.s.ready.Add(1)
	defer m.s.ready.Add(-1)
	m.start(ctx)
	for {
		select {
		case msg, ok := <-sub.Messages():
			if !ok {
				return errors.New("subscription ended")
			}
			m.published(ctx, msg, jobs)
		case up := <-states:
			if !up {
				return errors.New("publish connection broke")
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (m *minion) presence() ([]byte, error) {
	m.mu.Lock()
	aes := m.aes
	m.mu.Unlock()
	e, err := protocol.SealPresence(m.id, m.s.token, aes)
	if err != nil {
		return nil, err
	}
	return e.Marshal()
}

// start sends the requests that stock minions send after their first connection.
func (m *minion) start(ctx context.Context) {
	m.mu.Lock()
	first := !m.begun
	m.begun = true
	m.mu.Unlock()
	if !first {
		return
	}
	var err error
	if m.s.o.Pillar {
		err = m.pillar(ctx)
	}
	if m.s.o.StartEvent {
		_, e := m.call(ctx, map[string]any{"cmd": "_minion_event", "tag": "salt/minion/" + m.id + "/start", "pretag": nil,
			"data": "Minion " + m.id + " started"})
		err = errors.Join(err, e)
	}
	if err != nil && ctx.Err() == nil {
		m.s.o.Log.Debug("Request at the start failed", "minion", m.id, "err", err)
	}
}

// pillar requests and decrypts the pillar.
func (m *minion) pillar(ctx context.Context) error {
	grains := map[string]any{"id": m.id, "os": "Swarm"}
	maps.Copy(grains, m.s.o.Grains)
	m.mu.Lock()
	session, master := m.session, m.master
	m.mu.Unlock()
	r := protocol.Requester{ID: m.id, Session: session, Token: m.s.token}
	e, nonce, err := r.Pack(map[string]any{"cmd": "_pillar", "ver": "2", "grains": grains, "saltenv": nil, "pillarenv": nil}, time.Now())
	if err != nil {
		return err
	}
	b, err := e.Marshal()
	if err != nil {
		return err
	}
	v, err := m.request(ctx, b, m.s.o.RequestTime)
	if err != nil {
		return err
	}
	_, err = protocol.OpenPillar(v, m.s.o.Key, master, "", "", nonce)
	return err
}

// published handles a message from the publish channel.
func (m *minion) published(ctx context.Context, msg []byte, jobs *sync.WaitGroup) {
	m.mu.Lock()
	aes, master := m.aes, m.master
	m.mu.Unlock()
	job, err := m.s.open(msg, aes, master)
	if errors.Is(err, protocol.ErrReauth) {
		if err = m.signIn(ctx, nil); err == nil {
			m.mu.Lock()
			aes, master = m.aes, m.master
			m.mu.Unlock()
			job, err = m.s.open(msg, aes, master)
		}
	}
	var j protocol.Job
	if err == nil {
		j, err = protocol.ParseJob(job)
	}
	if err != nil {
		m.s.o.Log.Warn("Published message is dropped", "minion", m.id, "err", err)
		return
	}
	if !m.meant(j) {
		return
	}
	if !m.take(j) {
		m.s.repeated.Add(1)
		return
	}
	if !asked(j) {
		m.s.jobs.Add(1)
	}
	jobs.Go(func() { m.do(ctx, j) })
}

// asked reports whether a job is a master's probe for listening minions, which is not counted.
func asked(j protocol.Job) bool {
	meta, _ := payload.Map(j.Metadata)
	return meta["brine"] != nil
}

func (m *minion) meant(j protocol.Job) bool {
	if list, ok := j.Tgt.([]any); ok && j.TgtType == "list" {
		return slices.Contains(list, any(m.id))
	}
	if j.TgtType == "glob" && j.Tgt == "*" {
		return true
	}
	ok, err := target.Match(j.TgtType, j.Tgt, j.Delimiter, target.Subject{ID: m.id, Grains: func() map[string]any { return m.s.o.Grains }})
	return ok && err == nil
}

// take reports whether a job is new. It remembers job ids as stock minions do.
func (m *minion) take(j protocol.Job) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.Contains(m.seen, j.JID) {
		return false
	}
	if m.seen = append(m.seen, j.JID); len(m.seen) > rememberJobs {
		m.seen = m.seen[1:]
	}
	if m.running == nil {
		m.running = make(map[protocol.JID]map[string]any)
		m.done = make(map[protocol.JID]map[string]any)
	}
	if strings.HasPrefix(j.Fun[0], "saltutil.") {
		return true // status queries do not report each other
	}
	m.running[j.JID] = map[string]any{"jid": string(j.JID), "fun": j.FunValue(), "arg": j.ArgValue(), "tgt": j.Tgt, "tgt_type": j.TgtType, "pid": int64(1)}
	return true
}

// do runs a job and sends the return until a master acknowledges it.
func (m *minion) do(ctx context.Context, j protocol.Job) {
	internal := strings.HasPrefix(j.Fun[0], "saltutil.")
	var ret any
	switch {
	case internal && j.Compound:
		all := make(map[string]any)
		for i, fun := range j.Fun {
			all[fun] = m.find(fun, j.Args[i])
		}
		ret = all
	case internal:
		ret = m.find(j.Fun[0], j.Args[0])
	default:
		ret = m.s.o.Do(ctx, m.id, j)
	}
	load := protocol.Return{JID: j.JID, ID: m.id, Fun: j.FunValue(), FunArgs: j.ArgValue(), Return: ret, Retcode: int64(0), Success: true, Metadata: j.Metadata}.Load()
	m.mu.Lock()
	if !internal {
		m.done[j.JID] = load
	}
	delete(m.running, j.JID)
	m.mu.Unlock()
	for ctx.Err() == nil {
		_, err := m.call(ctx, load)
		if err == nil {
			if asked(j) {
				m.s.asked.Add(1)
			} else {
				m.s.returns.Add(1)
			}
			return
		}
		m.s.retries.Add(1)
		m.s.o.Log.Debug("Return failed", "minion", m.id, "jid", j.JID, "err", err)
		if internal {
			return // the sender repeats its query
		}
		select {
		case <-time.After(minWait + rand.N(maxWait-minWait)):
		case <-ctx.Done():
		}
	}
}

// find returns the answer to a query about jobs, as a minion with cache_jobs does.
func (m *minion) find(fun string, args []any) any {
	var jid protocol.JID
	if len(args) > 0 {
		s, _ := payload.Text(args[0])
		jid = protocol.JID(s)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch fun {
	case "saltutil.running":
		list := []any{}
		for _, job := range m.running {
			list = append(list, job)
		}
		return list
	case "saltutil.find_job":
		if job := m.running[jid]; job != nil {
			return job
		}
		return map[string]any{}
	case "saltutil.find_cached_job":
		if load := m.done[jid]; load != nil {
			return load
		}
		return "Local jobs cache directory /var/cache/salt/minion/minion_jobs/" + string(jid) + " not found"
	}
	return nil
}
