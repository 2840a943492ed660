package modulestest_test

import (
	"context"
	"testing"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

// TestModuleOfOthers passes the suite though it does not keep to the rules of this house.
func TestModuleOfOthers(t *testing.T) {
	run := func(context.Context, *modules.Call) (any, error) { return true, nil }
	modulestest.Run(t, &modules.Module{Name: "theirs", Doc: "Ours", Funcs: []modules.Def{
		{Name: "second", Doc: "Count.", Run: run}, {Name: "first", Doc: "count", Run: run},
	}})
}
