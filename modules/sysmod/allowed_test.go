package sysmod

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

// TestOnlyWhatMayBeCalled: functions that the minion's options refuse are in no list, and in no documentation.
func TestOnlyWhatMayBeCalled(t *testing.T) {
	a := &modules.Module{Name: "a", Funcs: []modules.Def{{Name: "one", Doc: "One.", Run: nothing}, {Name: "two", Doc: "Two.", Run: nothing}}}
	b := &modules.Module{Name: "b", Funcs: []modules.Def{{Name: "one", Doc: "One.", Run: nothing}}}
	for name, c := range map[string]struct {
		opts map[string]any
		want string
	}{
		"nothing set":          {nil, "a.one a.two b.one"},
		"empty lists":          {map[string]any{"whitelist_modules": []any{}, "minion_allow_functions": []any{}, "minion_deny_functions": ""}, "a.one a.two b.one"},
		"whitelist_modules":    {map[string]any{"whitelist_modules": []any{"a"}}, "a.one a.two"},
		"allowed":              {map[string]any{"minion_allow_functions": []any{"*.one"}}, "a.one b.one"},
		"denied":               {map[string]any{"minion_deny_functions": []string{"b.*", "a.two"}}, "a.one"},
		"denied though listed": {map[string]any{"whitelist_modules": "a", "minion_allow_functions": "*", "minion_deny_functions": "a.o*"}, "a.two"},
		"disabled":             {map[string]any{"disable_modules": []any{"a"}}, "b.one"},
	} {
		t.Run(name, func(t *testing.T) {
			e := modulestest.Env(t)
			e.Opts = func() map[string]any { return c.opts }
			off, _ := c.opts["disable_modules"].([]any)
			r := modules.NewRegistry(Module, a, b)
			if len(off) > 0 {
				r = r.Without("a") // as the minion does
			}
			run := func(fun string, args ...any) any {
				res := r.Run(t.Context(), e, modules.Request{Fun: "sys." + fun, Args: args})
				if res.Err != nil {
					t.Fatal(fun, res.Err)
				}
				return res.Return
			}
			var want, mods []any
			docs := map[string]any{}
			for fun := range strings.FieldsSeq(c.want) {
				want = append(want, fun)
				if mod := module(fun); len(mods) == 0 || mods[len(mods)-1] != mod {
					mods = append(mods, mod)
				}
				docs[fun] = map[string]any{"one": "One.", "two": "Two."}[strings.SplitN(fun, ".", 2)[1]]
			}
			for _, x := range []struct {
				got, want any
			}{
				{run("list_functions", "a", "b"), want}, {run("list_modules", "a", "b"), mods}, {run("doc", "a", "b"), docs},
			} {
				if d := cmp.Diff(x.want, x.got); d != "" {
					t.Error(d)
				}
			}
			specs, _ := run("argspec", "?.*").(map[string]any)
			if len(specs) != len(want) {
				t.Error(specs)
			}
		})
	}
}
