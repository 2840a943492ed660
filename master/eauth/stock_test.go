//go:build interop

package eauth

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"github.com/brine-salt/brine/internal/testkit/testsalt"
	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/protocol/target"
)

// stockRules are configurations, people, lists of rules and calls, each with each.
const stockRules = `
configs:
- {alice: [a], 'al*': [b], 'b.*': [c], 'admins%': [d], '*': [e]}
- {alice: [a], 'admins%': [d], 'ops%': [f], '%': [g], '*': [e]}
- {'*': [e], 'admins%': [d]}
- {'(?!root).*': [h], 'al?ce': [i], 'a(lice|lfred)': [j], '[ab]*': [k], 'alice$': [l]}
- {'alice|bob': [m], '(': [n], '.*': [o], ALICE: [p], '(?i)ALICE': [q]}
- {alice: [], '*': [e]}
people:
- [alice, []]
- [alice, [admins, ops]]
- [bob, [admins]]
- [alfred, []]
- [root, ['']]
- ['', []]
- [carol, [Admins, '*']]
rules:
- ['.*']
- []
- ['test.ping']
- ['test\.p']
- ['test\..*', 'state\.(apply|sls)']
- ['(?!cmd\.).*']
- ['(?i)TEST\.PING']
- ['cmd\.run$', '^grains']
- ['(']
- ['']
- ['@runner']
- ['@wheel']
- ['@runners', '@wheels']
- ['@jobs', '@key']
- ['@cloud']
- ['@']
- ['@local']
- [{'@runner': ['jobs\..*', 'manage.up']}]
- [{'@runners': 'jobs.active'}]
- [{'@jobs': ['list_.*', 'active']}]
- [{'@jobs': 'act'}]
- [{'@key': [{accept: {args: ['web\d']}}, {delete: {kwargs: {match: 'web.*'}}}]}]
- [{'@wheel': [{'key\.accept': [{args: ['web1']}, {kwargs: {match: web1}}]}]}]
- [{'*': ['.*']}]
- [{'*': '.*'}]
- [{'web*': ['test.*']}]
- [{'web*': ['test.*']}, {'db*': ['test.ping']}]
- [{'web* or db1': ['test.ping']}]
- [{'G@os:Debian': ['test.*']}]
- [{'E@web\d': ['test.*']}]
- [{'L@web1,db1': ['test.*']}]
- [{'N@front': ['test.*']}]
- [{'not web*': ['.*']}]
- [{'nobody': ['.*']}]
- [{'web1': ['.*'], 'db1': ['.*']}]
- [{'*': [{'cmd.run': {args: ['uptime']}}]}]
- [{'*': [{'cmd.run': {args: ['^uptime$', null]}}]}]
- [{'*': [{'cmd.*': [{args: ['date']}, {kwargs: {cwd: '/tmp(/.*)?'}}]}]}]
- [{'*': [{'cmd.run': {args: ['echo.*'], kwargs: {shell: null, cwd: /}}}]}]
- [{'*': [{'cmd.run': {}}]}]
- [{'*': [{'cmd.run': []}]}]
- [{'*': [{'cmd.run': [x]}]}]
- [{'*': [{'cmd.run': {args: ['x']}, 'test.ping': {}}]}]
- [{'*': [{'test.arg': {args: ['1', 'True', 'None']}}]}]
- [{'*': [{'test.arg': {kwargs: {a: '1'}}}]}]
- [{'*': [[nested]]}]
- [{'*': []}]
- [{}]
calls:
- {fun: test.ping, tgt: '*'}
- {fun: test.ping, tgt: 'web*'}
- {fun: test.ping, tgt: web1}
- {fun: test.ping, tgt: db1}
- {fun: test.ping, tgt: nobody}
- {fun: test.ping, tgt: [web1, db1], tgt_type: list}
- {fun: test.ping, tgt: 'os:Debian', tgt_type: grain}
- {fun: test.ping, tgt: 'G@os:Debian and web1', tgt_type: compound}
- {fun: test.ping, tgt: 'web.*', tgt_type: pcre}
- {fun: test.ping, tgt: front, tgt_type: nodegroup}
- {fun: test.provider, tgt: web1}
- {fun: cmd.run, tgt: web1}
- {fun: cmd.run, tgt: web1, arg: [uptime]}
- {fun: cmd.run, tgt: web1, arg: [uptime; id]}
- {fun: cmd.run, tgt: web1, arg: ["uptime\nid"]}
- {fun: cmd.run, tgt: web1, arg: ["uptime\n"]}
- {fun: cmd.run, tgt: web1, arg: [uptime, x]}
- {fun: cmd.run, tgt: web1, arg: [date]}
- {fun: cmd.run, tgt: '*', arg: [id], kwarg: {cwd: /tmp}}
- {fun: cmd.run, tgt: '*', arg: [id], kwarg: {cwd: /tmpx}}
- {fun: cmd.run, tgt: '*', arg: [echo x], kwarg: {cwd: /, shell: /bin/sh}}
- {fun: cmd.run, tgt: '*', arg: [echo x], kwarg: {cwd: /}}
- {fun: cmd.run_all, tgt: '*', arg: [date]}
- {fun: state.sls, tgt: web1, arg: [x]}
- {fun: grains.items, tgt: web1}
- {fun: test.arg, tgt: '*', arg: [1, true, null]}
- {fun: test.arg, tgt: '*', kwarg: {a: 1}}
- {fun: test.arg, tgt: '*', kwarg: {a: 1.5}}
- {fun: test.arg, tgt: '*', kwarg: {a: [1]}}
- {kind: runner, fun: jobs.active}
- {kind: runner, fun: jobs.list_jobs}
- {kind: runner, fun: manage.up}
- {kind: runner, fun: manage.upstream}
- {kind: runner, fun: jobs}
- {kind: runner, fun: a.b.c}
- {kind: runner, fun: key.accept, arg: [web1]}
- {kind: wheel, fun: key.accept, arg: [web1]}
- {kind: wheel, fun: key.accept, arg: [web12]}
- {kind: wheel, fun: key.accept, kwarg: {match: web1}}
- {kind: wheel, fun: key.delete, kwarg: {match: 'web*'}}
- {kind: wheel, fun: key.delete, kwarg: {match: db1}}
- {kind: wheel, fun: jobs.active}
`

// TestStockRules compares stock's CkMinions with ours on the same calls and rules. Ours must give the answers that
// stock would give if patterns had to match in full, and so never allow what stock denies.
func TestStockRules(t *testing.T) {
	var table struct {
		Configs []map[string]any `json:"configs"`
		People  [][]any          `json:"people"`
		Rules   [][]any          `json:"rules"`
		Calls   []struct {
			Kind    string         `json:"kind,omitempty"`
			Fun     string         `json:"fun"`
			Tgt     any            `json:"tgt,omitempty"`
			TgtType string         `json:"tgt_type,omitempty" yaml:"tgt_type"`
			Arg     []any          `json:"arg,omitempty"`
			Kwarg   map[string]any `json:"kwarg,omitempty"`
		} `json:"calls"`
	}
	if err := yaml.Unmarshal([]byte(stockRules), &table); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ids := []string{"db1", "web1", "web2"}
	for _, id := range ids {
		put(t, filepath.Join(dir, "pki", "minions", id), "key")
	}
	put(t, filepath.Join(dir, "master"), fmt.Sprintf("root_dir: %s\npki_dir: %s/pki\ncachedir: %s/cache\nid: m\nlog_level: quiet\nnodegroups: {front: 'L@web1,web2'}\n", dir, dir, dir))
	known, err := cache.Open(filepath.Join(dir, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	defer known.Close()
	for _, id := range []string{"web1", "db1"} {
		if err := known.Store(id, cache.Data{Grains: map[string]any{"os": "Debian"}}.Ordered()); err != nil {
			t.Fatal(err)
		}
	}
	var stock struct {
		Filled       [][][]any
		Plain, Whole [][]bool
	}
	testsalt.Ask(t, table, &stock, "testdata/stock_rules.py", filepath.Join(dir, "master"))
	match := func(tgtType string, tgt any) ([]string, error) {
		sel, err := target.Select(tgtType, tgt, "", map[string]any{"front": "L@web1,web2"}, ids, func(id string) target.Cached {
			d, _ := known.Data(id)
			return target.Cached{Grains: d.Grains, Pillar: d.Pillar}
		})
		return sel.Matched, err
	}
	for i, config := range table.Configs {
		for j, permissive := range []bool{false, true} {
			a, err := New(Options{Config: map[string]any{"file": config}, Permissive: permissive, Match: match})
			if err != nil {
				t.Fatal(err)
			}
			for k, p := range table.People {
				var groups []string
				for _, g := range p[1].([]any) {
					groups = append(groups, g.(string))
				}
				got := a.Rules(Token{EAuth: "file", Name: p[0].(string), Groups: groups})
				less := cmpopts.SortSlices(func(x, y any) bool { return fmt.Sprint(x) < fmt.Sprint(y) })
				if d := cmp.Diff(stock.Filled[2*i+j][k], got, less, cmpopts.EquateEmpty()); d != "" {
					t.Errorf("%v of %v, permissive %v (-stock +ours):\n%s", p, config, permissive, d)
				}
			}
		}
	}
	a, err := New(Options{Match: match})
	if err != nil {
		t.Fatal(err)
	}
	allowed, narrower := 0, 0
	for i, rules := range table.Rules {
		for j, c := range table.Calls {
			var got bool
			if c.Kind == "" {
				args := c.Arg
				if c.Kwarg != nil {
					kw := map[string]any{"__kwarg__": true}
					for k, v := range c.Kwarg {
						kw[k] = v
					}
					args = append(args[:len(args):len(args)], kw)
				}
				tgtType := c.TgtType
				if tgtType == "" {
					tgtType = "glob"
				}
				got = a.Allows(rules, c.Fun, args, tgtType, c.Tgt)
			} else {
				got = a.MayRun(rules, c.Kind, c.Fun, c.Arg, c.Kwarg)
			}
			if got != stock.Whole[i][j] {
				t.Errorf("%v for %+v: %v (stock %v)", rules, c, got, stock.Whole[i][j])
			}
			if got && !stock.Plain[i][j] {
				t.Errorf("%v allows %+v, and does not in stock", rules, c)
			}
			if got {
				allowed++
			} else if stock.Plain[i][j] {
				narrower++
			}
		}
	}
	t.Logf("%d calls, %d allowed; stock allows %d more, whose patterns match a beginning", len(table.Rules)*len(table.Calls), allowed, narrower)
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
