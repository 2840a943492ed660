package rabbitmq

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/states"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModules(t *testing.T) {
	for _, m := range []*states.Module{User, Vhost, Policy, Plugin, Upstream, Cluster} {
		t.Run(m.Name, func(t *testing.T) { statestest.Run(t, m) })
	}
}

// Permissions that are no list are refused, as in stock, rather than passed over.
func TestPermissionsThatAreNoList(t *testing.T) {
	t.Setenv("PATH", "/usr/sbin")
	server := &modules.Module{Name: "rabbitmq", Funcs: []modules.Def{
		{Name: "user_exists", Args: "args", Kwargs: "kwargs", Run: func(context.Context, *modules.Call) (any, error) { return true, nil }},
		{Name: "list_user_permissions", Args: "args", Kwargs: "kwargs", Run: func(context.Context, *modules.Call) (any, error) { return map[string]any{}, nil }},
	}}
	for want, perms := range map[string]any{
		"'str' object has no attribute 'items'": map[string]any{"/app": []any{"a", "b", "c"}},
		"'int' object is not iterable":          int64(5),
	} {
		e := modulestest.Env(t)
		path := e.Path("/usr/sbin/rabbitmqctl")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		rec := statestest.Apply(t, e, User, "rabbitmq_user.present", map[string]any{"name": "ada", "perms": perms}, true, server)
		if comment, _ := rec["comment"].(string); !strings.Contains(comment, want) || rec["result"] != false {
			t.Errorf("%v: %v", perms, rec)
		}
	}
}
