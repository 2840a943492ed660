package client_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
)

// fake is a master without minions: the event sockets are real, the request port is a function call.
type fake struct {
	t    *testing.T
	bus  *events.Bus
	ipc  *ipc.Server
	dir  string
	jids protocol.JIDClock
	wg   sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	minions map[string]minion
	keys    []string // the local keys that are valid; the first is the current one
	jobs    []map[string]any
}

// minion describes how a minion behaves.
type minion struct {
	dead    bool
	delay   time.Duration // before it returns
	running bool          // it says so when asked
	think   time.Duration // before it says so; such minions are connected
	value   any
	retcode int64
}

func newFake(t *testing.T, minions map[string]minion) *fake {
	t.Helper()
	dir, err := os.MkdirTemp("", "brine")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	f := &fake{t: t, bus: events.New(nil), dir: dir, minions: minions, keys: []string{"secret"}}
	s, err := ipc.Listen(f.bus, ipc.Options{Sockets: ipc.Master(dir)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.wg.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	f.ipc = s
	f.writeKey("secret")
	return f
}

func (f *fake) writeKey(key string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, ".root_key"), []byte(key), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) options() client.Options {
	return client.Options{Dialer: f, Addr: "127.0.0.1:4506", SockDir: f.dir, CacheDir: f.dir, PKIDir: f.dir,
		User: "root", KeyFile: filepath.Join(f.dir, ".root_key"), PublishTimeout: 5 * time.Second}
}

func (f *fake) client() *client.Client {
	f.t.Helper()
	c, err := client.New(f.options())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { c.Close() })
	return c
}

func (f *fake) Requester(transport.ClientOptions) (transport.Requester, error) {
	return requester{f}, nil
}

func (f *fake) Subscribe(context.Context, transport.ClientOptions) (transport.Subscriber, error) {
	return nil, transport.ErrClosed
}

type requester struct{ f *fake }

func (r requester) Close() error { return nil }

func (r requester) Request(ctx context.Context, body []byte) ([]byte, error) {
	e, err := protocol.ParseEnvelope(body, payload.Limits{})
	if err != nil {
		return nil, err
	}
	load, _ := payload.Map(e.Load)
	if e.Enc != protocol.EncClear || e.Version != 3 || load["user"] != "root" {
		return nil, fmt.Errorf("unexpected request %v", e)
	}
	switch load["cmd"] {
	case "runner", "wheel":
		return payload.Marshal(r.f.function(load))
	case "publish":
	default:
		return nil, fmt.Errorf("unexpected request %v", e)
	}
	return payload.Marshal(r.f.publish(load))
}

// publish does what a master does with a job; minions answer in separate goroutines.
func (f *fake) publish(load map[string]any) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.keys, load["key"].(string)) {
		return map[string]any{}
	}
	f.jobs = append(f.jobs, load)
	jid := string(f.jids.Next(time.Now()))
	ids, missing := []any{}, []any{}
	if list, ok := load["tgt"].([]any); ok {
		for _, id := range list {
			if _, ok := f.minions[id.(string)]; ok {
				ids = append(ids, id)
			} else {
				missing = append(missing, id)
			}
		}
	} else if load["tgt"] == "*" {
		for id := range f.minions {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return map[string]any{"enc": "clear", "load": map[string]any{"jid": nil, "minions": []any{},
			"error": "Master could not resolve minions for target x"}}
	}
	for _, id := range ids {
		f.answer(jid, id.(string), f.minions[id.(string)], load)
	}
	return map[string]any{"enc": "clear", "load": map[string]any{"jid": jid, "minions": ids, "missing": missing}}
}

func (f *fake) answer(jid, id string, m minion, load map[string]any) {
	if m.dead {
		return
	}
	data := map[string]any{"id": id, "jid": jid, "fun": load["fun"], "return": m.value, "retcode": m.retcode, "success": true}
	delay := m.delay
	switch load["fun"] {
	case "test.ping":
		data["return"], data["retcode"], delay = true, int64(0), 0
	case "saltutil.find_job":
		data["return"], delay = map[string]any{}, m.think
		if m.running {
			data["return"] = map[string]any{"jid": load["arg"].([]any)[0], "pid": int64(1)}
		}
	}
	if delay == 0 { // the event may overtake the reply to the publish, and the client's place in the audience
		f.save(jid, id, data)
		f.bus.Publish("salt/job/"+jid+"/ret/"+id, data)
		return
	}
	f.wg.Go(func() {
		time.Sleep(delay)
		f.save(jid, id, data)
		f.bus.Publish("salt/job/"+jid+"/ret/"+id, data)
	})
}

// save puts a return into the job cache.
func (f *fake) save(jid, id string, data map[string]any) {
	dir := filepath.Join(f.dir, "jobs", protocol.JobDir(jid, "sha256"), id)
	b, err := payload.MarshalBin(map[string]any{"return": data["return"], "retcode": data["retcode"], "success": true})
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "return.p"), b, 0o600)
	}
	if err != nil {
		f.t.Error(err)
	}
}
