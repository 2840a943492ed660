//go:build !windows

package restapi_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/swarm"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/master/reactor"
	"github.com/brine-salt/brine/master/runner"
	runhost "github.com/brine-salt/brine/master/runner/host"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/sqlite"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/configmod"
	"github.com/brine-salt/brine/modules/saltutil"
	"github.com/brine-salt/brine/modules/state"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
	_ "github.com/brine-salt/brine/states/saltmod"
)

// lossy is a shared store whose messages of returns and events are delayed and randomly lost. A lost message is
// reported to the master as missed, as when it reads too late.
type lossy struct{ store.Shared }

func (l lossy) Unwrap() store.Store { return l.Shared }

func (l lossy) Follow(ctx context.Context, self string, f func([]store.Message)) error {
	return l.Shared.Follow(ctx, self, func(list []store.Message) {
		if list == nil {
			f(nil)
			return
		}
		var kept []store.Message
		for _, m := range list {
			if m.Kind != "return" && m.Kind != "event" || rand.N(3) > 0 {
				kept = append(kept, m)
			}
		}
		time.Sleep(rand.N(10 * time.Millisecond)) // this is the delay
		if len(kept) > 0 {
			f(kept)
		}
		if len(kept) < len(list) {
			f(nil)
		}
	})
}

// lossySockets are sockets in front of a master's whose connections are slow and break at random.
func lossySockets(t *testing.T, at ipc.Sockets) ipc.Sockets {
	t.Helper()
	front := ipc.Master(shortDir(t))
	l, err := net.Listen("unix", front.Pub)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(front.Marker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		open.Wait()
	})
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer c.Close()
				m, err := net.Dial("unix", at.Pub)
				if err != nil {
					return
				}
				defer m.Close()
				open.Go(func() { // until the client leaves
					_, _ = io.Copy(io.Discard, c)
					m.Close()
				})
				for b := make([]byte, 2000); rand.N(8) > 0; time.Sleep(rand.N(5 * time.Millisecond)) {
					n, err := m.Read(b)
					if err != nil {
						return
					}
					if _, err := c.Write(b[:n]); err != nil {
						return
					}
				}
			})
		}
	})
	return front
}

// shortDir is a temporary directory with a path short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bus")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// reader is a client that follows returns by events, and what it has received.
type reader struct {
	mu   sync.Mutex // guards the fields below
	seen map[string]bool
	gap  bool // it was told that it missed something
}

func (r *reader) event(e events.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Missed > 0 {
		r.gap = true
	} else if _, id, ok := strings.Cut(e.Tag, "/ret/"); ok {
		r.seen[e.Tag[:len("salt/job/20260101000000000000")]+" "+id] = true
	}
}

// TestLossyBus runs all kinds of readers on a bus that drops, delays and disconnects at random. A reader that waits
// for a job gets every minion's return, and one that follows events gets all of them or is told that some are
// missing.
func TestLossyBus(t *testing.T) {
	const minions, away = 40, "away"
	path := filepath.Join(t.TempDir(), "db")
	dir := shortDir(t)
	sockets := ipc.Master(dir + "/run")
	var log bytes.Buffer
	var logging sync.Mutex
	logger := slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
		logging.Lock()
		defer logging.Unlock()
		return log.Write(b)
	}), nil))
	hook := &reader{seen: make(map[string]bool)}
	options := func() master.Options {
		db, err := sqlite.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return master.Options{Store: lossy{db},
			Shared:   &master.Shared{Key: []byte("a sealing key for tests")},
			Keys:     master.KeyOptions{AutoAccept: true},
			Security: master.SecurityOptions{AuthRate: -1},
			Events:   master.EventOptions{NoAuth: true},
			Jobs:     master.JobOptions{Timeout: 2 * time.Second, GatherTimeout: time.Second}}
	}
	o := options()
	o.CacheDir, o.PKIDir, o.Log = dir+"/cache", dir+"/pki", logger
	var runners *runner.Client
	o.Local = &master.Local{SockDir: dir + "/run", NoJobCache: true, Call: func(_ context.Context, c master.MasterCall) (master.MasterResult, error) {
		q := runner.Request{Fun: c.Fun, Args: c.Args, Kwargs: c.Kwargs, JID: string(protocol.NewJID(time.Now())), User: c.User}
		go runners.Call(context.Background(), q)
		return master.MasterResult{JID: q.JID, Tag: "salt/run/" + q.JID}, nil
	}}
	o.Events.Hooks = []master.Hook{{Tags: []string{"salt/job/*/ret/*"}, Buffer: 3,
		Func: func(_ context.Context, e events.Event) {
			hook.event(e)
			time.Sleep(rand.N(4 * time.Millisecond)) // it is slow
		}}}
	s := newSiteOf(t, o, nil)
	other := newSiteOf(t, options(), nil)
	var addrs []swarm.Addr
	for _, x := range []*site{s, other} {
		addrs = append(addrs, swarm.Addr{Request: x.master.RequestAddr().String()})
	}
	sw, err := swarm.New(swarm.Options{Masters: addrs, Dialer: zeromq.New(), Minions: minions, Do: func(context.Context, string, protocol.Job) any {
		time.Sleep(rand.N(300 * time.Millisecond)) // returns come one after the other
		return true
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		sw.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	if err := sw.Wait(ctx, func(st swarm.Stats) bool { return st.Ready == minions }); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); len(s.master.Present()) < minions; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d minions are known to be connected", len(s.master.Present()), minions)
		}
	}
	reactions := &reader{seen: make(map[string]bool)}
	r, err := reactor.New(reactor.Options{Master: s.master, Queue: 3, Workers: 1, Log: logger, Rules: []reactor.Rule{{Tag: "salt/job/*/ret/*",
		Do: func(_ context.Context, e events.Event) error {
			reactions.event(e)
			time.Sleep(rand.N(4 * time.Millisecond))
			return nil
		}}}})
	if err != nil {
		t.Fatal(err)
	}
	reacted := make(chan struct{})
	go func() {
		defer close(reacted)
		r.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-reacted })
	streamed, subscribed, logged := &reader{seen: make(map[string]bool)}, &reader{seen: make(map[string]bool)}, &reader{seen: make(map[string]bool)}
	var following sync.WaitGroup
	t.Cleanup(func() { cancel(); following.Wait() })
	following.Go(func() { streamed.follow(ctx, s) })
	sub := s.master.Events().Subscribe(events.SubscribeOptions{Prefix: "salt/job/", Buffer: 3})
	t.Cleanup(sub.Close)
	following.Go(func() {
		for {
			e, err := sub.Next(ctx)
			if err != nil {
				return
			}
			subscribed.event(e)
			time.Sleep(rand.N(4 * time.Millisecond))
		}
	})
	cursor := s.master.FollowCursor()
	following.Go(func() {
		for e := range s.master.Follow(ctx, cursor, "salt/job/*/ret/*") {
			logged.event(e.Event)
			time.Sleep(rand.N(4 * time.Millisecond))
		}
	})

	salt, err := client.New(client.Options{Dialer: zeromq.New(), Addr: s.master.RequestAddr().String(), Events: lossySockets(t, sockets), CacheDir: dir + "/cache",
		User: "root", KeyFile: dir + "/cache/.root_key"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { salt.Close() })
	short := client.RunOptions{Timeout: 3 * time.Second}
	host := runner.Embedded(s.master, "m_master", nil, t.TempDir(), logger)
	functions := modules.NewRegistry(state.Module, saltutil.Module, configmod.Module)
	host.Exec = func(ctx context.Context, q modules.Request) (any, error) {
		none := func() map[string]any { return map[string]any{} }
		res := functions.Run(ctx, &modules.Env{ID: host.ID, Log: logger, Grains: none, Pillar: none,
			Opts: func() map[string]any {
				return map[string]any{"file_client": "local", "cachedir": dir + "/cache", "test": false}
			},
			MasterHost: runner.Here(host, runners, runner.NewWheel(host))}, q)
		return res.Return, res.Err
	}
	runners = runner.NewClient(host)
	var lastJID string
	readers := map[string]func(got map[string]bool) error{
		"salt": func(got map[string]bool) error {
			run, err := salt.Run(t.Context(), client.Command{Fun: "test.ping", Tgt: "*"}, short)
			if err != nil {
				return err
			}
			defer run.Close()
			for ret := range run.Returns(t.Context()) {
				got[ret.ID] = ret.Status == client.Returned
			}
			lastJID = run.JID
			return run.Err()
		},
		"salt --static": func(got map[string]bool) error {
			return salt.Batch(t.Context(), client.Command{Fun: "test.ping", Tgt: "*"}, client.BatchOptions{RunOptions: short, Size: "100%",
				Down: func(ids []string) {
					for _, id := range ids {
						got[id] = false
					}
				}}, func(ret client.Return) { got[ret.ID] = ret.Status == client.Returned })
		},
		"Run": func(got map[string]bool) error {
			all, err := s.master.Run(t.Context(), master.Job{Fun: "test.ping", Tgt: "*"})
			for id, res := range all {
				got[id] = res.Status == master.Returned
			}
			return err
		},
		"Submit": func(got map[string]bool) error {
			run, err := s.master.Submit(t.Context(), master.Job{Fun: "test.ping", Tgt: "*"})
			if err != nil {
				return err
			}
			defer run.Close()
			for {
				res, err := run.Next(t.Context())
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				got[res.ID] = res.Status == master.Returned
			}
		},
		"orchestration": func(got map[string]bool) error {
			res := runners.Call(t.Context(), runner.Request{Fun: "state.orchestrate_single", Args: []any{"salt.function", "test.ping"},
				Kwargs: map[string]any{"tgt": "*"}, User: "root"})
			all, _ := res.Return.(map[string]any)
			states, _ := payload.Map(payload.Plain(all[host.ID]))
			if !res.Success || len(states) != 1 {
				return fmt.Errorf("the orchestration returned %v", res.Return)
			}
			for _, x := range states {
				changes, _ := x.(m)["changes"].(m)
				ret, _ := changes["ret"].(m)
				for id, value := range ret {
					got[id] = value == true
				}
			}
			return nil
		},
		"runner": func(got map[string]bool) error {
			all, err := host.Run(t.Context(), runhost.Job{Fun: "test.ping", Tgt: "*", Expect: true, Timeout: 2 * time.Second, Gather: time.Second})
			for id, a := range all {
				got[id] = !a.Failed
			}
			return err
		},
		"/run": func(got map[string]bool) error {
			code, v := s.json("POST", "/run", m{"client": "local", "tgt": "*", "fun": "test.ping", "username": "alice", "password": "secret", "eauth": "file"})
			if code != http.StatusOK {
				return fmt.Errorf("%d %v", code, v)
			}
			for id, value := range v["return"].([]any)[0].(m) {
				got[id] = value == true
			}
			return nil
		},
		"/v1/jobs": func(got map[string]bool) error {
			ids := []string{}
			for i := range minions {
				ids = append(ids, sw.ID(i))
			}
			code, v := s.json("POST", "/v1/jobs", m{"tgt": ids, "fun": "test.ping"})
			for end := time.Now().Add(patience); code/100 == 2 && v["done"] != true && time.Now().Before(end); {
				code, v = s.json("GET", "/v1/jobs/"+v["id"].(string)+"?wait=5", nil)
			}
			if code/100 != 2 {
				return fmt.Errorf("%d %v", code, v)
			}
			for id, x := range v["minions"].(m) {
				got[id] = x.(m)["status"] == "returned"
			}
			return nil
		},
	}
	for name, read := range readers {
		t.Run(name, func(t *testing.T) {
			for range 3 {
				got := make(map[string]bool)
				if err := read(got); err != nil {
					t.Fatal(err)
				}
				for i := range minions {
					if !got[sw.ID(i)] {
						t.Errorf("%s is missing: in the answer %v", sw.ID(i), got)
						break
					}
				}
				if len(got) != minions {
					t.Errorf("%d minions in the answer", len(got))
				}
			}
		})
	}
	t.Run("a runner's end", func(t *testing.T) {
		for range 10 {
			res, err := salt.Call(t.Context(), client.FunctionCall{Kind: "runner", Fun: "test.arg", Args: []any{"x"}})
			if err != nil || res["success"] != true {
				t.Fatal(res, err)
			}
		}
	})
	t.Run("followers", func(t *testing.T) {
		for name, r := range map[string]*reader{"a hook": hook, "the reactor": reactions, "/events": streamed,
			"a subscription": subscribed, "Follow": logged} {
			logging.Lock()
			said := strings.Contains(log.String(), "The reactor is behind and missed events")
			logging.Unlock()
			for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
				r.mu.Lock()
				n, gap := 0, r.gap || name == "the reactor" && said
				for i := range minions {
					if r.seen["salt/job/"+lastJID+" "+sw.ID(i)] {
						n++
					}
				}
				r.mu.Unlock()
				if n == minions || gap {
					t.Logf("%s saw %d of %d returns and knows of a gap: %v", name, n, minions, gap)
					break
				}
				if time.Now().After(end) {
					t.Errorf("%s saw %d of %d returns and believes that it missed nothing", name, n, minions)
					break
				}
			}
		}
	})
}

type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// follow reads the server-sent events of returns.
func (r *reader) follow(ctx context.Context, s *site) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server.URL+"/events", nil)
	if err != nil {
		s.t.Error(err)
		return
	}
	q.Header.Set("X-Auth-Token", s.token)
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			s.t.Error(err)
		}
		return
	}
	defer resp.Body.Close()
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		line := in.Text()
		if strings.HasPrefix(line, ": events before this one are lost") {
			r.event(events.Event{Missed: 1})
		}
		if tag, ok := strings.CutPrefix(line, "tag: "); ok {
			r.event(events.Event{Tag: tag})
		}
	}
}
