//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/cmd/internal/update"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/runner"
	"github.com/brine-salt/brine/master/runner/rings"
	"github.com/brine-salt/brine/modules"
)

// ringHosts are the hosts of the test: a canary, and the hosts of the rings of 40 and 100 %.
var ringHosts = []string{"canary1", "web0", "web1", "web2", "web3"}

// more adds a host: a fleet with the same master and repository.
func (f *fleet) more(id, source string) *fleet {
	f.t.Helper()
	h := &fleet{t: f.t, dir: filepath.Join(f.dir, id), master: f.master, repo: f.repo, build: f.build}
	for _, d := range []string{"bin", "sock"} {
		f.must(os.MkdirAll(filepath.Join(h.dir, d), 0o755))
	}
	root, err := os.ReadFile(filepath.Join(f.dir, update.RootFile))
	f.must(err)
	f.must(os.WriteFile(filepath.Join(h.dir, update.RootFile), root, 0o644))
	h.prepare(id)
	h.configure(source, true)
	return h
}

// status returns the output of "brine-update status" on a host.
func (f *fleet) status() (s update.Status) {
	f.t.Helper()
	out, err := exec.Command(filepath.Join(f.dir, "..", "bin/brine-update"), "-c", f.dir, "status", "--json").Output()
	f.must(err)
	f.must(json.Unmarshal(out, &s))
	return s
}

// TestRealRings updates five real minions of one master in rings. With a version that does not sign in, it stops
// after the canary.
func TestRealRings(t *testing.T) {
	f := newFleet(t)
	web := httptest.NewServer(http.FileServer(http.Dir(f.repo.Dir)))
	defer web.Close()
	sub := f.watch("salt/minion/")
	defer sub.Close()
	hosts := map[string]*fleet{}
	for _, id := range ringHosts {
		hosts[id] = f.more(id, web.URL)
		f.must(exec.Command(hosts[id].dir + "/restart").Run())
	}
	for range ringHosts {
		f.starts(sub)
	}
	h := runner.Embedded(f.master, "test_master", nil, t.TempDir(), slog.New(slog.DiscardHandler))
	run := func(kwargs map[string]any) (map[string]any, int) {
		t.Helper()
		r := modules.NewRegistry(rings.Module(h)).Run(t.Context(), &modules.Env{ID: "test_master", Opts: func() map[string]any { return nil }},
			modules.Request{Fun: "update.rings", Kwargs: kwargs})
		got, ok := r.Return.(map[string]any)
		if !ok {
			t.Fatalf("update.rings: %+v", r)
		}
		return got, r.Retcode
	}
	want := []string{"canary: canary1"}
	for _, p := range []struct{ from, to int64 }{{0, 40}, {40, 100}} {
		var list []string
		for _, id := range ringHosts[1:] {
			if n := rings.Place(id); n >= p.from && n < p.to {
				list = append(list, id)
			}
		}
		if len(list) == 0 {
			t.Fatalf("no host is between %d and %d %%", p.from, p.to)
		}
		want = append(want, fmt.Sprintf("%d %%: %s", p.to, strings.Join(list, " ")))
	}

	f.add(second, f.good(second))
	got, retcode := run(map[string]any{"canary": "canary*", "rings": []any{int64(40), int64(100)}, "settle": int64(120)})
	if retcode != 0 || got["result"] != true {
		t.Fatalf("update.rings: %v", got)
	}
	var rounds []string
	for _, x := range got["rings"].([]any) {
		r := x.(map[string]any)
		rounds = append(rounds, fmt.Sprintf("%s: %s", r["ring"], strings.Trim(fmt.Sprint(r["updated"]), "[]")))
	}
	if d := cmp.Diff(want, rounds); d != "" {
		t.Error(d)
	}
	for id, h := range hosts {
		if s := h.status(); s.Version != second || s.Running != h.dir+"/state/slots/b/brine-minion" || s.Trial != nil || !s.Connected {
			t.Errorf("%s after the rings: %+v", id, s)
		}
	}

	// A version that does not sign in reaches only the canary, which is rolled back.
	f.addBroken()
	got, retcode = run(map[string]any{"canary": "canary*", "rings": []any{int64(40), int64(100)}, "settle": int64(120), "fail_percent": int64(20)})
	list, _ := got["rings"].([]any)
	if retcode != 1 || got["result"] != false || got["stopped"] != "1 of 1 minions failed in ring canary, more than 20 %" || len(list) != 1 {
		t.Fatalf("update.rings with a version that does not sign in: %v", got)
	}
	failed := fmt.Sprint(list[0].(map[string]any)["failed"])
	if !strings.Contains(failed, "went back from "+broken+" to "+second+": after 5s it does not answer: ") {
		t.Errorf("the canary failed: %s", failed)
	}
	for id, h := range hosts {
		s := h.status()
		if s.Version != second || !s.Connected || slices.Contains(s.Failed, broken) != (id == "canary1") {
			t.Errorf("%s after the ring that stopped: %+v", id, s)
		}
	}
	res, err := f.master.Run(t.Context(), master.Job{Fun: "test.ping", Tgt: "*"})
	f.must(err)
	for _, id := range ringHosts {
		if r := res[id]; r.Return != true {
			t.Errorf("test.ping of %s: %+v", id, r)
		}
	}
}
