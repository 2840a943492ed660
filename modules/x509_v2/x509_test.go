package x509_v2

import (
	"slices"
	"testing"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

// TestModule makes keys of a kind that costs no time.
func TestModule(t *testing.T) {
	m := *Module
	m.Funcs = slices.Clone(m.Funcs)
	at := slices.IndexFunc(m.Funcs, func(d modules.Def) bool { return d.Name == "create_private_key" })
	m.Funcs[at].Params = slices.Clone(m.Funcs[at].Params)
	m.Funcs[at].Params[0].Default = "ed25519"
	modulestest.Run(t, &m)
}
