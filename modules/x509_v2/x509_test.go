package x509_v2

import (
	"os"
	"slices"
	"testing"
	"time"

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

// A certificate may be valid for longer than a time.Duration can hold.
func TestAfter(t *testing.T) {
	e := modulestest.Env(t)
	e.Clock = func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
	c := &modules.Call{Env: e}
	for days, want := range map[any]string{int64(0): "2026-03-01", "30": "2026-03-31", int64(-1): "2026-02-28", int64(365_000): "3025-07-02"} {
		if got, err := after(c, days); err != nil || got.Format(time.DateOnly) != want {
			t.Errorf("%v days: %s, %v", days, got, err)
		}
	}
	for _, days := range []any{int64(1 << 22), int64(-1 << 62), "x", nil} {
		if got, err := after(c, days); err == nil {
			t.Errorf("%v days: %s", days, got)
		}
	}
}

// A file with a private key is for its owner, however it is written.
func TestKeysAreForTheirOwner(t *testing.T) {
	e := modulestest.Env(t)
	for _, how := range []string{"pem", "der", "pkcs12"} {
		path := "/" + how
		res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: "x509.create_private_key", Kwargs: map[string]any{"algo": "ed25519", "encoding": how, "path": path}})
		if info, err := os.Stat(e.Path(path)); res.Err != nil || err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, %v", how, res.Err, err, info)
		}
	}
}
