package x509_v2

import (
	"context"
	"crypto/x509"
	"maps"
	"math/big"
	"slices"

	"github.com/brine-salt/brine/internal/pki"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	x509mod "github.com/brine-salt/brine/modules/x509_v2"
	"github.com/brine-salt/brine/states"
)

// revocations is one run of crl_managed.
type revocations struct {
	*job
	extensions map[string]any
	current    *x509.RevocationList
}

func crlManaged(ctx context.Context, c *states.Call) (*states.Result, error) {
	m := &revocations{job: newJob(ctx, c, "certificate revocation list")}
	m.without("text")
	extensions, err := c.Map("extensions")
	if err != nil {
		return nil, err
	}
	m.extensions = maps.Clone(extensions)
	if m.extensions == nil {
		m.extensions = map[string]any{}
	}
	return m.answer(m.run())
}

func (m *revocations) run() error {
	if err := m.unknown(); err != nil {
		return err
	}
	if !m.Bool("signing_cert") {
		return modules.Usagef("`signing_cert` is required")
	}
	if over, err := m.begin(); over || err != nil {
		return err
	}
	if err := m.compare(m.look); err != nil {
		return err
	}
	encoding := m.Value("encoding")
	return m.finish(encoding != "der", func() (any, error) {
		if m.only("encoding") {
			return m.ExecKw(m.ctx, "x509.encode_crl", []any{m.current.Raw}, map[string]any{"encoding": encoding})
		}
		if m.extensions["cRLNumber"] == "auto" {
			m.extensions["cRLNumber"] = m.next()
		}
		kw := map[string]any{"extensions": m.extensions}
		m.take(kw, "signing_cert", "signing_private_key_passphrase", "include_expired", "days_valid", "digest", "encoding")
		return m.ExecKw(m.ctx, "x509.create_crl", []any{m.Value("signing_private_key"), m.Value("revoked")}, kw)
	})
}

// next returns the number of the next revocation list.
func (m *revocations) next() any {
	if m.current == nil || m.current.Number == nil {
		return int64(1)
	}
	return new(big.Int).Add(m.current.Number, big.NewInt(1)).String()
}

// look compares the list in the file with the arguments.
func (m *revocations) look() error {
	b, err := x509mod.Source(m.Call.Call, m.real)
	if err != nil {
		return err
	}
	crl, err := pki.CRL(b)
	if err != nil {
		m.replace = true
		return nil
	}
	m.current, m.job.current = crl, true
	if err := m.compareDigest(crl.Raw, m.Value("digest"), m.Value("digest")); err != nil {
		return err
	}
	if v := m.Value("encoding"); v != encodingOf(b) {
		m.changes["encoding"] = v
	}
	days := m.Value("days_remaining")
	if days == nil {
		days = int64(30)
	}
	if pytext.Truth(days) {
		if err := m.expires(func(n int) bool { return crl.NextUpdate.Before(m.Now().AddDate(0, 0, n)) }, days); err != nil {
			return err
		}
	}
	want := maps.Clone(m.extensions)
	auto := want["cRLNumber"] == "auto"
	if auto {
		delete(want, "cRLNumber")
	}
	draft, err := x509mod.DraftRevocationList(m.Call.Call, want)
	if err != nil {
		return err
	}
	m.compareName("issuer_name", draft.Cert.RawSubject, crl.RawIssuer)
	if !x509mod.SignedBy(draft.Key.Public(), crl.SignatureAlgorithm, crl.RawTBSRevocationList, crl.Signature) {
		m.changes["public_key"] = true
	}
	m.compareRevoked(draft.Revoked)
	m.compareExtensions(draft.Extensions, crl.Extensions)
	if auto {
		m.numbered()
	}
	return nil
}

// numbered takes the number, which counts by itself, out of the changes, or puts it into them where there was none.
func (m *revocations) numbered() {
	all, _ := m.changes["extensions"].(map[string]any)
	removed, _ := all["removed"].([]any)
	if at := slices.Index(removed, any("cRLNumber")); at >= 0 {
		all["removed"] = slices.Delete(removed, at, at+1)
		if len(all["added"].([]any))+len(all["changed"].([]any))+len(removed)-1 == 0 {
			delete(m.changes, "extensions")
		}
		return
	}
	if all == nil {
		all = map[string]any{}
		m.changes["extensions"] = all
	}
	added, _ := all["added"].([]any)
	all["added"] = append(added, "cRLNumber")
}

// compareRevoked compares what is revoked.
func (m *revocations) compareRevoked(want []pki.Revoked) {
	added, changed, removed := map[string]bool{}, map[string]bool{}, map[string]bool{}
	have := m.current.RevokedCertificateEntries
	for _, r := range want {
		serial := pki.HexInt(r.Serial)
		at := slices.IndexFunc(have, func(e x509.RevocationListEntry) bool { return e.SerialNumber.Cmp(r.Serial) == 0 })
		if at < 0 {
			added[serial] = true
			continue
		}
		for _, e := range r.Extensions {
			if old, there := find(have[at].Extensions, e.ID); !there || !same(e, old) {
				changed[serial] = true
			}
		}
		for _, old := range have[at].Extensions {
			if !slices.ContainsFunc(r.Extensions, func(e pki.Extension) bool { return e.ID == old.Id.String() }) {
				changed[serial] = true
			}
		}
	}
	for _, e := range have {
		if !slices.ContainsFunc(want, func(r pki.Revoked) bool { return r.Serial.Cmp(e.SerialNumber) == 0 }) {
			removed[pki.HexInt(e.SerialNumber)] = true
		}
	}
	if len(added)+len(changed)+len(removed) > 0 {
		m.changes["revocations"] = map[string]any{"added": texts(added), "changed": texts(changed), "removed": texts(removed)}
	}
}
