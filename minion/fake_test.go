package minion

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

// testKey gives one of a few RSA keys, made once: making them is slow.
func testKey(t testing.TB, n int) *crypt.PrivateKey {
	t.Helper()
	testKeys.mu.Lock()
	defer testKeys.mu.Unlock()
	for len(testKeys.list) <= n {
		k, err := crypt.GenerateKey(2048)
		if err != nil {
			t.Fatal(err)
		}
		testKeys.list = append(testKeys.list, k)
	}
	return testKeys.list[n]
}

var testKeys struct {
	mu   sync.Mutex
	list []*crypt.PrivateKey
}

// Numbers of test keys.
const (
	minionKey = iota
	masterKey
	otherKey
	signKey
)

// fakeMaster is a master that does what a test tells it to.
type fakeMaster struct {
	t    *testing.T
	addr string
	srv  transport.Server
	// listen is the transport; port is that of publishes.
	listen transport.Listen
	port   int

	mu       sync.Mutex
	key      *crypt.PrivateKey
	identity protocol.AuthIdentity
	aes      *crypt.Key
	session  *crypt.Key
	pub      *crypt.PublicKey // of the minion, once accepted
	verdict  any              // nil accepts; else what Refuse gets
	auths    int
	authing  int
	together int // most sign-ins at one time
	serial   int64
	unsigned bool
	sigAlgo  string // of publishes; empty is Salt's default
	pillar   map[string]any
	answer   func(v protocol.Verified) (any, bool)              // first word on requests
	mangle   func(map[string]any) any                           // last word on sign-in replies
	requests []map[string]any                                   // in the order they came
	grew     chan struct{}                                      // closed when requests grew
	onAuth   func(r protocol.AuthRequest)                       // may be nil
	deaf     bool                                               // requests stay without an answer
	raw      func(v protocol.Verified) []byte                   // may be nil; the whole packed answer
	pillarer func(v protocol.Verified, e protocol.Envelope) any // may be nil
}

func newKey(t testing.TB) *crypt.Key {
	t.Helper()
	k, err := crypt.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// newFake starts a master at addr ("name:4506"); publishes come from the port before.
func newFake(t *testing.T, n *mem.Network, addr string) *fakeMaster {
	t.Helper()
	return newFakeOn(t, n.Listen, addr, 4505)
}

// newFakeOn is newFake for any transport. Port 0 means any.
func newFakeOn(t *testing.T, listen transport.Listen, addr string, port int) *fakeMaster {
	t.Helper()
	f := &fakeMaster{t: t, addr: addr, listen: listen, port: port, key: testKey(t, masterKey), aes: newKey(t), session: newKey(t), grew: make(chan struct{}),
		pillar: map[string]any{"color": "blue"}}
	f.identity = protocol.AuthIdentity{Key: f.key}
	f.start()
	t.Cleanup(f.stop)
	return f
}

func (f *fakeMaster) start() {
	host, _, _ := strings.Cut(f.addr, ":")
	srv, err := f.listen(transport.ServerOptions{RequestAddr: f.addr, PublishAddr: fmt.Sprint(host, ":", f.port), Handler: f.handle})
	if err != nil {
		f.t.Fatal(err)
	}
	f.srv = srv
	if a, ok := srv.PublishAddr().(*net.TCPAddr); ok {
		f.port = a.Port
	}
	if a, ok := srv.RequestAddr().(*net.TCPAddr); ok {
		f.addr = a.String()
	}
}

func (f *fakeMaster) stop() {
	if f.srv != nil {
		f.srv.Close()
		f.srv = nil
	}
}

// restart is a master that comes back with another shared key.
func (f *fakeMaster) restart() {
	f.stop()
	f.rotate()
	f.start()
}

// rotate changes the shared key.
func (f *fakeMaster) rotate() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.aes, f.serial = newKey(f.t), 0
}

func (f *fakeMaster) handle(ctx context.Context, _ string, body []byte) []byte {
	f.mu.Lock()
	deaf := f.deaf
	f.mu.Unlock()
	if deaf {
		<-ctx.Done()
		return nil
	}
	e, err := protocol.ParseEnvelope(body, payload.Limits{})
	if err != nil {
		return pack(protocol.ReplyText(err))
	}
	if e.Enc == protocol.EncClear {
		load, _ := payload.Map(e.Load)
		if load["cmd"] == "ping" {
			return pack(load)
		}
		return pack(f.auth(e))
	}
	f.mu.Lock()
	session, pub := f.session, f.pub
	f.mu.Unlock()
	if pub == nil {
		return pack(protocol.BadLoad)
	}
	v, err := protocol.OpenRequest(e, session, pub)
	if err != nil {
		return pack(protocol.ReplyText(err))
	}
	return f.reply(v, e)
}

func pack(v any) []byte {
	b, err := payload.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func (f *fakeMaster) auth(e protocol.Envelope) any {
	r, err := protocol.ParseAuthRequest(e)
	if err != nil {
		return protocol.ReplyText(err)
	}
	f.mu.Lock()
	f.auths++
	f.authing++
	f.together = max(f.together, f.authing)
	on := f.onAuth
	f.mu.Unlock()
	if on != nil {
		on(r)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.authing--
	var m map[string]any
	if f.verdict != nil {
		f.pub = nil
		m, err = r.Refuse(f.identity, f.verdict)
	} else {
		f.pub = r.Pub
		m, err = r.Accept(f.identity, f.aes, f.session, f.port)
	}
	if err != nil {
		f.t.Error(err)
	}
	if f.mangle != nil {
		return f.mangle(m)
	}
	return m
}

func (f *fakeMaster) reply(v protocol.Verified, e protocol.Envelope) []byte {
	f.mu.Lock()
	answer, pillarer := f.answer, f.pillarer
	f.mu.Unlock()
	var value any
	if answer != nil {
		var done bool
		if value, done = answer(v); done && value == errDeaf {
			return nil
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.raw != nil {
		if b := f.raw(v); b != nil {
			return b
		}
	}
	f.requests = append(f.requests, payload.PlainMap(v.Load()))
	close(f.grew)
	f.grew = make(chan struct{})
	if v.Cmd() == "_pillar" {
		if pillarer != nil {
			return pack(pillarer(v, e))
		}
		m, err := protocol.SealPillar(v, e, f.pillar, f.pub, f.key)
		if err != nil {
			f.t.Error(err)
		}
		return pack(m)
	}
	b, err := v.Reply(value)
	if err != nil {
		f.t.Error(err)
	}
	return pack(b)
}

// errDeaf as an answer closes the connection without one.
var errDeaf = errors.New("no answer")

// set changes the master under its lock.
func (f *fakeMaster) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// signIns are how many sign-ins there were, and how many at one time at most.
func (f *fakeMaster) signIns() (all, together int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.auths, f.together
}

// await waits for a request that fits and returns it. Requests that came before count.
func (f *fakeMaster) await(what string, fits func(map[string]any) bool) map[string]any {
	f.t.Helper()
	timeout := time.After(10 * time.Minute)
	for i := 0; ; {
		f.mu.Lock()
		list, grew := f.requests, f.grew
		f.mu.Unlock()
		for ; i < len(list); i++ {
			if fits(list[i]) {
				return maps.Clone(list[i])
			}
		}
		select {
		case <-grew:
		case <-timeout:
			f.t.Fatalf("no request came: %s; got %v", what, summary(list))
		}
	}
}

func summary(list []map[string]any) []string {
	var out []string
	for _, m := range list {
		out = append(out, fmt.Sprintf("%v %v %v", m["cmd"], m["jid"], m["tag"]))
	}
	return out
}

// count is how many requests fit.
func (f *fakeMaster) count(fits func(map[string]any) bool) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.requests {
		if fits(r) {
			n++
		}
	}
	return n
}

func isReturn(jid string) func(map[string]any) bool {
	return func(m map[string]any) bool { return m["cmd"] == "_return" && m["jid"] == jid }
}

func isEvent(tag string) func(map[string]any) bool {
	return func(m map[string]any) bool { return m["cmd"] == "_minion_event" && m["tag"] == tag }
}

// jobMap makes a job map; extra fields overwrite.
func jobMap(jid, fun string, extra map[string]any) map[string]any {
	m := map[string]any{"jid": jid, "fun": fun, "arg": []any{}, "tgt": "*", "tgt_type": "glob", "ret": "", "user": "root"}
	maps.Copy(m, extra)
	return m
}

// seal makes the bytes of a publish with the next serial.
func (f *fakeMaster) seal(load map[string]any) []byte {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serial++
	load = maps.Clone(load)
	if _, has := load["serial"]; !has {
		load["serial"] = f.serial
	}
	key := f.key
	if f.unsigned {
		key = nil
	}
	b, err := protocol.SealPublish(load, f.aes, key, f.sigAlgo)
	if err != nil {
		f.t.Fatal(err)
	}
	return b
}

func (f *fakeMaster) publish(load map[string]any) []byte {
	b := f.seal(load)
	f.send(b)
	return b
}

func (f *fakeMaster) send(b []byte) {
	if err := f.srv.Publish(b, nil); err != nil {
		f.t.Error(err)
	}
}

// subscribed waits until n minions listen.
func (f *fakeMaster) subscribed(n int) {
	f.t.Helper()
	for range 100_000 {
		if f.srv.Subscribers() >= n {
			return
		}
		time.Sleep(10 * time.Millisecond) // of the test's own clock
	}
	f.t.Fatalf("%d subscribers, want %d", f.srv.Subscribers(), n)
}

// testLog collects log lines.
type testLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *testLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(b))
	return len(b), nil
}

func (l *testLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

func (l *testLog) has(text string) bool { return l.times(text) > 0 }

func (l *testLog) times(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, s := range l.lines {
		if strings.Contains(s, text) {
			n++
		}
	}
	return n
}

// dump shows the last lines.
func (l *testLog) dump(t *testing.T, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Log(strings.Join(l.lines[max(0, len(l.lines)-n):], ""))
}

// rig is a minion under test.
type rig struct {
	t    *testing.T
	dir  string
	log  *testLog
	opts map[string]any
	o    Options
	m    *Minion
	mods []*modules.Module

	cancel context.CancelFunc
	done   chan error
	mu     sync.Mutex
	states []Status
}

// newRig prepares a minion with a key of its own and the given options over short test ones.
func newRig(t *testing.T, n *mem.Network, opts map[string]any) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), log: &testLog{}}
	pki := filepath.Join(r.dir, "pki")
	if err := os.Mkdir(pki, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(pki, "minion.pem"), testKey(t, minionKey).PEM(), 0o400); err != nil {
		t.Fatal(err)
	}
	r.opts = map[string]any{"id": "alpha", "pki_dir": pki, "cachedir": filepath.Join(r.dir, "cache"), "master": "one:4506",
		"transport": "mem", "mine_enabled": false, "random_reauth_delay": int64(0), "grains": map[string]any{"os": "Debian"}}
	maps.Copy(r.opts, opts)
	r.o = Options{Dialers: map[string]transport.Dialer{"mem": n.Dialer()}, OnState: func(s Status) {
		r.mu.Lock()
		r.states = append(r.states, s)
		r.mu.Unlock()
	}}
	r.o.Log = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return r
}

// start runs the minion; a rig can be started again after stop.
func (r *rig) start() {
	r.t.Helper()
	r.o.Opts = r.opts
	if r.o.Registry == nil {
		r.o.Registry = modules.NewRegistry(append([]*modules.Module{testModule, utilModule}, r.mods...)...)
	}
	m, err := New(r.o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	r.states = nil
	r.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	r.m, r.cancel, r.done = m, cancel, make(chan error, 1)
	go func() { r.done <- m.Run(ctx) }()
	r.t.Cleanup(func() { r.stop() })
}

// stop ends the minion and gives Run's error.
func (r *rig) stop() error {
	if r.done == nil {
		return nil
	}
	r.cancel()
	return r.wait()
}

// wait waits for the end of Run.
func (r *rig) wait() error {
	r.t.Helper()
	if r.done == nil {
		return nil
	}
	select {
	case err := <-r.done:
		r.done = nil
		return err
	case <-time.After(time.Hour):
		r.t.Fatal("the minion does not end")
		return nil
	}
}

// until waits for a state.
func (r *rig) until(want State) {
	r.t.Helper()
	for range 1_000_000 {
		r.mu.Lock()
		for _, s := range r.states {
			if s.State == want {
				r.states = nil
				r.mu.Unlock()
				return
			}
		}
		r.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
	}
	r.t.Fatalf("the minion is never %s", want)
}

// testModule has functions for tests.
var testModule = &modules.Module{Name: "test", Funcs: []modules.Def{
	{Name: "ping", Run: func(context.Context, *modules.Call) (any, error) { return true, nil }},
	{Name: "echo", Ordered: true, Params: []modules.Param{{Name: "text"}}, Run: func(_ context.Context, c *modules.Call) (any, error) {
		return c.Value("text"), nil
	}},
	{Name: "sleep", Params: []modules.Param{{Name: "length"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		d, err := c.Seconds("length")
		if err != nil {
			return nil, err
		}
		select {
		case <-time.After(d):
			return true, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}},
	{Name: "shown", Out: "highstate", Run: func(context.Context, *modules.Call) (any, error) { return "text", nil }},
	{Name: "fail", Run: func(context.Context, *modules.Call) (any, error) { return nil, modules.Errorf("no %s", "disk") }},
	{Name: "gen", Run: func(_ context.Context, c *modules.Call) (any, error) {
		for i := range 3 {
			c.Progress(int64(i))
		}
		return []any{int64(0), int64(1), int64(2)}, nil
	}},
	{Name: "pillar", Run: func(_ context.Context, c *modules.Call) (any, error) { return c.PillarData(), nil }},
	{Name: "grain", Params: []modules.Param{{Name: "n"}}, Run: func(_ context.Context, c *modules.Call) (any, error) {
		return c.Grain(c.Str("n")), nil
	}},
	{Name: "random", Run: func(context.Context, *modules.Call) (any, error) {
		b := make([]byte, 64)
		rand.Read(b)
		b[0] = 0xff
		return b, nil
	}},
}}

// utilModule is as much of saltutil as the agent's tests need.
var utilModule = &modules.Module{Name: "saltutil", Funcs: []modules.Def{
	{Name: "find_job", Params: []modules.Param{{Name: "jid"}}, Run: func(_ context.Context, c *modules.Call) (any, error) {
		if j := c.Agent.Job(c.Str("jid")); j != nil {
			return j, nil
		}
		return map[string]any{}, nil
	}},
	{Name: "running", Run: func(_ context.Context, c *modules.Call) (any, error) {
		list := []any{}
		for _, j := range c.Agent.Running() {
			list = append(list, j)
		}
		return list, nil
	}},
	{Name: "kill_job", Params: []modules.Param{{Name: "jid"}}, Run: func(_ context.Context, c *modules.Call) (any, error) {
		return c.Agent.Signal(c.Str("jid"), 9), nil
	}},
	{Name: "term_job", Params: []modules.Param{{Name: "jid"}}, Run: func(_ context.Context, c *modules.Call) (any, error) {
		return c.Agent.Signal(c.Str("jid"), 15), nil
	}},
	{Name: "refresh_pillar", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return true, c.Agent.RefreshPillar(ctx, true)
	}},
}}

// bubble runs a test on a clock of its own, so that waits of minutes take no time.
func bubble(t *testing.T, f func(t *testing.T, n *mem.Network)) {
	t.Helper()
	for i := range 4 {
		testKey(t, i)
	}
	synctest.Test(t, func(t *testing.T) { f(t, &mem.Network{}) })
}

// jidAt is a job id that is unique in a test.
func jidAt(n int) string {
	return string(protocol.NewJID(time.Date(2026, 1, 2, 3, 4, 5, n*1000, time.UTC)))
}
