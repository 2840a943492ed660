//go:build interop

package modules_test

import (
	"testing"

	"github.com/brine-salt/brine/internal/testkit/privatehost"
	"github.com/brine-salt/brine/modules"
)

// runInHost runs the cases that change the host, in the namespaces.
func runInHost(t *testing.T, cases func(dir string) []stockCase) {
	h := privatehost.New(t)
	h.Fresh(t)
	s := startStock(t)
	h.Keep, s.host = s.PID, h
	s.runCases(t, modules.NewRegistry(stockModules()...), s.env(t), cases)
	h.Undo(t)
}
