//go:build bench

package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/internal/testkit/benchtree"
	"github.com/brine-salt/brine/minion/fileclient"
	"github.com/brine-salt/brine/modules"
	_ "github.com/brine-salt/brine/modules/all"
	_ "github.com/brine-salt/brine/states/all"
	"github.com/brine-salt/brine/states/render"
)

// benchRuns are the state runs that are measured.
func benchRuns() []benchRun {
	return []benchRun{
		{"200 files, unchanged", "bench.files200", 200, map[string]int{"ours": 5, "stock": 2}},
		{"2,000 files, unchanged", "bench.files2000", 2000, map[string]int{"ours": 3, "stock": 1}},
		{"formula of 30 files, 120 states", "bench.formula", 120, map[string]int{"ours": 5, "stock": 2}},
	}
}

type benchRun struct {
	what, sls string
	states    int
	rounds    map[string]int
}

const stockStates = `
import json, sys, time, logging
import salt.config, salt.client
conf = sys.argv[1]
caller = salt.client.Caller(mopts=dict(salt.config.minion_config(conf), conf_file=conf))
logging.disable(logging.CRITICAL)
out = []
for sls, rounds in json.load(sys.stdin):
    caller.cmd("state.sls", sls) # makes the files
    best = None
    for _ in range(rounds):
        begin = time.perf_counter()
        r = caller.cmd("state.sls", sls)
        took = time.perf_counter() - begin
        best = took if best is None else min(best, took)
    out.append([best, len(r), all(x["result"] for x in r.values())])
json.dump(out, sys.stdout)
`

// stateSpeed measures state runs alone, without the master: a call of state.sls in a process that has run it before.
func stateSpeed(t *testing.T, row func(what, ours, stock string)) {
	t.Helper()
	dir := t.TempDir()
	if err := benchtree.Write(dir + "/srv"); err != nil {
		t.Fatal(err)
	}
	conf := dir + "/etc/minion"
	write(t, conf, fmt.Sprintf("id: bench\nroot_dir: %s/stock\nfile_client: local\nfile_roots: {base: [%s/srv]}\nlog_level: quiet\nenable_fqdns_grains: false\n"+
		"grains: {os_family: Debian}\n", dir, dir))
	var asks [][]any
	for _, r := range benchRuns() {
		asks = append(asks, []any{r.sls, r.rounds["stock"]})
	}
	in, err := json.Marshal(asks)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), stock(t, "3007", "python"), "-c", stockStates, conf)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var theirs [][3]any
	if err := json.Unmarshal(out, &theirs); err != nil {
		t.Fatal(err)
	}
	root := dir + "/ours"
	opts := map[string]any{"id": "bench", "root_dir": root, "cachedir": root + "/cache", "file_client": "local", "hash_type": "sha256", "state_output": "full"}
	e := &modules.Env{ID: "bench", Opts: func() map[string]any { return opts }, Grains: func() map[string]any { return map[string]any{"os_family": "Debian", "kernel": "Linux"} },
		Pillar: func() map[string]any { return map[string]any{} }, Runner: &runcmd.Runner{}, Templates: render.Render,
		Files: fileclient.New(fileclient.Options{Roots: map[string][]string{"base": {dir + "/srv"}}, CacheDir: root + "/cache", HashType: "sha256"})}
	for i, r := range benchRuns() {
		var best time.Duration
		for j := range r.rounds["ours"] + 1 {
			runtime.GC()
			begin := time.Now()
			res := modules.Default().Run(t.Context(), e, modules.Request{Fun: "state.sls", JID: fmt.Sprintf("2025010203040567%04d", j), Args: []any{r.sls}})
			took := time.Since(begin)
			if m, ok := res.Return.(map[string]any); !ok || len(m) != r.states || res.Retcode != 0 || theirs[i][1] != float64(r.states) || theirs[i][2] != true {
				t.Fatalf("%s: %.500v; stock ran %v states, all true: %v", r.sls, res.Return, theirs[i][1], theirs[i][2])
			}
			if j == 1 || j > 1 && took < best { // the first run creates the files
				best = took
			}
		}
		python := time.Duration(theirs[i][0].(float64) * float64(time.Second))
		row("state.sls in the process: "+r.what, fmt.Sprintf("%.1f ms", best.Seconds()*1000), fmt.Sprintf("%.1f ms", python.Seconds()*1000))
	}
}

// stateRuns measures state runs under one stock master: the whole job, from the command to the answer.
func stateRuns(t *testing.T, m *stockMaster, row func(what, ours, stock string)) {
	t.Helper()
	if err := benchtree.Write(m.dir + "/srv"); err != nil {
		t.Fatal(err)
	}
	for _, c := range benchRuns() {
		took := map[string]string{}
		for _, id := range []string{"ours", "stock"} {
			apply := func() time.Duration {
				begin := time.Now()
				ret, _ := m.must("cmd", query{"tgt": id, "fun": "state.apply", "arg": []any{c.sls}, "timeout": 600}).(map[string]any)
				took := time.Since(begin)
				one, _ := ret[id].(map[string]any)
				states, _ := one["ret"].(map[string]any)
				if len(states) != c.states || one["retcode"] != 0.0 {
					t.Fatalf("%s: %s gave %d states: %.500v", id, c.sls, len(states), one)
				}
				return took
			}
			apply() // creates the files
			var all []time.Duration
			for range c.rounds[id] {
				all = append(all, apply())
			}
			took[id] = median(all)
		}
		row("state.apply: "+c.what, took["ours"], took["stock"])
	}
}

// TestStateSpeed prints the rows of stateSpeed and stateRuns only.
func TestStateSpeed(t *testing.T) {
	row := func(what, ours, stock string) { t.Logf("%s: %s, stock %s", what, ours, stock) }
	stateSpeed(t, row)
	m := startStockMaster(t, "3007", "zeromq", "auto_accept: True")
	mark := m.bus.mark()
	start(t, stock(t, "3007", "salt-minion"), "-c", m.minion(t, "stock", ""))
	start(t, ours("salt-minion"), "-c", m.minion(t, "ours", ""))
	m.bus.wait(mark, "salt/minion/stock/start")
	m.bus.wait(mark, "salt/minion/ours/start")
	stateRuns(t, m, row)
}
