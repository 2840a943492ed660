//go:build interop || bench

package interop

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/google/go-cmp/cmp"
)

// stateTree returns states that each minion applies in its own directory: a template with pillar and grains, an
// installed package, a missing service, and a chain of requisites.
func stateTree() map[string]string {
	return map[string]string{
		"srv/tree/init.sls": `
{% from 'tree/map.jinja' import settings with context %}
{% set dir = opts.root_dir ~ '/tree' %}
include: [.extra]
directory:
  file.directory: [{name: {{ dir }}}, {mode: 750}]
page:
  file.managed:
    - name: {{ dir }}/page.html
    - source: salt://tree/page.html
    - template: jinja
    - context: {title: {{ settings.title }}}
    - require: [{file: directory}, {pkg: package}]
package:
  pkg.installed: [{name: bash}, {refresh: False}]
service:
  service.dead: [{name: brine-demonstration}, {require: [{pkg: package}]}, {require_in: [{file: page}]}]
reload:
  cmd.run:
    - name: echo reload {{ pillar.get('given', 'nothing') }}
    - onchanges: [{file: page}]
watcher:
  cmd.wait: [{name: echo watched}, {watch: [{file: page}]}]
never:
  test.fail_without_changes: [{onfail: [{file: page}]}]
`,
		"srv/tree/extra.sls": `
{% for k, v in pillar.nested.items() %}
{{ k }}: {test: [configurable_test_state, {result: True}, {changes: False}, {comment: "{{ k }} is {{ v }}"}, {require_in: [{file: directory}]}]}
{% endfor %}
`,
		"srv/tree/map.jinja": "{% set settings = salt['grains.filter_by']({'default': {'title': 'plain'}}, merge={'color': pillar.color}) %}\n",
		"srv/tree/page.html": "<h1>{{ title }} {{ pillar.color }} {{ grains.role }}</h1>\n",
		// All files below are wrong. A file that cannot be compiled must change nothing.
		"srv/wrong/jinja.sls":     "touched: {file.touch: [{name: {{ opts.root_dir }}/touched}]}\n{% if %}\n",
		"srv/wrong/undefined.sls": "touched: {file.touch: [{name: {{ opts.root_dir }}/touched}]}\nx: {{ nothing.here }}\n",
		"srv/wrong/function.sls":  "good: {test: [nop]}\nx: {file.no_such: [{name: /x}]}\n",
		"srv/wrong/module.sls":    "x: {no_such.thing: [{name: /x}]}\n",
		"srv/wrong/shape.sls":     "touched: {file.touch: [{name: {{ opts.root_dir }}/touched}]}\nx: just text\n",
		"srv/wrong/list.sls":      "- a\n- b\n",
		"srv/wrong/id.sls":        "include: [wrong.other]\ntouched: {file.touch: [{name: {{ opts.root_dir }}/touched}]}\n",
		"srv/wrong/other.sls":     "touched: {file.touch: [{name: {{ opts.root_dir }}/other}]}\n",
		"srv/wrong/circle.sls":    "a: {test.nop: [{require: [{test: b}]}]}\nb: {test.nop: [{require: [{test: a}]}]}\n",
		"srv/wrong/include.sls":   "include: [wrong.nowhere]\ntouched: {file.touch: [{name: {{ opts.root_dir }}/touched}]}\n",
		"srv/wrong/require.sls":   "a: {test.nop: [{require: [{test: nowhere}]}]}\n",
		"srv/wrong/argument.sls":  "a: {file.managed: [{name: relative}]}\nb: {file.managed: [{name: {{ opts.root_dir }}/x}, {contents: a}, {source: salt://b}]}\n",
		"srv/wrong/missing.sls":   "a: {file.symlink: [{name: {{ opts.root_dir }}/x}]}\n",
	}
}

// broken returns the wrong state files of the tree, and one that does not exist.
func broken() []string {
	return []string{"jinja", "undefined", "function", "module", "shape", "list", "id", "circle", "include", "require", "argument", "missing", "absent"}
}

// stateCalls returns the calls for the tree, in this order, followed by those for broken files.
func stateCalls(broken ...string) [][]string {
	list := [][]string{{"state.apply", "tree", "test=True"}, {"state.apply", "tree"}, {"state.sls", "tree", `pillar={"given": "x", "color": "red"}`},
		{"state.apply", "tree"}, {"state.apply", "tree"}, {"state.highstate", "test=True"}, {"state.show_sls", "tree.extra"}, {"state.single", "test.nop", "x"}}
	for _, name := range broken {
		list = append(list, []string{"state.apply", "wrong." + name})
	}
	return list
}

func writeTree(t *testing.T, s *site) {
	t.Helper()
	for name, text := range stateTree() {
		write(t, s.dir+"/"+name, text)
	}
}

// sameStates compares the answers of two minions to one call.
func sameStates(t *testing.T, call []string, theirs, mine full) {
	t.Helper()
	theirs.Ret, mine.Ret = comparable(theirs.Ret), comparable(neutral(mine.Ret))
	if diff := cmp.Diff(theirs, mine); diff != "" {
		t.Errorf("%s (-stock +ours):\n%s", strings.Join(call, " "), diff)
	}
}

// comparable removes times and process ids from the results of states.
func comparable(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = comparable(v[i])
		}
	case map[string]any:
		for k, x := range v {
			switch k {
			case "duration", "start_time", "pid":
				delete(v, k)
			default:
				v[k] = comparable(x)
			}
		}
	}
	return v
}

// nothingTouched checks that states that cannot be compiled changed nothing.
func nothingTouched(t *testing.T, s *site, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if list, _ := filepath.Glob(s.dir + "/" + id + "/touched"); list != nil {
			t.Errorf("%s has run a part of broken states", id)
		}
	}
}

// statesSideBySide applies the tree on both minions of a stock master. Stock's program then prints the results of
// both.
func statesSideBySide(t *testing.T, m *stockMaster) {
	writeTree(t, m.site)
	for _, call := range stateCalls(broken()...) {
		got := m.run(query{"tgt": "*", "fun": call[0], "arg": nested.Anys(call[1:])})
		if len(got) != 2 {
			t.Fatalf("answers came from %d minions: %v", len(got), got)
		}
		sameStates(t, call, got["stock"], got["ours"])
	}
	nothingTouched(t, m.site, "stock", "ours")
	shown := map[string]string{}
	for _, id := range []string{"stock", "ours"} {
		out, code := output(t, stock(t, "3007", "salt"), "-c", m.dir+"/etc", id, "state.apply", "tree", `pillar={"given": "`+id+`"}`)
		text := neutral(strings.ReplaceAll(strings.ReplaceAll(out, "ours:\n", "stock:\n"), "Summary for ours", "Summary for stock")).(string)
		text = regexp.MustCompile(`(Started|Duration|Total run time): +[^\n]*`).ReplaceAllString(text, "$1:")
		shown[id] = strings.ReplaceAll(text, "reload ours", "reload stock")
		if code != 0 {
			t.Errorf("%s: exit code %d", id, code)
		}
	}
	if diff := cmp.Diff(shown["stock"], shown["ours"]); diff != "" {
		t.Errorf("what salt shows (-stock +ours):\n%s", diff)
	}
}

// states applies the tree on brine's minion under each stock master.
func (c *minionUnderStock) states() {
	writeTree(c.t, c.site)
	for _, call := range [][]any{{"tree", "test=True"}, {"tree"}, {"tree"}} {
		ret, _ := c.cmd(c.id, "state.apply", call...).(map[string]any)
		changed := 0
		for tag, v := range ret {
			rec, _ := v.(map[string]any)
			// In test mode the page has no result yet, which counts as a failure.
			if rec["result"] == false && len(call) == 1 {
				c.t.Errorf("%v: %s: %v", call, tag, rec)
			}
			if changes, _ := rec["changes"].(map[string]any); len(changes) > 0 {
				changed++
			}
		}
		if len(ret) != 9 {
			c.t.Errorf("%v: %d states: %v", call, len(ret), ret)
		}
		if len(call) == 2 && exists(c.dir+"/"+c.id+"/tree/page.html") {
			c.t.Error("test mode has made a file")
		}
	}
	bad := c.run(query{"tgt": c.id, "fun": "state.apply", "arg": []any{"wrong.undefined"}})[c.id]
	list, _ := bad.Ret.([]any)
	if text, _ := json.Marshal(list); len(list) != 1 || bad.Retcode != 1.0 || !strings.Contains(string(text), "Jinja variable 'nothing' is undefined; line 2") {
		c.t.Errorf("a broken state file gave %v", bad)
	}
	nothingTouched(c.t, c.site, c.id)
}

// TestStatesUnderOurMaster applies the tree on a stock minion and on one of brine under brine's master, with the
// pillar that it renders.
func TestStatesUnderOurMaster(t *testing.T) {
	t.Parallel()
	m := &ourMaster{site: newSite(t, "zeromq", "auto_accept: True\n"), t: t, root: t, line: "3007", id: "stock"}
	write(t, m.dir+"/pillar/common.sls", "color: {{ 'blue' }}\nnested:\n  size: 7\n  list: [a, b]\n  id: {{ grains.id | length }}\n")
	writeTree(t, m.site)
	m.up()
	mark := m.bus.mark()
	start(t, stock(t, "3007", "salt-minion"), "-c", m.minion(t, "stock", ""))
	start(t, ours("salt-minion"), "-c", m.minion(t, "ours", ""))
	m.bus.wait(mark, "salt/minion/stock/start")
	m.bus.wait(mark, "salt/minion/ours/start")
	for _, call := range stateCalls(broken()...) {
		args := append([]string{"-c", m.dir + "/etc", "-t", "60", "--out", "json", "--static", "--no-color", "*"}, call...)
		out, _ := output(t, ours("salt"), args...)
		var got map[string]any
		if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != 2 {
			t.Fatalf("%v: %v in %s", call, err, out)
		}
		// The minions' ids have different lengths.
		text, _ := json.Marshal(got["ours"])
		var mine any
		if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), "id is 4", "id is 5")), &mine); err != nil {
			t.Fatal(err)
		}
		sameStates(t, call, full{Ret: got["stock"]}, full{Ret: mine})
	}
	nothingTouched(t, m.site, "stock", "ours")
}
