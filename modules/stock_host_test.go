//go:build interop

package modules_test

import (
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/privatehost"
	"github.com/brine-salt/brine/interop/oracle"
	"github.com/brine-salt/brine/modules"
)

// runInHost runs the cases that change the host, in the namespaces.
func runInHost(t *testing.T, cases func(dir string) []stockCase) {
	h := privatehost.New(t)
	h.Fresh(t)
	s := startStock(t)
	h.Keep, s.host = s.PID, h
	s.book = oracle.OpenBook(t, hostAnswers)
	for _, c := range keyed(loadCases(t, hostCases, filepath.Join(s.Scratch, "work")), filepath.Join(s.Scratch, "work")) {
		s.book.Know(c.file, c.key)
	}
	e := s.env(t)
	s.recorder.Layers = h.Layers()
	s.runCases(t, modules.NewRegistry(stockModules()...), e, cases)
	s.book.Save(t)
	h.Undo(t)
}
