package tls

import (
	"slices"
	"testing"
	"time"

	"github.com/brine-salt/brine/modules"
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

// A certificate may be valid for longer than a time.Duration can hold.
func TestSpan(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	e := modulestest.Env(t)
	e.Clock = func() time.Time { return now }
	r := &room{Call: &modules.Call{Env: e}}
	for days, want := range map[int64]string{0: "2026-03-01", 365: "2027-03-01", -1: "2026-02-28", 365_000: "3025-07-02", 1 << 21: "7767-12-21"} {
		if _, to, err := r.span(days); err != nil || to.Format(time.DateOnly) != want {
			t.Errorf("%d days: %s, %v", days, to, err)
		}
	}
	for _, days := range []int64{1 << 22, -(1 << 22), 1 << 40} {
		if _, to, err := r.span(days); err == nil {
			t.Errorf("%d days: %s", days, to)
		}
	}
}
