package pkglist_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestCompare(t *testing.T) {
	got := pkglist.Compare(pkglist.List{"a": {"1"}, "b": {"1"}, "c": {"1"}}, pkglist.List{"a": {"1"}, "b": {"1", "2"}, "d": {"3"}})
	want := map[string]any{
		"b": map[string]any{"old": "1", "new": "1,2"}, "c": map[string]any{"old": "1", "new": ""}, "d": map[string]any{"old": "", "new": "3"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSort(t *testing.T) {
	l := pkglist.List{"a": {"2", "1", "2"}}
	l.Sort()
	if diff := cmp.Diff(pkglist.List{"a": {"1", "2"}}, l); diff != "" {
		t.Error(diff)
	}
}

func TestWildcards(t *testing.T) {
	have := pkglist.List{"vim": {"1"}, "vim-tiny": {"1"}, "zsh": {"1"}}
	got := pkglist.Wildcards(have, []pkglist.Target{{Name: "vim*", Version: "1"}, {Name: "zsh"}})
	want := []pkglist.Target{{Name: "zsh"}, {Name: "vim", Version: "1"}, {Name: "vim-tiny", Version: "1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestParse uses a module function to call Parse.
func TestParse(t *testing.T) {
	m := &modules.Module{Name: "x", Funcs: []modules.Def{{
		Name: "parse", Params: []modules.Param{{Name: "name", Optional: true}, {Name: "pkgs", Optional: true}, {Name: "sources", Optional: true}},
		Run: func(ctx context.Context, c *modules.Call) (any, error) {
			got, err := pkglist.Parse(ctx, c, pkglist.Query{Name: c.Value("name"), Pkgs: c.Value("pkgs"), Sources: c.Value("sources")})
			return got.Plain(), err
		},
	}}}
	r, e := modules.NewRegistry(m), modulestest.Env(t)
	for _, c := range []struct {
		kw   map[string]any
		want any
	}{
		{map[string]any{"name": "a,b"}, []any{map[string]any{"a": nil, "b": nil}, "repository"}},
		{map[string]any{"pkgs": []any{"a", map[string]any{"b": 1.5}}}, []any{map[string]any{"a": nil, "b": "1.5"}, "repository"}},
		{map[string]any{"pkgs": []any{[]any{"a"}}}, "ERROR executing 'x.parse': You are passing a list of packages that contains duplicated packages names: [['a']]. " +
			"This cannot be processed. In case you are targeting different versions of the same package, please target them individually"},
		{map[string]any{"sources": []any{map[string]any{"a": "/a.deb"}}}, []any{[]any{"/a.deb"}, "file"}},
		{map[string]any{}, []any{nil, nil}},
	} {
		got := r.Run(t.Context(), e, modules.Request{Fun: "x.parse", Kwargs: c.kw}).Return
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v: %s", c.kw, diff)
		}
	}
}
