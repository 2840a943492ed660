package sysmod

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

// denies is a policy that refuses what a glob matches, a state with "state:" before its name, and takes a module away.
type denies struct{ glob, module string }

func (denies) RefuseArguments(modules.Kind, string, func() map[string]any) error { return nil }

func (d denies) Disabled(modules.Kind) []string { return []string{d.module} }

func (d denies) Refuse(kind modules.Kind, fun string) error {
	if kind != modules.Execution {
		fun = string(kind) + ":" + fun
	}
	if fnmatch.Match(d.glob, fun) {
		return &modules.RefusedError{Fun: fun}
	}
	return nil
}

// TestOnlyWhatMayBeCalled: what the minion's policy refuses is in no list, and in no documentation.
func TestOnlyWhatMayBeCalled(t *testing.T) {
	a := &modules.Module{Name: "a", Funcs: []modules.Def{{Name: "one", Doc: "One.", Run: nothing}, {Name: "two", Doc: "Two.", Run: nothing}}}
	b := &modules.Module{Name: "b", Funcs: []modules.Def{{Name: "one", Doc: "One.", Run: nothing}}}
	for name, c := range map[string]struct {
		policy                  modules.Policy
		want, states, returners string
	}{
		"no policy":          {nil, "a.one a.two b.one", "a.one a.two b.one", "a.one a.two b.one"},
		"a module disabled":  {denies{"", "a"}, "b.one", "b.one", "b.one"},
		"a module denied":    {denies{"b.*", ""}, "a.one a.two", "a.one a.two b.one", "a.one a.two b.one"},
		"a function denied":  {denies{"a.o*", ""}, "a.two b.one", "a.one a.two b.one", "a.one a.two b.one"},
		"a state denied":     {denies{"state:a.*", ""}, "a.one a.two b.one", "b.one", "a.one a.two b.one"},
		"a returner refused": {denies{"returner:*.one", ""}, "a.one a.two b.one", "a.one a.two b.one", "a.two"},
	} {
		t.Run(name, func(t *testing.T) {
			e := modulestest.Env(t)
			e.Policy = c.policy
			e.Others = func(string) []*modules.Module { return []*modules.Module{a, b} }
			r := modules.NewRegistry(Module, a, b)
			run := func(fun string, args ...any) any {
				res := r.Run(t.Context(), e, modules.Request{Fun: "sys." + fun, Args: args})
				if res.Err != nil {
					t.Fatal(fun, res.Err)
				}
				return res.Return
			}
			list := func(text string) (funs, mods []any, docs map[string]any) {
				docs = map[string]any{}
				for fun := range strings.FieldsSeq(text) {
					funs = append(funs, fun)
					if mod := module(fun); len(mods) == 0 || mods[len(mods)-1] != mod {
						mods = append(mods, mod)
					}
					docs[fun] = map[string]any{"one": "One.", "two": "Two."}[strings.SplitN(fun, ".", 2)[1]]
				}
				return funs, mods, docs
			}
			funs, mods, docs := list(c.want)
			states, stateMods, _ := list(c.states)
			returners, returnerMods, _ := list(c.returners)
			for _, x := range []struct {
				got, want any
			}{
				{run("list_functions", "a", "b"), funs}, {run("list_modules", "a", "b"), mods}, {run("doc", "a", "b"), docs},
				{run("list_state_functions"), states}, {run("list_state_modules"), stateMods},
				{run("list_returner_functions"), returners}, {run("list_returners"), returnerMods},
			} {
				if d := cmp.Diff(x.want, x.got); d != "" {
					t.Error(d)
				}
			}
			specs, _ := run("argspec", "?.*").(map[string]any)
			if len(specs) != len(funs) {
				t.Error(specs)
			}
		})
	}
}
