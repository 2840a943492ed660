package trove

import (
	"context"
	"testing"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/states/statestest"
)

// TestDatabaseSets: names of character sets and collations are the same in upper and lower case, and utf8 is utf8mb3.
func TestDatabaseSets(t *testing.T) {
	for _, c := range []struct {
		set, collate, wantSet, wantCollate string
		same                               bool
	}{
		{"latin1", "latin1_swedish_ci", "LATIN1", "Latin1_Swedish_CI", true},
		{"utf8mb3", "utf8mb3_general_ci", "utf8", "utf8_general_ci", true},
		{"utf8", "utf8_general_ci", "UTF8MB3", "utf8mb3_general_ci", true},
		{"utf8mb4", "utf8mb4_general_ci", "utf8", "", false},
		{"utf8mb3", "utf8mb3_general_ci", "utf8mb3", "utf8mb3_bin", false},
		{"UTF8", "en_US.UTF-8", "utf8", "en_US.UTF-8", true},
	} {
		database := map[string]any{"_name": "web", "_character_set": c.set, "_collate": c.collate}
		list := &modules.Module{Name: "trove", Funcs: []modules.Def{{Name: "list_databases", Run: func(context.Context, *modules.Call) (any, error) {
			return []any{[]any{database}, nil}, nil
		}}}}
		want := map[string]any{"name": "web", "character_set": c.wantSet, "collate": c.wantCollate}
		got := statestest.Apply(t, modulestest.Env(t), DatabaseState, "trove_database.present", want, false, list)
		if got["result"] != c.same {
			t.Errorf("%+v: %v", c, got["comment"])
		}
	}
}
