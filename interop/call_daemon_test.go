//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCallReachesDaemon changes settings with brine's salt-call while brine's minion runs under a stock master. The
// minion and its master must see the changes without a restart.
func TestCallReachesDaemon(t *testing.T) {
	m := startStockMaster(t, "3007", "zeromq", "")
	pillar := m.dir + "/pillar/common.sls"
	write(t, pillar, "color: blue\n")
	c := &minionUnderStock{stockMaster: m, id: "ours", conf: m.minion(t, "ours", "")}
	c.startMinion(t)
	await(t, "the key is pending", func() bool { return len(m.keys("minions_pre")) == 1 })
	c.accept()
	await(t, "the minion has its pillar", func() bool { return c.cmd(c.id, "pillar.raw", "color") == "blue" })
	call := func(args ...string) any {
		t.Helper()
		out, code := output(t, ours("salt-call"), append([]string{"-c", c.conf, "--out=json"}, args...)...)
		var v map[string]any
		if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 {
			t.Fatalf("salt-call %q ended with %d and %q", args, code, out)
		}
		return v["local"]
	}
	hit := func(kind, tgt string) bool {
		_, ok := m.run(query{"tgt": tgt, "tgt_type": kind, "fun": "test.ping", "timeout": 5})[c.id]
		return ok
	}

	for _, fun := range []string{"key.finger", "key.finger_master"} {
		theirs, _ := output(t, stock(t, "3007", "salt-call"), "-c", c.conf, "--local", "--out=json", fun)
		var v map[string]any
		if err := json.Unmarshal([]byte(theirs), &v); err != nil || len(fmt.Sprint(v["local"])) != 95 {
			t.Fatalf("stock's %s: %q", fun, theirs)
		}
		c.equal(v["local"], call("--local", fun))
	}
	c.equal(map[string]any{"foo": "bar"}, call("grains.setval", "foo", "bar"))
	await(t, "the master targets the new grain", func() bool { return hit("grain", "foo:bar") })

	for i, args := range [][]string{
		{"saltutil.refresh_pillar"}, {"saltutil.pillar_refresh", "clean_cache=False"}, {"saltutil.refresh_pillar", "wait=True"},
		{"saltutil.refresh_grains"}, {"saltutil.sync_all"}, {"saltutil.sync_grains"}, {"grains.delkey", "nothing"},
	} {
		write(t, pillar, fmt.Sprintf("color: c%d\n", i))
		call(args...)
		await(t, fmt.Sprintf("the minion has the pillar after %s", args), func() bool {
			return c.cmd(c.id, "pillar.raw", "color") == fmt.Sprintf("c%d", i)
		})
	}
	for i, args := range [][]string{
		{"saltutil.refresh_modules"}, {"saltutil.refresh_modules", "async=False"}, {"saltutil.refresh_grains", "refresh_pillar=False"},
		{"saltutil.sync_modules"}, {"saltutil.sync_states"}, {"saltutil.refresh_pillar"},
	} {
		write(t, c.conf+"/grains", fmt.Sprintf("counted: %d\n", i))
		call(args...)
		await(t, fmt.Sprintf("the minion has the grain after %s", args), func() bool {
			return c.cmd(c.id, "grains.get", "counted") == float64(i)
		})
	}

	write(t, pillar, "mine_functions: {kept: [{mine_function: test.echo}, from pillar]}\n"+
		"beacons:\n  watch:\n    - beacon_module: salt_monitor\n    - salt_fun: [test.ping]\n    - interval: 1\n"+
		"schedule:\n  added: {function: test.echo, args: [p], seconds: 1}\n")
	c.equal(true, call("saltutil.refresh_pillar"))
	c.bus.wait(c.bus.mark(), "salt/beacon/ours/watch/")
	if got := c.scheduled("added"); got["return"] != "p" {
		t.Errorf("the return is %v", got)
	}
	c.equal(true, c.cmd(c.id, "mine.update"))
	c.equal(map[string]any{c.id: "from pillar"}, call("mine.get", "*", "kept"))

	for _, args := range [][]string{
		{"state.sls_id", "says", "plain"}, {"state.sls", "plain"}, {"state.apply", "plain"}, {"state.highstate"},
	} {
		args = append(args, "state_events=True")
		mark := c.bus.mark()
		call(args...)
		e := c.bus.wait(mark, "salt/job/*/prog/ours/0")
		if args[0] == "state.sls_id" { // without a job id here, which Python writes as None
			mark := c.bus.mark()
			output(t, stock(t, "3007", "salt-call"), append([]string{"-c", c.conf, "--out=json"}, args...)...)
			c.equal(c.bus.wait(mark, "salt/job/*/prog/ours/0").Tag, e.Tag)
		}
		if d, _ := e.Data["data"].(map[string]any); d["len"] == nil || d["ret"] == nil {
			t.Errorf("%s: event %v", args, e)
		}
	}
}

// TestPythonEventsReachMaster fires events from Python on the bus of brine's minion, in the form of stock's
// event.send. They must reach stock masters of every line.
func TestPythonEventsReachMaster(t *testing.T) {
	for _, line := range []string{"3006", "3007", "3008"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			m := startStockMaster(t, line, "zeromq", "")
			c := &minionUnderStock{stockMaster: m, id: "ours", conf: m.minion(t, "ours", "")}
			c.startMinion(t)
			await(t, "the key is pending", func() bool { return len(m.keys("minions_pre")) == 1 })
			mark := c.bus.mark()
			c.accept()
			c.bus.wait(mark, "salt/minion/ours/start")
			b := awaitBus(t, line, c.conf, c.conf+"/minion")
			for i, q := range []query{
				{"data": query{"n": 1}, "tag": "from/python/0", "events": nil, "pretag": nil},
				{"data": query{}, "tag": "from/python/1", "events": nil, "pretag": nil},
				{"data": nil, "tag": "from/python/2", "events": query{}, "pretag": nil},
				{"data": nil, "tag": nil, "events": []any{query{"tag": "from/python/3", "data": query{"n": 3}}}, "pretag": nil},
			} {
				mark := c.bus.mark()
				text, err := json.Marshal(query{"tag": "fire_master", "data": q})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := b.driver.in.Write(append(text, '\n')); err != nil {
					t.Fatal(err)
				}
				e := c.bus.wait(mark, fmt.Sprint("from/python/", i))
				d, _ := e.Data["data"].(map[string]any)
				if i == 3 && d == nil { // a stock master passes these on unchanged
					d = e.Data
				}
				if want, ok := map[int]any{0: 1.0, 3: 3.0}[i]; ok && d["n"] != want {
					t.Errorf("event %v", e)
				}
			}
		})
	}
}

// TestCallFiresAsStock compares the events that brine's salt-call fires on the bus of a running minion with those
// that stock's salt-call fires there.
func TestCallFiresAsStock(t *testing.T) {
	calls := [][]string{
		{"saltutil.refresh_pillar"}, {"saltutil.pillar_refresh", "clean_cache=False"}, {"saltutil.refresh_pillar", "wait=True", "timeout=5"},
		{"saltutil.refresh_grains"}, {"saltutil.refresh_grains", "clean_pillar_cache=True"}, {"saltutil.refresh_grains", "refresh_pillar=False"},
		{"saltutil.refresh_modules"}, {"saltutil.refresh_modules", "async=False"}, {"saltutil.refresh_beacons"}, {"saltutil.refresh_matchers"},
		{"saltutil.sync_all"}, {"saltutil.sync_all", "refresh=False"}, {"saltutil.sync_grains"}, {"saltutil.sync_modules"}, {"saltutil.sync_beacons"},
		{"saltutil.sync_sdb"}, {"saltutil.sync_pillar"}, {"saltutil.sync_tops"}, {"saltutil.sync_wrapper"}, {"saltutil.sync_matchers"},
		{"grains.setval", "a", "b"}, {"grains.append", "list", "x"}, {"grains.delval", "a"}, {"grains.set", "deep:er", "x"},
		{"grains.setvals", "{q: 1}", "refresh_pillar=False"},
		{"schedule.add", "job", "function=test.ping", "seconds=3600"}, {"schedule.reload"}, {"beacons.enable"}, {"event.fire", "{n: 1}", "own/tag"},
		{"state.single", "test.succeed_with_changes", "x", "reload_modules=True"},
		{"state.single", "test.succeed_with_changes", "x", "reload_grains=True"}, {"state.single", "test.nop", "x"},
	}
	var mu sync.Mutex
	fired := map[string][][]string{}
	values := map[string][]any{}
	t.Run("calls", func(t *testing.T) {
		for _, name := range []string{"stock", "ours"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				events, answers := firedBy(t, name, calls)
				mu.Lock()
				defer mu.Unlock()
				fired[name], values[name] = events, answers
			})
		}
	})
	if diff := cmp.Diff(fired["stock"], fired["ours"]); diff != "" {
		t.Errorf("fired (-stock +ours):\n%s", diff)
	}
	if diff := cmp.Diff(values["stock"], values["ours"]); diff != "" {
		t.Errorf("answers (-stock +ours):\n%s", diff)
	}
	if n := len(slices.Concat(fired["stock"]...)); n < 55 {
		t.Errorf("stock fired %d events and names only", n)
	}
}

// firedBy runs calls with the salt-call of stock or of brine next to brine's minion. It returns the events that each
// call fires, and the answers of the calls to saltutil: first without a running minion, then with one.
func firedBy(t *testing.T, name string, calls [][]string) (fired [][]string, answers []any) {
	dir := busSite(t, "")
	theirs := pythonDriver(t, "3007", "calls", dir+"/minion") // keeps Salt in memory
	call := func(args []string) any {
		t.Helper()
		line := append([]string{"-c", dir, "--out=json"}, args...)
		var out string
		if name == "stock" {
			got, _ := theirs.must("salt_call", query{"arg": line}).(map[string]any)
			out, _ = got["out"].(string)
		} else {
			out, _ = output(t, ours("salt-call"), line...)
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(out), &v); err != nil {
			t.Fatalf("%s: salt-call %q printed %q", name, args, out)
		}
		return v["local"]
	}
	for _, args := range calls { // without a minion, the answers report that no daemon is listening
		if strings.HasPrefix(args[0], "saltutil.refresh_") {
			answers = append(answers, call(args))
		}
	}
	start(t, ours("salt-minion"), "-c", dir)
	b := awaitBus(t, "3007", dir, dir+"/minion")
	for _, args := range calls {
		mark := b.mark()
		if v := call(args); strings.HasPrefix(args[0], "saltutil.") {
			answers = append(answers, v)
		}
		// A call's events use another connection than the marks, so they may be read after the first mark.
		for end := mark; ; {
			if !fireMark(t, dir) {
				t.Fatal("the mark is not fired")
			}
			b.wait(end, "mark/end")
			if end != mark {
				break
			}
			end = b.mark()
		}
		list := []string{strings.Join(args, " ")}
		for _, e := range b.since(mark) {
			delete(e.Data, "_stamp")
			text, _ := json.Marshal(e.Data)
			switch {
			case e.Tag == "mark/end" || strings.HasPrefix(e.Tag, "/salt/minion/") || strings.HasPrefix(e.Tag, "brine/"):
			case e.Tag == "manage_schedule" || e.Tag == "manage_beacons":
				list = append(list, e.Tag)
			default:
				list = append(list, e.Tag+" "+string(text))
			}
		}
		fired = append(fired, list)
	}
	return fired, answers
}

// fireMark fires the event that marks the end of a call's events.
func fireMark(t *testing.T, dir string) bool {
	t.Helper()
	out, _ := output(t, ours("salt-call"), "-c", dir, "--local", "--out=txt", "event.fire", "{}", "mark/end")
	return strings.Contains(out, "True")
}
