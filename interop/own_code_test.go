//go:build interop

package interop

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// siteCode is the custom code of a site in the directories _modules, _states and so on of its master.
var siteCode = map[string]string{
	"_modules/shop.py": `
import os

def _file(item):
    return os.path.join(__opts__["shop_root"], item)

def count(item):
    try:
        with open(_file(item)) as f:
            return int(f.read())
    except FileNotFoundError:
        return 0

def put(item, count):
    with open(_file(item), "w") as f:
        f.write(str(count))
    return True

def seen(item, **kwargs):
    return {
        "item": __salt__["test.echo"](text=item),
        "double": __utils__["shoptool.double"](item),
        "color": __pillar__["color"],
        "kind": __grains__["shop_kind"],
        "kwargs": {k: v for k, v in kwargs.items() if not k.startswith("__")},
    }
`,
	"_utils/shoptool.py": `
def double(text):
    return text + text
`,
	"_grains/shopgrain.py": `
def shop():
    return {"shop_kind": "grocery", "shop": {"zeta": 1, "alpha": [2, None]}}
`,
	"_states/shop.py": `
def stocked(name, count=1):
    ret = {"name": name, "changes": {}, "result": True, "comment": "enough"}
    now = __salt__["shop.count"](name)
    if now == count:
        return ret
    ret["changes"] = {"old": now, "new": count}
    if __opts__["test"]:
        ret["result"], ret["comment"] = None, "would put"
        return ret
    ret["result"], ret["comment"] = __salt__["shop.put"](name, count), "put"
    return ret
`,
	"_beacons/shopdoor.py": `
def validate(config):
    return True, "valid"

def beacon(config):
    return [{"tag": "door", "open": True, "kind": __grains__["shop_kind"]}]
`,
	"_returners/shoplog.py": `
import json, os

def returner(ret):
    with open(os.path.join(__opts__["shop_root"], "returned"), "w") as f:
        json.dump([ret["fun"], ret["return"], ret["success"], ret["id"] == __grains__["id"]], f)
`,
	"_renderers/shoplines.py": `
def render(template, saltenv="base", sls="", **kwargs):
    return {line: {"test.nop": []} for line in template.read().split()}
`,
}

// ownCodeSLS returns the states of docs/custom-code.md for every kind of code.
func ownCodeSLS(dir string) string {
	var b strings.Builder
	for _, kind := range []string{"modules", "utils", "grains", "states", "beacons", "returners", "renderers"} {
		fmt.Fprintf(&b, `
own-%[1]s:
  file.recurse:
    - name: %[2]s/%[1]s
    - source: salt://_%[1]s
    - clean: True
    - file_mode: '0644'
    - dir_mode: '0755'
    - onchanges_in:
      - module: saltutil.refresh_modules
`, kind, dir)
	}
	return b.String() + "\nsaltutil.refresh_modules:\n  module.run: []\n"
}

// TestOwnCodeUnderStockMaster checks that a site's code from a stock master has the same effect under brine's minion
// as under a stock one, once the host's owner has configured a directory and a state has copied the files there. A
// minion of brine without this option must not run the code, and must report it.
func TestOwnCodeUnderStockMaster(t *testing.T) {
	t.Parallel()
	m := startStockMaster(t, "3007", "zeromq", "auto_accept: True\n")
	for name, text := range siteCode {
		write(t, m.dir+"/srv/"+name, text)
	}
	write(t, m.dir+"/srv/use.sls", "apples:\n  shop.stocked:\n    - count: {{ salt['shop.count']('apples') + 2 }}\n")
	write(t, m.dir+"/srv/lines.sls", "#!shoplines\nzwei\neins\n")
	own := m.dir + "/mine/own"
	write(t, m.dir+"/srv/own-code.sls", ownCodeSLS(own))

	for id, more := range map[string]string{"theirs": "", "mine": "module_dirs: [" + own + "]\n", "bare": ""} {
		root := m.dir + "/" + id + "/shop"
		if err := os.MkdirAll(root, 0o755); err != nil {
			t.Fatal(err)
		}
		program := ours("salt-minion")
		if id == "theirs" {
			program = stock(t, "3007", "salt-minion")
		}
		mark := m.bus.mark()
		start(t, program, "-c", m.minion(t, id, "shop_root: "+root+"\n"+more))
		m.bus.wait(mark, "salt/minion/"+id+"/start")
	}
	m.cmd("theirs", "saltutil.sync_all")
	applied, _ := m.cmd("mine", "state.apply", "own-code").(map[string]any)
	if len(applied) != len(siteCode)+1 {
		t.Fatalf("own-code: %v", applied)
	}
	for id, r := range applied {
		if one, _ := r.(map[string]any); one["result"] != true {
			t.Fatalf("own-code: %s: %v", id, one)
		}
	}
	m.cmd("mine", "saltutil.refresh_grains")

	// Modules, grains, utils, states and renderers must return the same.
	for _, q := range []query{
		{"fun": "shop.seen", "arg": []any{"pear"}, "kwarg": map[string]any{"z": 1, "name": "x"}},
		{"fun": "shop.count", "arg": []any{"pear"}},
		{"fun": "shop.nosuch"},
		{"fun": "shop.put", "arg": []any{"pear"}},
		{"fun": "grains.item", "arg": []any{"shop_kind", "shop"}},
		{"fun": "state.show_sls", "arg": []any{"lines"}},
		{"fun": "state.apply", "arg": []any{"use"}, "kwarg": map[string]any{"test": true}},
		{"fun": "state.apply", "arg": []any{"use"}},
		{"fun": "shop.count", "arg": []any{"apples"}},
		{"fun": "state.single", "arg": []any{"shop.stocked"}, "kwarg": map[string]any{"name": "apples", "count": 2}},
	} {
		q["tgt"], q["tgt_type"] = "theirs,mine", "list"
		got := m.run(q)
		if len(got) != 2 {
			t.Fatalf("%v: answers of %v", q, got)
		}
		theirs, mine := got["theirs"], got["mine"]
		for _, f := range []full{theirs, mine} {
			dropTimes(f.Ret)
		}
		if diff := cmp.Diff(theirs, mine); diff != "" {
			t.Errorf("%v (-stock +ours):\n%s", q, diff)
		}
	}
	hit := m.run(query{"tgt": "shop_kind:grocery", "tgt_type": "grain", "fun": "test.echo", "arg": []any{"hit"}, "timeout": 5})
	if diff := cmp.Diff(map[string]full{"theirs": {"hit", float64(0)}, "mine": {"hit", float64(0)}}, hit); diff != "" {
		t.Errorf("a target by the site's grain: %s", diff)
	}

	// A returner.
	for _, id := range []string{"theirs", "mine"} {
		m.publish(query{"tgt": id, "fun": "test.echo", "arg": []any{"kept"}, "extra": map[string]any{"ret": "shoplog"}})
		file := m.dir + "/" + id + "/shop/returned"
		await(t, file+" is written", func() bool {
			b, err := os.ReadFile(file)
			return err == nil && string(b) == `["test.echo", "kept", true, true]`
		})
	}

	// A beacon must fire the same event.
	var events []any
	for _, id := range []string{"theirs", "mine"} {
		mark := m.bus.mark()
		m.cmd(id, "beacons.add", "shopdoor", []any{map[string]any{"interval": 1}})
		data := m.bus.wait(mark, "salt/beacon/"+id+"/shopdoor/door").Data
		delete(data, "_stamp")
		delete(data, "id")
		events = append(events, data)
		m.cmd(id, "beacons.delete", "shopdoor")
	}
	if diff := cmp.Diff(events[0], events[1]); diff != "" {
		t.Errorf("the beacon's event (-stock +ours):\n%s", diff)
	}

	// Without the option no code runs, and a state that needs it fails with the name of the file.
	m.cmd("bare", "saltutil.sync_all")
	if got := m.cmd("bare", "shop.count", "pear"); got != "'shop.count' is not available." {
		t.Errorf("bare: shop.count: %v", got)
	}
	write(t, m.dir+"/srv/plainuse.sls", "apples:\n  shop.stocked: []\n")
	if got := fmt.Sprint(m.cmd("bare", "state.apply", "plainuse")); !strings.Contains(got, "_states/shop.py defines it") {
		t.Errorf("bare: state.apply: %s", got)
	}
	if exists(m.dir + "/bare/shop/apples") {
		t.Error("bare: the state ran")
	}
}

// dropTimes removes the parts of a state run's return that differ between hosts.
func dropTimes(v any) {
	m, _ := v.(map[string]any)
	for k, x := range m {
		if k == "start_time" || k == "duration" {
			delete(m, k)
			continue
		}
		dropTimes(x)
	}
}
