//go:build openstack

package trove

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/states"
	"github.com/brine-salt/brine/states/statestest"
)

// TestTroveStates applies the states to databases and users of both datastores.
func TestTroveStates(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (*instance, string){
		managerMaria: func(t *testing.T) (*instance, string) {
			i := newInstance(t, nil)
			i.prepare("")
			return i, "utf8mb4_bin"
		},
		managerPostgres: func(t *testing.T) (*instance, string) {
			i := newPostgres(t, nil)
			i.preparePostgres("")
			return i, "C.UTF-8"
		},
	} {
		t.Run(name, func(t *testing.T) {
			i, collate := open(t)
			charset := map[string]string{managerMaria: "utf8mb4", managerPostgres: "UTF8"}[name]
			apply := func(m *states.Module, fun string, kwargs map[string]any, test bool, result any, changes map[string]any, comment string) {
				t.Helper()
				got := statestest.Apply(t, i.env, m, m.Name+"."+fun, kwargs, test, Module)
				if d := cmp.Diff([]any{result, changes, comment}, []any{got["result"], got["changes"], got["comment"]}); d != "" {
					t.Errorf("%s.%s %v:\n%s", m.Name, fun, kwargs, d)
				}
			}
			none := map[string]any{}
			web := map[string]any{"name": "web", "character_set": charset, "collate": collate}
			apply(DatabaseState, "present", web, true, nil, none, "The database web would be created")
			apply(DatabaseState, "present", web, false, true, map[string]any{"web": "Present"}, "The database web has been created")
			apply(DatabaseState, "present", web, false, true, none, "The database web is present")
			apply(DatabaseState, "present", map[string]any{"name": "web", "collate": "other"}, false, false, none, "The database web has the collate "+collate+", not other")
			apply(DatabaseState, "present", map[string]any{"name": "shop"}, false, true, map[string]any{"shop": "Present"}, "The database shop has been created")

			ada := map[string]any{"name": "ada", "password": "adasecret", "databases": []any{"web"}}
			apply(UserState, "present", ada, true, nil, none, "The user ada would be created")
			apply(UserState, "present", ada, false, true, map[string]any{"ada": "Present"}, "The user ada has been created")
			apply(UserState, "present", ada, false, true, none, "The user ada is present")
			ada["databases"] = []any{"shop"}
			apply(UserState, "present", ada, true, nil, none, "The privileges of the user ada would be changed")
			apply(UserState, "present", ada, false, true, map[string]any{"granted": []any{"shop"}, "revoked": []any{"web"}}, "The privileges of the user ada have been changed")
			apply(UserState, "present", map[string]any{"name": "ada"}, false, true, none, "The user ada is present")
			apply(UserState, "absent", map[string]any{"name": "ada"}, true, nil, none, "The user ada would be removed")
			apply(UserState, "absent", map[string]any{"name": "ada"}, false, true, map[string]any{"ada": "Absent"}, "The user ada has been removed")
			apply(UserState, "absent", map[string]any{"name": "ada"}, false, true, none, "The user ada is absent")
			apply(DatabaseState, "absent", map[string]any{"name": "web"}, true, nil, none, "The database web would be removed")
			apply(DatabaseState, "absent", map[string]any{"name": "web"}, false, true, map[string]any{"web": "Absent"}, "The database web has been removed")
			apply(DatabaseState, "absent", map[string]any{"name": "web"}, false, true, none, "The database web is absent")
			if err := i.stopServer(); err != nil {
				t.Fatal(err)
			}
			got := statestest.Apply(t, i.env, DatabaseState, "trove_database.present", map[string]any{"name": "web"}, false, Module)
			if got["result"] != false || got["comment"] == "" {
				t.Errorf("without a server: %v", got)
			}
		})
	}
}
