package rings

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/runner/host"
	"github.com/brine-salt/brine/modules"
)

// fleet is a master with minions that update themselves.
type fleet struct {
	ids     []string
	version map[string]string
	bad     map[string]bool // these go back to the version before
	silent  map[string]bool
	refuse  map[string]string
	asked   [][]string // the lists of agent.update
	at      []time.Time
	fired   []map[string]any
}

func (f *fleet) host() *host.Host {
	return &host.Host{ID: "m_master",
		Match: func(string, any) ([]string, error) { return f.ids, nil },
		Fire: func(_ context.Context, tag string, data map[string]any) error {
			if tag == ringTag {
				f.fired = append(f.fired, data)
			}
			return nil
		},
		Run: func(_ context.Context, j host.Job) (map[string]host.Answer, error) {
			out := map[string]host.Answer{}
			var list []string
			for _, x := range j.Tgt.([]any) {
				id := x.(string)
				list = append(list, id)
				switch {
				case f.silent[id]:
				case j.Fun == "agent.status":
					result := "updated"
					if f.bad[id] {
						result = "went back"
					}
					out[id] = host.Answer{Value: map[string]any{"version": f.version[id], "result": result}}
				case f.refuse[id] != "":
					out[id] = host.Answer{Value: f.refuse[id], Retcode: 1}
				default:
					out[id] = host.Answer{Value: map[string]any{"from": f.version[id], "to": "1.1.0", "result": true}}
					if !f.bad[id] {
						f.version[id] = "1.1.0"
					}
				}
			}
			if j.Fun == "agent.update" {
				f.asked, f.at = append(f.asked, list), append(f.at, time.Now())
			}
			return out, nil
		}}
}

func newFleet(n int) *fleet {
	f := &fleet{version: map[string]string{}, bad: map[string]bool{}, silent: map[string]bool{}, refuse: map[string]string{}}
	for i := range n {
		id := fmt.Sprintf("web%d", i)
		f.ids = append(f.ids, id)
		f.version[id] = "1.0.0"
	}
	f.ids = append(f.ids, "canary1")
	f.version["canary1"] = "1.0.0"
	return f
}

func (f *fleet) run(t *testing.T, kwargs map[string]any) modules.Result {
	t.Helper()
	return modules.NewRegistry(Module(f.host())).Run(t.Context(), &modules.Env{ID: "m_master", Opts: func() map[string]any { return nil }},
		modules.Request{Fun: "update.rings", Kwargs: kwargs})
}

// TestRings updates 200 minions: the canary first, then by the hash of the id, each once.
func TestRings(t *testing.T) {
	f := newFleet(200)
	r := f.run(t, map[string]any{"canary": []any{"canary*"}, "rings": []any{int64(10), int64(50), int64(100)}})
	if r.Retcode != 0 || r.Return.(map[string]any)["result"] != true {
		t.Fatalf("%+v", r)
	}
	var want [][]string
	for _, in := range []func(int64) bool{func(p int64) bool { return p < 10 }, func(p int64) bool { return p >= 10 && p < 50 }, func(p int64) bool { return p >= 50 }} {
		var list []string
		for _, id := range f.ids {
			if id != "canary1" && in(Place(id)) {
				list = append(list, id)
			}
		}
		slices.Sort(list)
		want = append(want, list)
	}
	if d := cmp.Diff(append([][]string{{"canary1"}}, want...), f.asked); d != "" {
		t.Error(d)
	}
	if n := len(want[0]); n < 10 || n > 35 {
		t.Errorf("the ring of 10 %% has %d of 200", n)
	}
	if len(f.fired) != 4 || f.fired[1]["ring"] != "10 %" || len(f.fired[1]["updated"].([]any)) != len(want[0]) {
		t.Errorf("events: %v", f.fired)
	}
	for id, v := range f.version {
		if v != "1.1.0" {
			t.Errorf("%s has %s", id, v)
		}
	}
}

// TestRingCanaries: of each ring, the minions with the lowest places are updated before the others, and they stop it.
func TestRingCanaries(t *testing.T) {
	f := newFleet(200)
	kwargs := map[string]any{"canary": "canary*", "canary_count": int64(2), "rings": []any{int64(10), int64(100)}}
	if r := f.run(t, kwargs); r.Retcode != 0 || len(f.asked) != 5 {
		t.Fatalf("%+v, asked %d times", r, len(f.asked))
	}
	for _, i := range []int{1, 3} {
		if len(f.asked[i]) != 2 || len(f.asked[i+1]) < 8 {
			t.Fatalf("canaries %v of %d others", f.asked[i], len(f.asked[i+1]))
		}
		for _, id := range f.asked[i+1] {
			if Place(id) < max(Place(f.asked[i][0]), Place(f.asked[i][1])) {
				t.Errorf("%s has a lower place than %v", id, f.asked[i])
			}
		}
	}
	if name := f.fired[1]["ring"]; name != "canary of 10 %" {
		t.Errorf("the ring is %v", name)
	}

	g := newFleet(200)
	g.bad[f.asked[3][1]] = true
	r := g.run(t, kwargs)
	if got := r.Return.(map[string]any); r.Retcode != 1 || got["stopped"] != "1 of 2 minions failed in ring canary of 100 %, more than 0 %" || len(g.asked) != 4 {
		t.Errorf("%+v, asked %d times", r, len(g.asked))
	}
}

// TestRingsStop: a canary that goes back stops the run. In a ring up to the given percentage may fail, but not one
// minion more.
func TestRingsStop(t *testing.T) {
	f := newFleet(20)
	f.bad["canary1"] = true
	r := f.run(t, map[string]any{"canary": "canary*", "fail_percent": int64(50)})
	got, _ := r.Return.(map[string]any)
	if r.Retcode != 1 || got["result"] != false || got["stopped"] != "1 of 1 minions failed in ring canary, more than 50 %" || len(f.asked) != 1 {
		t.Errorf("%+v, asked %v", r, f.asked)
	}
	if d := cmp.Diff([]any{map[string]any{"ring": "canary", "minions": []any{"canary1"}, "updated": []any{}, "failed": map[string]any{"canary1": "went back"}}}, got["rings"]); d != "" {
		t.Error(d)
	}
	for _, c := range []struct {
		percent int64
		result  bool
	}{{14, false}, {15, true}} { // 3 of 20 fail
		f := newFleet(19)
		f.bad["web0"], f.silent["web1"], f.refuse["web2"] = true, true, "updates are switched off on this host"
		r := f.run(t, map[string]any{"rings": []any{int64(100)}, "fail_percent": c.percent})
		got := r.Return.(map[string]any)
		if got["result"] != c.result || (r.Retcode == 0) != c.result {
			t.Errorf("%d %%: %+v", c.percent, r)
		}
		failed := got["rings"].([]any)[0].(map[string]any)["failed"]
		if d := cmp.Diff(map[string]any{"web0": "went back", "web1": "no answer", "web2": "updates are switched off on this host"}, failed); d != "" {
			t.Error(d)
		}
	}
}

// TestRingsPause: the run waits for the given time between two rings; if it is stopped then, no other ring starts.
func TestRingsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(20)
		kwargs := map[string]any{"canary": "canary*", "rings": []any{int64(50), int64(100)}, "pause": int64(600)}
		begin := time.Now()
		if r := f.run(t, kwargs); r.Retcode != 0 || len(f.at) != 3 {
			t.Fatalf("%+v, asked %v", r, f.asked)
		}
		for i, want := range []time.Duration{0, 10 * time.Minute, 20 * time.Minute} {
			if d := f.at[i].Sub(begin); d < want || d > want+10*time.Second {
				t.Errorf("ring %d began after %s", i, d)
			}
		}

		f = newFleet(20)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		r := modules.NewRegistry(Module(f.host())).Run(ctx, &modules.Env{ID: "m_master", Opts: func() map[string]any { return nil }},
			modules.Request{Fun: "update.rings", Kwargs: kwargs})
		if r.Err == nil && r.Success || len(f.asked) != 1 {
			t.Errorf("after an end: %+v, asked %v", r, f.asked)
		}
	})
}

func TestBadRings(t *testing.T) {
	for _, rings := range []any{[]any{}, []any{int64(50), int64(10)}, []any{int64(101)}, []any{"all"}} {
		f := newFleet(1)
		r := f.run(t, map[string]any{"rings": rings})
		if text, _ := r.Return.(string); r.Success || !strings.Contains(text, "cannot update in rings: ") || len(f.asked) != 0 {
			t.Errorf("%v: %+v", rings, r)
		}
	}
}
