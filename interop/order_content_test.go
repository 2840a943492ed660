//go:build interop

package interop

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/master/store/sqlite"
	"github.com/brine-salt/brine/protocol/payload"
)

// contentSLS uses the content of its order: pillar, a file, another state, and a template.
const contentSLS = `include:
  - .other
%[1]s/plain:
  file.managed:
    - source: salt://_order/%[2]s/plain.txt
%[1]s/rendered:
  file.managed:
    - source: salt://_order/%[2]s/rendered.txt
    - template: jinja
    - context: {port: {{ pillar['app']['port'] }}}
    - require:
      - test: other
`

// TestOrdersCarryFilesAndPillar checks that minions of stock and of brine produce the same results from the states,
// the script and the pillar of an order, and that the master stores no secret argument of either.
func TestOrdersCarryFilesAndPillar(t *testing.T) {
	for _, line := range []string{"3006", "3007", "3008", "ours"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			db, err := sqlite.Open(filepath.Join(dir, "jobs"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			m := embedded(t, master.Options{Store: db,
				Pillar: master.PillarOptions{Func: func(context.Context,
					pillar.Request) (map[string]any, error) {
					return map[string]any{"app": map[string]any{"name": "web"}}, nil
				}}})
			s := &site{dir: tempDir(t), transport: "zeromq", pub: portOf(m.PublishAddr()), ret: portOf(m.RequestAddr())}
			conf := s.minion(t, "m", "cache_jobs: true")
			program := ours("salt-minion")
			if line != "ours" {
				program = stock(t, line, "salt-minion")
			}
			start(t, program, "-c", conf)
			r := &contentRig{t: t, m: m, out: filepath.Join(s.dir, "out"), dir: dir}
			if err := os.Mkdir(r.out, 0o755); err != nil {
				t.Fatal(err)
			}
			r.states()
			r.script()
			r.secret()
		})
	}
}

type contentRig struct {
	t        *testing.T
	m        *master.Master
	out, dir string
}

// call places an order and returns what the minion returned.
func (r *contentRig) call(o master.Order) any {
	r.t.Helper()
	o.Tgt, o.TgtType = []string{"m"}, "list"
	out, err := r.m.RunOrder(soon(r.t), o)
	if err != nil {
		r.t.Fatal(err)
	}
	res := out.Results["m"]
	if res.Status != master.Returned || !res.Success {
		r.t.Fatalf("%s: %+v", o.ID, res)
	}
	return res.Return
}

func (r *contentRig) states() {
	sls := fmt.Sprintf(contentSLS, r.out, "web-1")
	ret := r.call(master.Order{ID: "web-1", Job: master.Job{Fun: "state.apply", Args: []any{"_order.web-1.config"}},
		Pillar: map[string]any{"app": map[string]any{"port": 8080}},
		Files: map[string]string{"config.sls": sls, "other.sls": "other:\n  test.configurable_test_state:\n    - changes: false\n    - result: true\n    - comment: {{ pillar['app']['name'] }} {{ pillar['app']['port'] }}\n",
			"plain.txt": strings.Repeat("line\n", 200000), "rendered.txt": "port={{ port }} name={{ pillar['app']['name'] }}\n"}})
	states, _ := payload.Map(ret)
	got := make(map[string]any)
	for key, x := range states {
		one, _ := payload.Map(x)
		parts := strings.Split(key, "_|-")
		got[filepath.Base(parts[1])] = fmt.Sprint(one["result"])
		if parts[1] == "other" {
			got["comment"] = one["comment"]
		}
	}
	if d := cmp.Diff(map[string]any{"plain": "true", "rendered": "true", "other": "true", "comment": "web 8080"}, got); d != "" {
		r.t.Errorf("%s\n%v", d, ret)
	}
	if b := read(r.t, filepath.Join(r.out, "plain")); b != strings.Repeat("line\n", 200000) {
		r.t.Errorf("the file has %d bytes", len(b))
	}
	if b := read(r.t, filepath.Join(r.out, "rendered")); b != "port=8080 name=web\n" {
		r.t.Errorf("%q", b)
	}
	// The order has ended: its pillar and files are no longer available.
	p, _ := payload.Map(r.call(master.Order{ID: "pillar", Job: master.Job{Fun: "pillar.items"}}))
	app, _ := payload.Map(p["app"]) // Salt 3008 masks the values
	if d := cmp.Diff([]string{"name"}, slices.Sorted(maps.Keys(app))); d != "" {
		r.t.Error(d)
	}
	if got := r.call(master.Order{ID: "gone", Job: master.Job{Fun: "cp.hash_file", Args: []any{"salt://_order/web-1/plain.txt"}}}); !empty(got) {
		r.t.Errorf("a file of an order that has ended: %v", got)
	}
	if got := r.call(master.Order{ID: "lists", Job: master.Job{Fun: "cp.list_master", Kwargs: map[string]any{"prefix": "_order"}},
		Files: map[string]string{"a": "x"}}); cmp.Diff(any([]any{"_order/lists/a"}), got) != "" {
		r.t.Errorf("cp.list_master: %v", got)
	}
}

// empty reports whether a value is false in Python.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return v == false
}

func (r *contentRig) script() {
	ret := r.call(master.Order{ID: "script-1", Job: master.Job{Fun: "cmd.script", Args: []any{"salt://_order/script-1/run.sh", "one two"}, Kwargs: map[string]any{"env": map[string]any{"KEY": "v"}}},
		Files: map[string]string{"run.sh": "#!/bin/sh\necho \"$1 $2 $KEY\"\necho oops >&2\n"}})
	got, _ := payload.Map(ret)
	if got["stdout"] != "one two v" || got["stderr"] != "oops" || fmt.Sprint(got["retcode"]) != "0" {
		r.t.Errorf("%v", ret)
	}
}

// secret checks that the arguments of a secret order are not stored, although stock minions return them in fun_args.
func (r *contentRig) secret() {
	const canary = "canary-Zx81-argument"
	target := filepath.Join(r.out, "secret")
	r.call(master.Order{ID: "secret-1", Secret: true, Job: master.Job{Fun: "file.write", Args: []any{target, canary}}})
	if b := read(r.t, target); strings.TrimSpace(b) != canary {
		r.t.Errorf("%q", b)
	}
	// While it runs, saltutil.running must not show the arguments of a secret job.
	begun, wait := filepath.Join(r.out, "begun"), filepath.Join(r.out, "go-on")
	o := master.Order{ID: "secret-2", Secret: true, Job: master.Job{Fun: "cmd.run", Tgt: []string{"m"}, TgtType: "list",
		Args: []any{"touch " + begun + "; while ! test -e " + wait + "; do sleep 0.1; done # " + canary}, Kwargs: map[string]any{"python_shell": true}}}
	if _, err := r.m.PlaceOrder(soon(r.t), o); err != nil {
		r.t.Fatal(err)
	}
	await(r.t, "the job has begun", func() bool { return exists(begun) }) // see running
	res, err := r.m.Run(soon(r.t), master.Job{Fun: "saltutil.running", Tgt: []string{"m"}, TgtType: "list"})
	told := fmt.Sprint(res["m"].Return)
	if err != nil || !strings.Contains(told, "cmd.run") {
		r.t.Fatalf("%v %+v", err, res)
	}
	if strings.Contains(told, canary) || !strings.Contains(told, content.Sealed) {
		r.t.Errorf("saltutil.running: %s", told)
	}
	if err := os.WriteFile(wait, nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
	if got := ended(r.t, r.m, "m", "secret-2"); got[0] != "returned" {
		r.t.Error(got)
	}
	found := 0
	if err := filepath.WalkDir(r.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(path)
		found++
		if strings.Contains(string(b), canary) {
			r.t.Errorf("%s has the argument", path)
		}
		return err
	}); err != nil || found == 0 {
		r.t.Error(found, err)
	}
}
