package tls

import (
	"slices"
	"testing"

	"github.com/brine-salt/brine/modules/modulestest"
)

// TestModule makes small keys, which cost less time.
func TestModule(t *testing.T) {
	m := *Module
	m.Funcs = slices.Clone(m.Funcs)
	for i := range m.Funcs {
		f := &m.Funcs[i]
		f.Params = slices.Clone(f.Params)
		for j := range f.Params {
			if f.Params[j].Name == "bits" {
				f.Params[j].Default = int64(1024)
			}
		}
	}
	modulestest.Run(t, &m)
}
