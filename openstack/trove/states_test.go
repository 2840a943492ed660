package trove

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
	"github.com/brine-salt/brine/states/statestest"
)

func TestStates(t *testing.T) {
	for _, m := range []*states.Module{DatabaseState, UserState} {
		t.Run(m.Name, func(t *testing.T) { statestest.Run(t, m) })
	}
}

// TestPageStates: the states on the page have arguments of the functions.
func TestPageStates(t *testing.T) {
	_, block := docPage(t, "states")
	v, err := yaml.Parse([]byte(strings.ReplaceAll(block, "{{ pillar['ada_password'] }}", "x")), "trove-guest.md")
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, decl := range v.(map[string]any) {
		for fun, args := range decl.(map[string]any) {
			seen = append(seen, fun)
			module, name, _ := strings.Cut(fun, ".")
			m := map[string]*states.Module{"trove_database": DatabaseState, "trove_user": UserState}[module]
			i := slices.IndexFunc(m.Funcs, func(d states.Def) bool { return d.Name == name })
			for _, arg := range args.([]any) {
				for key := range maps.Keys(arg.(map[string]any)) {
					known := slices.ContainsFunc(m.Funcs[i].Params, func(p modules.Param) bool { return p.Name == key })
					if key != "require" && !known {
						t.Errorf("%s has no argument %s", fun, key)
					}
				}
			}
		}
	}
	slices.Sort(seen)
	if d := cmp.Diff([]string{"trove_database.present", "trove_user.present"}, seen); d != "" {
		t.Error(d)
	}
}
