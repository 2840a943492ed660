//go:build interop

package modules_test

import (
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/internal/privatehost"
	"github.com/brine-salt/brine/internal/testserver"
	"github.com/brine-salt/brine/modules"
)

// runInHost runs the cases that change the host, in the namespaces.
func runInHost(t *testing.T, cases func(dir string) []stockCase) {
	h := privatehost.New(t)
	h.Fresh(t)
	s := startStock(t)
	h.Keep, s.host = s.pid, h
	r := modules.NewRegistry(stockModules()...)
	e := s.env(t)
	dir := filepath.Join(s.scratch, "work")
	v := &testserver.Servers{T: t}
	for _, c := range cases(dir) {
		c.fill(v)
		t.Run(c.name, func(t *testing.T) { s.compare(t, r, e, c, dir) })
	}
	h.Undo(t)
}
