package master_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/mem"
	"github.com/brine-salt/brine/protocol/transport/tcp"
	"github.com/brine-salt/brine/protocol/transport/ws"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// keyPool contains the RSA keys that all tests share.
var keyPool = struct {
	sync.Mutex
	keys []*crypt.PrivateKey
}{}

func testKey(t testing.TB, i int) *crypt.PrivateKey {
	t.Helper()
	keyPool.Lock()
	defer keyPool.Unlock()
	for len(keyPool.keys) <= i {
		k, err := crypt.GenerateKey(2048)
		if err != nil {
			t.Fatal(err)
		}
		keyPool.keys = append(keyPool.keys, k)
	}
	return keyPool.keys[i]
}

// A rig is a serving master and its network.
type rig struct {
	*master.Master
	t      testing.TB
	dialer transport.Dialer
	ctx    context.Context // the master serves until ctx is cancelled
	stop   context.CancelFunc
	done   chan error
}

// transports are all transports that open sockets.
var transports = map[string]struct {
	listen transport.Listen
	dialer transport.Dialer
}{"zeromq": {zeromq.Listen, zeromq.New()}, "tcp": {tcp.Listen, tcp.New()}, "ws": {ws.Listen, ws.New()}}

// serve starts a master and stops it at the end of the test. The master uses the in-memory transport, or ZeroMQ over
// loopback if o.Network.Listen is set.
func serve(t testing.TB, o master.Options) *rig {
	t.Helper()
	var dialer transport.Dialer
	if o.Network.Listen == nil {
		var n mem.Network
		o.Network.Listen, dialer = n.Listen, n.Dialer()
	} else {
		dialer = zeromq.New()
	}
	if o.PKIDir == "" {
		// All tests use the same key, because creating one is slow.
		o.PKIDir = filepath.Join(t.TempDir(), "pki")
	}
	if _, err := os.Stat(filepath.Join(o.PKIDir, "master.pem")); err != nil {
		if err := os.MkdirAll(o.PKIDir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(o.PKIDir, "master.pem"), testKey(t, 0).PEM(), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	o.Network.Interface, o.Network.PublishPort, o.Network.RetPort = "127.0.0.1", master.AnyPort,
		master.AnyPort
	if o.Log == nil && testing.Verbose() {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	m, err := master.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &rig{Master: m, t: t, dialer: dialer, ctx: ctx, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- m.Serve(ctx) }()
	select {
	case <-m.Ready():
	case err := <-r.done:
		t.Fatal("serve:", err)
	}
	t.Cleanup(r.end)
	return r
}

// end stops the master and waits for Serve to return.
func (r *rig) end() {
	r.t.Helper()
	r.stop()
	select {
	case err := <-r.done:
		r.done <- nil
		if err != nil {
			r.t.Error("serve:", err)
		}
	case <-time.After(patience):
		buf := make([]byte, 1<<20)
		r.t.Fatalf("the master does not end:\n%s", buf[:runtime.Stack(buf, true)])
	}
}

// A minion is the wire protocol of a minion, without modules.
type minion struct {
	t    testing.TB
	rig  *rig
	id   string
	key  *crypt.PrivateKey
	conn transport.Requester

	signed    protocol.SigninResult
	requester protocol.Requester

	mu   sync.Mutex // guards jobs and read
	jobs []protocol.Job
	read []map[string]any // all jobs that it could decrypt, whatever their target

	// run returns the result of a job; if it is nil, every job returns true. With errSilent the minion does not
	// return anything.
	run  func(j protocol.Job) (any, error)
	code int // retcode of the returns
	// mayMiss allows messages that the minion cannot decrypt.
	mayMiss bool
	// parallel makes the minion run jobs in parallel.
	parallel bool
	sub      transport.Subscriber
	wg       sync.WaitGroup
}

var errSilent, errFailed = errors.New("no return"), errors.New("retcode 1")

// newMinion returns a minion with the i-th test key. Key 0 is the master's own.
func (r *rig) newMinion(id string, i int) *minion {
	r.t.Helper()
	m := &minion{t: r.t, rig: r, id: id, key: testKey(r.t, i)}
	var err error
	if m.conn, err = r.dialer.Requester(transport.ClientOptions{RequestAddr: r.RequestAddr().String(), PublishAddr: r.PublishAddr().String()}); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(m.close)
	return m
}

func (m *minion) close() {
	if m.sub != nil {
		m.sub.Close()
	}
	m.conn.Close()
	m.wg.Wait()
}

// send sends a raw request and decodes the reply.
func (m *minion) send(body []byte) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	b, err := m.conn.Request(ctx, body)
	if err != nil {
		return nil, err
	}
	return payload.Unmarshal(b)
}

func (m *minion) sendValue(v any) (any, error) {
	b, err := payload.Marshal(v)
	if err != nil {
		m.t.Fatal(err)
	}
	return m.send(b)
}

// signIn signs in once and returns the status.
func (m *minion) signIn() protocol.SigninStatus {
	m.t.Helper()
	return m.signInWith(protocol.Signin{})
}

func (m *minion) signInWith(s protocol.Signin) protocol.SigninStatus {
	m.t.Helper()
	st, err := m.trySignIn(s)
	if err != nil {
		m.t.Fatal("sign-in:", err)
	}
	return st
}

func (m *minion) trySignIn(s protocol.Signin) (st protocol.SigninStatus, err error) {
	s.ID, s.Key = m.id, m.key
	if s.MasterKey == nil {
		s.MasterKey = m.signed.MasterKey
	}
	e, err := s.Request()
	if err != nil {
		return st, err
	}
	b, err := e.Marshal()
	if err != nil {
		return st, err
	}
	v, err := m.send(b)
	if err != nil {
		return st, err
	}
	res, err := s.Reply(v)
	if err != nil {
		return st, fmt.Errorf("%w in %v", err, v)
	}
	if res.Status == protocol.Accepted {
		m.signed = res
		tok, err := protocol.RequestToken(m.key)
		if err != nil {
			return st, err
		}
		m.requester = protocol.Requester{ID: m.id, Session: res.Session, Token: tok}
	}
	return res.Status, nil
}

// accepted returns a minion that has signed in.
func (r *rig) accepted(id string, i int) *minion {
	r.t.Helper()
	m := r.newMinion(id, i)
	if st := m.signIn(); st != protocol.Accepted {
		r.t.Fatalf("sign-in of %s: %v", id, st)
	}
	return m
}

// call sends an encrypted request and returns the decrypted reply.
func (m *minion) call(load map[string]any) (any, error) {
	m.t.Helper()
	e, nonce, err := m.requester.Pack(load, time.Now())
	if err != nil {
		m.t.Fatal(err)
	}
	b, err := e.Marshal()
	if err != nil {
		m.t.Fatal(err)
	}
	v, err := m.send(b)
	if err != nil {
		return nil, err
	}
	return m.requester.OpenReply(v, nonce)
}

// must is call, but an error ends the test.
func (m *minion) must(load map[string]any) any {
	m.t.Helper()
	v, err := m.call(load)
	if err != nil {
		m.t.Fatalf("%v: %v", load["cmd"], err)
	}
	return v
}

// pillar requests the minion's pillar. load adds to the request and overrides its fields.
func (m *minion) pillar(load map[string]any) (map[string]any, error) {
	m.t.Helper()
	l := map[string]any{"cmd": "_pillar", "ver": "2", "grains": map[string]any{"os": "Debian"}, "saltenv": nil}
	for k, v := range load {
		l[k] = v
	}
	e, nonce, err := m.requester.Pack(l, time.Now())
	if err != nil {
		m.t.Fatal(err)
	}
	b, _ := e.Marshal()
	v, err := m.send(b)
	if err != nil {
		return nil, err
	}
	return protocol.OpenPillar(v, m.key, m.signed.MasterKey, "", "", nonce)
}

// subscribe connects the minion to the publish channel. It then receives jobs and runs them.
func (m *minion) subscribe() *minion {
	m.t.Helper()
	ready := make(chan struct{})
	var once sync.Once
	var err error
	before := m.rig.Subscribers()
	m.sub, err = m.rig.dialer.Subscribe(context.Background(), transport.ClientOptions{ID: m.id, RequestAddr: m.rig.RequestAddr().String(), PublishAddr: m.rig.PublishAddr().String(),
		OnState: func(s transport.State) {
			if s.Connected {
				once.Do(func() { close(ready) })
			}
		}})
	if err != nil {
		m.t.Fatal(err)
	}
	select {
	case <-ready:
	case <-time.After(patience):
		m.t.Fatal("cannot subscribe")
	}
	eventually(m.t, "subscribed", func() bool { return m.rig.Subscribers() > before })
	messages := m.sub.Messages() // a test may replace sub later
	m.wg.Go(func() {
		for msg := range messages {
			if m.parallel {
				m.wg.Go(func() { m.published(msg) })
			} else {
				m.published(msg)
			}
		}
	})
	return m
}

func (m *minion) published(msg []byte) {
	e, err := protocol.ParseEnvelope(msg, payload.Limits{})
	if err != nil {
		m.t.Errorf("%s: %v", m.id, err)
		return
	}
	job, err := protocol.OpenPublish(e, m.signed.AES, m.signed.MasterKey, true)
	if errors.Is(err, protocol.ErrReauth) {
		st, serr := m.trySignIn(protocol.Signin{})
		if serr != nil && !m.over(serr) {
			m.t.Errorf("%s: sign-in: %v", m.id, serr)
		}
		if st != protocol.Accepted {
			return
		}
		job, err = protocol.OpenPublish(e, m.signed.AES, m.signed.MasterKey, true)
	}
	if errors.Is(err, protocol.ErrReauth) && m.mayMiss {
		return // a probe is sent under the keys of several tenants
	}
	if err != nil {
		m.t.Errorf("%s: publish: %v", m.id, err)
		return
	}
	j, err := protocol.ParseJob(job)
	if err != nil {
		m.t.Errorf("%s: %v", m.id, err)
		return
	}
	m.mu.Lock()
	m.read = append(m.read, job)
	m.mu.Unlock()
	if ok, _ := target.Match(j.TgtType, j.Tgt, j.Delimiter, target.Subject{ID: m.id, Grains: func() map[string]any { return map[string]any{"os": "Debian", "kind": m.id} }}); !ok {
		return
	}
	if j.Announced() {
		got, err := m.call(map[string]any{"cmd": protocol.FetchCmd, "jid": string(j.JID)})
		load, _ := payload.Map(got)
		if err == nil {
			j, err = protocol.ParseJob(load)
		}
		if err != nil && m.over(err) {
			return
		}
		if err != nil {
			m.t.Errorf("%s: fetch: %v %v", m.id, got, err)
			return
		}
	}
	m.mu.Lock()
	m.jobs = append(m.jobs, j)
	m.mu.Unlock()
	var ret any = true
	code := m.code
	if m.run != nil {
		if ret, err = m.runAll(j); errors.Is(err, errSilent) {
			return
		}
		if errors.Is(err, errFailed) {
			code = 1
		}
	}
	load := protocol.Return{JID: j.JID, ID: m.id, Fun: j.FunValue(), FunArgs: j.ArgValue(), Return: ret, Retcode: code, Success: code == 0}.Load()
	if meta, ok := job["metadata"]; ok {
		load["metadata"] = meta
	}
	if _, err := m.call(load); err != nil && !m.over(err) {
		m.t.Errorf("%s: return: %v", m.id, err)
	}
}

// over reports whether a request failed because the test or its master has ended.
func (m *minion) over(err error) bool {
	return errors.Is(err, transport.ErrClosed) || m.rig.ctx.Err() != nil
}

// runAll runs a job. The saltutil queries of a compound job are passed to run one by one.
func (m *minion) runAll(j protocol.Job) (any, error) {
	if !j.Compound || !strings.HasPrefix(j.Fun[0], "saltutil.") {
		return m.run(j)
	}
	all := make(map[string]any)
	for i, fun := range j.Fun {
		one := j
		one.Compound, one.Fun, one.Args = false, j.Fun[i:i+1], j.Args[i:i+1]
		var err error
		if all[fun], err = m.run(one); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// got returns the functions of the jobs that the minion received.
func (m *minion) got() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for _, j := range m.jobs {
		out = append(out, strings.Join(j.Fun, ","))
	}
	return out
}

// eventually waits until f returns true. what names the condition if the wait times out.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain:", what)
		}
	}
}
