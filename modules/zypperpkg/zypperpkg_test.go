package zypperpkg

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// TestWaitsForTheLock has a zypper that is locked twice.
func TestWaitsForTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := modulestest.Env(t)
		codes := []int{7, 7, 0}
		e.Runner = modulestest.Runner(func(context.Context, modules.Command) (modules.CommandResult, error) {
			code := codes[0]
			codes = codes[1:]
			return modules.CommandResult{ExitCode: code, Stdout: []byte("a b")}, nil
		})
		m := *Module
		m.Available = nil
		got := modules.NewRegistry(&m).Run(t.Context(), e, modules.Request{Fun: "pkg.services_need_restart"}).Return
		if d := cmp.Diff([]any{"a", "b"}, got); d != "" || len(codes) != 0 {
			t.Error(codes, d)
		}
	})
}
