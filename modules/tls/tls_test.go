package tls

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// A digest that is refused is refused before the index says that the certificate is revoked: the list could not be made afterwards.
func TestRevokedOnlyWithAList(t *testing.T) {
	e := modulestest.Env(t)
	const dir, from = "/pki/koji/", "../testdata/stock/root/"
	for to, name := range map[string]string{"koji_ca_cert.crt": "x509/ca.crt", "koji_ca_cert.key": "x509/ca.key", "certs/c.crt": "tls/c.crt", "index.txt": "tls/index.txt"} {
		b, err := os.ReadFile(from + name)
		if err != nil {
			t.Fatal(err)
		}
		path := e.Path(dir + to)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	revoke := func(digest string) string {
		res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: "tls.revoke_cert", Args: []any{"koji", "c"}, Kwargs: map[string]any{"cacert_path": "/pki", "digest": digest}})
		if res.Err != nil {
			return res.Err.Error()
		}
		text, _ := res.Return.(string)
		return text
	}
	if got := revoke("md5"); !strings.Contains(got, "not used for signatures") {
		t.Error(got)
	}
	if _, err := os.Stat(e.Path(dir + "crl.pem")); err == nil {
		t.Error("there is a list")
	}
	if got := revoke("nosuch"); !strings.HasPrefix(got, "Revoked Certificate:") {
		t.Error(got)
	}
	if _, err := os.Stat(e.Path(dir + "crl.pem")); err != nil {
		t.Error(err)
	}
}
