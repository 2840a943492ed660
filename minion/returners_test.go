package minion

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/minion/beacon"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

// keeper is a returner that keeps what it gets.
type keeper struct {
	mu   sync.Mutex
	kept []map[string]any // guarded by mu
}

func (k *keeper) module(name string) *modules.Module {
	return &modules.Module{Name: name, Funcs: []modules.Def{{Name: "returner", Params: []modules.Param{{Name: "ret"}},
		Run: func(_ context.Context, c *modules.Call) (any, error) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.kept = append(k.kept, c.Value("ret").(map[string]any))
			return nil, nil
		}}}}
}

func (k *keeper) all() []map[string]any {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept
}

func TestReturners(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, map[string]any{"return": "always", "schedule": map[string]any{
			"job": map[string]any{"function": "test.ping", "seconds": int64(60), "returner": []any{"asked", "nosuch"}, "return_config": "other"}}})
		var asked, always keeper
		broken := &modules.Module{Name: "broken", Funcs: []modules.Def{{Name: "returner", Params: []modules.Param{{Name: "ret"}},
			Run: func(context.Context, *modules.Call) (any, error) { return nil, modules.Errorf("no database") }}}}
		r.o.Others = func(kind string) []*modules.Module {
			if kind != "returners" {
				return nil
			}
			return []*modules.Module{asked.module("asked"), always.module("always"), broken}
		}
		r.start()
		r.until(Connected)
		f.subscribed(1)
		f.publish(jobMap(jidAt(1), "test.echo", map[string]any{"arg": []any{"x"}, "ret": "asked,broken,nosuch,asked", "ret_config": "alternative",
			"ret_kwargs": map[string]any{"db": "test"}}))
		f.await("return", isReturn(jidAt(1)))
		time.Sleep(time.Second)
		want := []map[string]any{{"id": "alpha", "jid": jidAt(1), "fun": "test.echo", "fun_args": []any{"x"}, "return": "x", "retcode": int64(0),
			"success": true, "user": "root", "ret_config": "alternative", "ret_kwargs": map[string]any{"db": "test"}}}
		if diff := cmp.Diff(want, asked.all()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(want, always.all()); diff != "" {
			t.Error(diff)
		}
		for _, text := range []string{"Returner nosuch.returner could not be loaded: 'nosuch.returner' is not available.",
			"The return failed for job " + jidAt(1) + ": no database"} {
			if !r.log.has(text) {
				t.Errorf("the log lacks %q", text)
			}
		}
		time.Sleep(70 * time.Second)
		got := f.await("return", ofSchedule("job"))
		if jid, _ := got["jid"].(string); len(jid) != 20 {
			t.Errorf("the return of a job with a returner has the id %v", got["jid"])
		}
		kept := asked.all()
		if last := kept[len(kept)-1]; len(kept) < 2 || last["schedule"] != "job" || last["ret_config"] != "other" || !strings.HasPrefix(last["jid"].(string), "20") {
			t.Errorf("the returner got %v", kept)
		}
		if len(always.all()) != 1 {
			t.Error("the option return is not for the schedule")
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestDisabledReturners: disable_returners holds for returners that a job names, not for others.
func TestDisabledReturners(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, map[string]any{"disable_returners": []any{"off"}})
		var on, off keeper
		r.o.Others = func(string) []*modules.Module { return []*modules.Module{on.module("on"), off.module("off")} }
		r.start()
		r.until(Connected)
		f.subscribed(1)
		f.publish(jobMap(jidAt(1), "test.ping", map[string]any{"ret": "off,on"}))
		f.await("return", isReturn(jidAt(1)))
		time.Sleep(5 * time.Second)
		if a, b := len(on.all()), len(off.all()); a != 1 || b != 0 {
			t.Errorf("the returner got %d returns, the disabled one %d", a, b)
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestPolicyHoldsForReturnersScheduleAndBeacons(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, map[string]any{"minion_allow_functions": []any{"test.ping", "allowed.returner"}, "return": "own",
			"schedule": map[string]any{"job": map[string]any{"function": "test.echo", "args": []any{"x"}, "seconds": int64(10)}},
			"beacons":  map[string]any{"salt_monitor": []any{map[string]any{"salt_fun": "test.echo"}}}})
		var allowed, own, other keeper
		r.o.Beacons = beacon.Kinds()
		r.o.Others = func(string) []*modules.Module {
			return []*modules.Module{allowed.module("allowed"), own.module("own"), other.module("other")}
		}
		r.start()
		r.until(Connected)
		f.subscribed(1)
		f.publish(jobMap(jidAt(1), "test.ping", map[string]any{"ret": "allowed,other", "ret_kwargs": map[string]any{"filename": "/etc/passwd"}}))
		f.await("return", isReturn(jidAt(1)))
		time.Sleep(15 * time.Second)
		if got := allowed.all(); len(got) != 1 || got[0]["ret_kwargs"] == nil {
			t.Errorf("the allowed returner got %v", got)
		}
		if got := own.all(); len(got) != 1 || got[0]["ret_kwargs"] != nil {
			t.Errorf("the minion's own returner got %v", got)
		}
		if got := other.all(); len(got) != 0 {
			t.Errorf("the other returner got %v", got)
		}
		if got := f.await("return", ofSchedule("job")); got["success"] != false {
			t.Errorf("the schedule returns %v", got)
		}
		refused := f.count(func(m map[string]any) bool {
			list, _ := m["events"].([]any)
			for _, x := range list {
				text, _ := x.(map[string]any)["error"].(string)
				if strings.Contains(text, "policy of this minion does not allow test.echo") {
					return true
				}
			}
			return false
		})
		if refused == 0 {
			t.Error("a beacon calls what the policy does not allow")
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}
