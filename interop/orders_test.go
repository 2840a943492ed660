package interop

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/saltutil"
	"github.com/brine-salt/brine/modules/test"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// embedded returns brine's master in this process, over ZeroMQ on loopback. It accepts every minion, unless it
// announces minions (Advertise).
func embedded(t testing.TB, o master.Options) *master.Master {
	t.Helper()
	dir := t.TempDir()
	o.PKIDir, o.CacheDir, o.Keys.AutoAccept = dir+"/pki", dir+"/cache",
		len(o.Network.Advertise) == 0
	o.Network.Interface, o.Network.PublishPort, o.Network.RetPort = "127.0.0.1", master.AnyPort,
		master.AnyPort
	m, err := master.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- m.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	<-m.Ready()
	return m
}

func portOf(a net.Addr) int { return a.(*net.TCPAddr).Port }

// agent runs brine's minion under an embedded master until stop is called.
func agent(t testing.TB, m *master.Master, home string, opts map[string]any, list ...*modules.Module) (stop func()) {
	t.Helper()
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	o := map[string]any{"id": "one", "master": "127.0.0.1", "master_port": int64(portOf(m.RequestAddr())), "publish_port": int64(portOf(m.PublishAddr())),
		"pki_dir": home + "/pki", "cachedir": home + "/cache", "mine_enabled": false}
	for k, v := range opts {
		o[k] = v
	}
	n, err := minion.New(minion.Options{Opts: o, Log: slog.New(slog.DiscardHandler), Registry: modules.NewRegistry(append(list, test.Module, saltutil.Module)...),
		Dialers: map[string]transport.Dialer{"zeromq": zeromq.New()}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- n.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ran; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// ledger is a module that records its arguments, to show which jobs ran and how often.
type ledger struct {
	mu    sync.Mutex
	lines []string
}

func (l *ledger) module() *modules.Module {
	return &modules.Module{Name: "ledger", Funcs: []modules.Def{{Name: "add", Doc: "Add a line.", Params: []modules.Param{{Name: "line"}},
		Run: func(_ context.Context, c *modules.Call) (any, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.lines = append(l.lines, c.Str("line"))
			return len(l.lines), nil
		}}}}
}

func (l *ledger) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

func addLine(id, line string) master.Order {
	return master.Order{ID: id, Job: master.Job{Fun: "ledger.add", Args: []any{line}, Tgt: "one", TgtType: "list"}}
}

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// ended waits for orders and returns their status on one minion.
func ended(t testing.TB, m *master.Master, minion string, ids ...string) []string {
	t.Helper()
	var out []string
	for _, id := range ids {
		o, err := m.AwaitOrder(soon(t), id)
		if err != nil {
			t.Fatalf("%s: %+v %v", id, o, err)
		}
		out = append(out, o.Results[minion].Status.String())
	}
	return out
}

// TestOrdersReachOurMinion checks that orders placed before the minion existed run once, in order, when it connects,
// that an expired order never runs, and that no order runs again after the minion or its connection restarts.
func TestOrdersReachOurMinion(t *testing.T) {
	m := embedded(t, master.Options{})
	var l ledger
	home := filepath.Join(t.TempDir(), "minion")
	for _, line := range []string{"a", "b", "c"} {
		if _, err := m.PlaceOrder(soon(t), addLine(line, line)); err != nil {
			t.Fatal(err)
		}
	}
	short := addLine("expired", "expired")
	short.TTL = time.Millisecond
	if _, err := m.PlaceOrder(soon(t), short); err != nil {
		t.Fatal(err)
	}
	if got := ended(t, m, "one", "expired"); got[0] != "undeliverable" {
		t.Fatal(got)
	}
	stop := agent(t, m, home, nil, l.module())
	if got := ended(t, m, "one", "a", "b", "c"); !slices.Equal(got, []string{"returned", "returned", "returned"}) {
		t.Fatal(got)
	}
	stop()
	if _, err := m.PlaceOrder(soon(t), addLine("d", "d")); err != nil {
		t.Fatal(err)
	}
	agent(t, m, home, map[string]any{"minion_deny_functions": []any{"ledger.forbidden", "test.echo"}}, l.module())
	if got := ended(t, m, "one", "d"); got[0] != "returned" {
		t.Fatal(got)
	}
	out, err := m.RunOrder(soon(t), master.Order{ID: "denied", Job: master.Job{Fun: "test.echo", Args: []any{"x"}, Tgt: "*"}})
	if err != nil || out.Results["one"].Status != master.Refused {
		t.Errorf("%+v %v", out, err)
	}
	if got := l.all(); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Error(got)
	}
}

// TestOrderIsCancelledOnOurMinion checks that cancelling an order ends the running job.
func TestOrderIsCancelledOnOurMinion(t *testing.T) {
	m := embedded(t, master.Options{})
	begun := make(chan struct{}, 1)
	slow := &modules.Module{Name: "slow", Funcs: []modules.Def{{Name: "wait", Doc: "Wait for the end.", Run: func(ctx context.Context, _ *modules.Call) (any, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}}}}
	agent(t, m, filepath.Join(t.TempDir(), "minion"), nil, slow)
	wait := master.Order{ID: "wait", Job: master.Job{Fun: "slow.wait", Tgt: "one", TgtType: "list"}}
	if _, err := m.PlaceOrder(soon(t), wait); err != nil {
		t.Fatal(err)
	}
	<-begun
	out, err := m.CancelOrder(soon(t), "wait")
	if res := out.Results["one"]; err != nil || res.Status != master.Cancelled || res.StillRunning {
		t.Fatalf("%+v %v", out, err)
	}
	wait.ID, wait.Deadline = "late", time.Now().Add(time.Second)
	if _, err := m.PlaceOrder(soon(t), wait); err != nil {
		t.Fatal(err)
	}
	// On a slow machine the deadline may pass before the job begins. Then it never runs.
	if got := ended(t, m, "one", "late"); got[0] != "timed out" && got[0] != "undeliverable" {
		t.Fatal(got)
	}
}

// TestOurMinionJoins checks that a minion with the configuration of its announcement joins and runs the pending
// orders.
func TestOurMinionJoins(t *testing.T) {
	m := embedded(t, master.Options{Network: master.NetworkOptions{Advertise: []string{"127.0.0.1"}}})
	b, err := m.EnsureMinion(soon(t), master.MinionSpec{ID: "one", Grains: map[string]any{"role": "db"}})
	if err != nil {
		t.Fatal(err)
	}
	var l ledger
	o := addLine("first", "first")
	o.Tgt, o.TgtType = "role:db", "grain"
	if _, err := m.PlaceOrder(soon(t), o); err != nil {
		t.Fatal(err)
	}
	conf := b.Conf()
	conf["master_port"], conf["publish_port"] = int64(b.RetPort), int64(b.PublishPort)
	agent(t, m, filepath.Join(t.TempDir(), "minion"), conf, l.module())
	if got := ended(t, m, "one", "first"); got[0] != "returned" {
		t.Fatal(got)
	}
	if list, err := m.Announced(soon(t), ""); err != nil || len(list) != 1 || !list[0].Joined {
		t.Error(list, err)
	}
}
