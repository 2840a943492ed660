package pillar_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/protocol/payload"
)

type object = map[string]any

// roots returns a pillar function over files, given by their path below one directory.
func roots(t *testing.T, envs map[string]map[string]string, o pillar.RootsOptions) *pillar.Roots {
	t.Helper()
	o.Roots = make(map[string][]string)
	for env, files := range envs {
		dir := t.TempDir()
		o.Roots[env] = []string{dir}
		for name, content := range files {
			p := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return pillar.NewRoots(o)
}

func base(files map[string]string) map[string]map[string]string {
	return map[string]map[string]string{"base": files}
}

func TestRoots(t *testing.T) {
	for _, c := range []struct {
		name  string
		envs  map[string]map[string]string
		id    string
		env   string
		want  object
		lists bool
	}{
		{name: "no top file", envs: base(map[string]string{"a.sls": "x: 1"}), want: object{}},
		{name: "merge in the order of the top file", envs: base(map[string]string{
			"top.sls": "base:\n  '*':\n    - a\n    - b.c\n  'web*':\n    - web\n  'db*':\n    - db\n",
			"a.sls":   "x: 1\nm:\n  k: a\n  l: [1]\n", "b/c.sls": "y: 2\nm:\n  k: b\n  l: [2]\n", "web/init.sls": "role: web\n", "db.sls": "role: db\n"}),
			id: "web1", want: object{"x": int64(1), "y": int64(2), "m": object{"k": "b", "l": []any{int64(2)}}, "role": "web"}},
		{name: "merge lists", lists: true, envs: base(map[string]string{
			"top.sls": "base: {'*': [a, b]}", "a.sls": "l: [1]", "b.sls": "l: [2]"}), want: object{"l": []any{int64(1), int64(2)}}},
		{name: "match types", envs: base(map[string]string{
			"top.sls": "base:\n  'os:Debian':\n    - match: grain\n    - g\n  'web[0-9]':\n    - match: pcre\n    - p\n  'web1,x':\n    - match: list\n    - l\n  'G@os:Debian and web*':\n    - c\n  grp:\n    - match: nodegroup\n    - n\n  'not web1':\n    - no\n",
			"g.sls":   "g: 1", "p.sls": "p: 1", "l.sls": "l: 1", "c.sls": "c: 1", "n.sls": "n: 1", "no.sls": "no: 1"}),
			id: "web1", want: object{"g": int64(1), "p": int64(1), "l": int64(1), "c": int64(1), "n": int64(1)}},
		{name: "order", envs: base(map[string]string{
			"top.sls": "base:\n  '*':\n    - order: 2\n    - a\n  'web*':\n    - order: 1\n    - b\n", "a.sls": "x: a", "b.sls": "x: b"}), id: "web1", want: object{"x": "a"}},
		{name: "environments", envs: map[string]map[string]string{"base": {"top.sls": "base: {'*': [a]}\nprod: {'*': [b]}", "a.sls": "x: base"}, "prod": {"b.sls": "x: prod\ny: 1"}},
			want: object{"x": "prod", "y": int64(1)}},
		{name: "one environment", env: "prod", envs: map[string]map[string]string{"base": {"top.sls": "base: {'*': [a]}", "a.sls": "x: base"}, "prod": {"top.sls": "prod: {'*': [b]}", "b.sls": "y: 1"}},
			want: object{"y": int64(1)}},
		{name: "unknown environment", env: "../base", envs: base(map[string]string{"top.sls": "base: {'*': [a]}", "a.sls": "x: base"}), want: object{}},
		{name: "patterns of SLS", envs: base(map[string]string{"top.sls": "base: {'*': ['users.*']}", "users/a.sls": "a: 1", "users/b.sls": "b: 1", "other.sls": "o: 1"}),
			want: object{"a": int64(1), "b": int64(1)}},
		{name: "include", envs: base(map[string]string{"top.sls": "base: {'*': [a]}", "a.sls": "include:\n  - b\n  - d.e:\n      key: in:side\nx: a\n", "b.sls": "x: b\ny: b\n", "d/e.sls": "include: [.f]\nz: 1\n", "d/f.sls": "w: 1"}),
			want: object{"x": "a", "y": "b", "in": object{"side": object{"z": int64(1), "w": int64(1)}}}},
		{name: "include of itself", envs: base(map[string]string{"top.sls": "base: {'*': [a]}", "a.sls": "include: [b]\nx: a\n", "b.sls": "include: [a]\ny: b\n"}), want: object{"x": "a", "y": "b"}},
		{name: "empty file", envs: base(map[string]string{"top.sls": "base: {'*': [a]}", "a.sls": "# nothing\n"}), want: object{}},
		{name: "comments are not templates", envs: base(map[string]string{"top.sls": "#!jinja|yaml\nbase: {'*': [a]}", "a.sls": "#!yaml\n# {{ no }}\nx: 1\n"}), want: object{"x": int64(1)}},
		{name: "missing on purpose", envs: base(map[string]string{"top.sls": "base:\n  '*':\n    - ignore_missing: True\n    - nope\n    - a\n", "a.sls": "x: 1"}), want: object{"x": int64(1)}},
		{name: "missing", envs: base(map[string]string{"top.sls": "base: {'*': [nope, a]}", "a.sls": "x: 1"}),
			want: object{"x": int64(1), "_errors": []any{"Specified SLS 'nope' in environment 'base' is not available on the salt master"}}},
		{name: "broken", envs: base(map[string]string{"top.sls": "base: {'*': [a, b]}", "a.sls": "x: [", "b.sls": "y: 1"}),
			want: object{"y": int64(1), "_errors": []any{"Rendering SLS 'a' failed. Please see master log for details."}}},
		{name: "template", envs: base(map[string]string{"top.sls": "base: {'*': [a]}", "a.sls": "x: {{ grains.id }} {{ opts.__role }}"}), want: object{"x": "m master"}},
		{name: "template without functions", envs: base(map[string]string{"top.sls": "base: {'*': [a]}", "a.sls": "x: {{ salt['cmd.run']('id') }}"}),
			want: object{"_errors": []any{"Rendering SLS 'a' failed. Please see master log for details."}}},
		{name: "another renderer", envs: base(map[string]string{"top.sls": "base: {'*': [a]}", "a.sls": "#!py\ndef run(): return {}"}),
			want: object{"_errors": []any{"Rendering SLS 'a' failed. Please see master log for details."}}},
		{name: "no map", envs: base(map[string]string{"top.sls": "base: {'*': [a]}", "a.sls": "- 1"}),
			want: object{"_errors": []any{"SLS 'a' does not render to a dictionary"}}},
		{name: "include that is no list", envs: base(map[string]string{"top.sls": "base: {'*': [a]}", "a.sls": "include: b\nx: 1"}),
			want: object{"x": int64(1), "include": "b", "_errors": []any{"Include Declaration in SLS 'a' is not formed as a list"}}},
		{name: "SLS that climbs", envs: base(map[string]string{"top.sls": "base: {'*': ['../x', '....x']}"}),
			want: object{"_errors": []any{"Specified SLS '../x' in environment 'base' is not available on the salt master",
				"Specified SLS '....x' in environment 'base' is not available on the salt master"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := roots(t, c.envs, pillar.RootsOptions{Nodegroups: object{"grp": "web*"}, Opts: object{"pillar_merge_lists": c.lists}})
			if c.id == "" {
				c.id = "m"
			}
			got, err := r.Pillar(t.Context(), pillar.Request{ID: c.id, Grains: object{"os": "Debian", "id": c.id}, Pillarenv: c.env})
			if d := cmp.Diff(c.want, got); d != "" || err != nil {
				t.Error(d, err)
			}
		})
	}
}

func TestBrokenTopFile(t *testing.T) {
	r := roots(t, base(map[string]string{"top.sls": "base: ["}), pillar.RootsOptions{})
	got, err := r.Pillar(t.Context(), pillar.Request{ID: "m"})
	list, _ := got["_errors"].([]any)
	if err != nil || len(list) != 1 || !strings.HasPrefix(list[0].(string), "Rendering Primary Top file failed, render error:\n") {
		t.Fatal(got, err)
	}
}

func TestChangesAreSeen(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour)
	write := func(name, content string, at time.Time) {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(p, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write("top.sls", "base: {'*': [a]}", old)
	write("a.sls", "x: 1", old)
	r := pillar.NewRoots(pillar.RootsOptions{Roots: map[string][]string{"base": {dir}}})
	for i, want := range []int64{1, 2} {
		if i == 1 {
			write("a.sls", "x: 2", old.Add(time.Second))
		}
		for range 2 {
			if got, err := r.Pillar(t.Context(), pillar.Request{ID: "m"}); err != nil || got["x"] != want {
				t.Fatal(got, err)
			}
		}
	}
}

// TestPillarsAreNotShared: a caller that changes one minion's pillar does not change another's.
func TestPillarsAreNotShared(t *testing.T) {
	r := roots(t, base(map[string]string{"top.sls": "base: {'*': [a]}", "a.sls": "m: {k: 1}"}), pillar.RootsOptions{})
	a, _ := r.Pillar(t.Context(), pillar.Request{ID: "a"})
	a["m"].(object)["k"] = "changed"
	b, _ := r.Pillar(t.Context(), pillar.Request{ID: "b"})
	if d := cmp.Diff(object{"m": object{"k": int64(1)}}, b); d != "" {
		t.Fatal(d)
	}
}

// TestOrdered: states see the pillar in the order of its files.
func TestOrdered(t *testing.T) {
	r := roots(t, base(map[string]string{"top.sls": "base: {'*': [a]}", "a.sls": "z: {y: 1, x: [{b: 1, a: 2}]}\na: 1\n"}), pillar.RootsOptions{})
	got, err := r.Ordered(t.Context(), pillar.Request{ID: "m"})
	got = pillar.MergeOrdered(got, object{"a": int64(2), "z": object{"x": nil, "w": int64(3)}})
	want := payload.OrderedMap{{Key: "z", Value: payload.OrderedMap{{Key: "y", Value: int64(1)}, {Key: "x", Value: nil}, {Key: "w", Value: int64(3)}}},
		{Key: "a", Value: int64(2)}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Fatal(d, err)
	}
}

// TestExternal: an external pillar of the embedding program is merged with that of the files.
func TestExternal(t *testing.T) {
	var asked pillar.ExtRequest
	r := roots(t, base(map[string]string{"top.sls": "base: {'*': [a]}", "a.sls": "m: {k: 1, l: 1}"}), pillar.RootsOptions{
		Opts: object{"ext_pillar": []any{object{"ours": object{"table": "t"}}, object{"panics": nil}, object{"nosuch": nil}}},
		Ext: map[string]pillar.ExtFunc{
			"ours": func(_ context.Context, q pillar.ExtRequest) (any, error) {
				asked = q
				return object{"m": object{"k": int64(2)}}, nil
			},
			"panics": func(context.Context, pillar.ExtRequest) (any, error) { panic("oops") },
		}})
	got, err := r.Pillar(t.Context(), pillar.Request{ID: "m", Extra: object{"k": "v"}})
	want := object{"m": object{"k": int64(2), "l": int64(1)}, "_errors": []any{"Failed to load ext_pillar panics: panic: oops"}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Fatal(d, err)
	}
	if asked.ID != "m" || asked.Kwargs["table"] != "t" || asked.Extra["k"] != "v" || !cmp.Equal(asked.Pillar, object{"m": object{"k": int64(1), "l": int64(1)}}) {
		t.Errorf("%+v", asked)
	}
}

func TestChain(t *testing.T) {
	f := pillar.Chain(pillar.Static(object{"a": int64(1), "m": object{"x": int64(1), "y": int64(1)}}), pillar.Static(object{"m": object{"y": int64(2)}}))
	got, err := f(t.Context(), pillar.Request{})
	if d := cmp.Diff(object{"a": int64(1), "m": object{"x": int64(1), "y": int64(2)}}, got); d != "" || err != nil {
		t.Fatal(d, err)
	}
	failing := pillar.Chain(pillar.Static(object{"a": 1}), func(context.Context, pillar.Request) (map[string]any, error) { return nil, errors.New("no") })
	if got, err := failing(t.Context(), pillar.Request{}); err == nil || got != nil {
		t.Fatal(got, err)
	}
}
