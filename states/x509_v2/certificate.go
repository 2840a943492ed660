package x509_v2

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/pki"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
	x509mod "github.com/brine-salt/brine/modules/x509_v2"
	"github.com/brine-salt/brine/states"
)

// certificate is one run of certificate_managed.
type certificate struct {
	*job
	// given holds the arguments that determine the certificate's content.
	given map[string]any
	// further are the certificates that follow it.
	further []any
	raw     []byte
}

func certificateManaged(ctx context.Context, c *states.Call) (*states.Result, error) {
	m := &certificate{job: newJob(ctx, c, "certificate")}
	digest := m.digest()
	m.given = maps.Clone(m.args)
	m.given["digest"] = digest
	m.take(m.given, "signing_private_key", "signing_private_key_passphrase", "signing_cert", "public_key", "private_key", "private_key_passphrase", "csr",
		"subject", "serial_number", "not_before", "not_after", "days_valid")
	if m.given["days_valid"] == nil && m.given["not_after"] == nil {
		m.given["days_valid"] = int64(365)
	}
	if v := c.Value("append_certs"); pytext.Truth(v) {
		var ok bool
		if m.further, ok = v.([]any); !ok {
			m.further = []any{v}
		}
	}
	return m.answer(m.run())
}

func (m *certificate) run() error {
	if over, err := m.begin(); over || err != nil {
		return err
	}
	if err := m.compare(m.look); err != nil {
		return err
	}
	encoding := m.Value("encoding")
	return m.finish(encoding == "pem" || encoding == "pkcs7_pem", func() (any, error) {
		kw := map[string]any{"append_certs": append([]any{}, m.further...)}
		m.take(kw, "encoding")
		if !m.only("additional_certs", "encoding", "pkcs12_friendlyname") {
			maps.Copy(kw, m.given)
			m.take(kw, "ca_server", "signing_policy", "pkcs12_passphrase", "pkcs12_encryption_compat", "pkcs12_friendlyname")
			return m.ExecKw(m.ctx, "x509.create_certificate", nil, kw)
		}
		if encoding == "pkcs12" {
			m.take(kw, "private_key", "private_key_passphrase", "pkcs12_passphrase", "pkcs12_encryption_compat", "pkcs12_friendlyname")
			if !m.Bool("signing_cert") {
				kw["private_key"], kw["private_key_passphrase"] = m.Value("signing_private_key"), m.Value("signing_private_key_passphrase")
			}
		}
		return m.ExecKw(m.ctx, "x509.encode_certificate", []any{m.raw}, kw)
	})
}

// look compares the certificate in the file with the arguments.
func (m *certificate) look() error {
	b, err := x509mod.Source(m.Call.Call, m.real)
	if err != nil {
		return err
	}
	var passphrase []byte
	if v := m.Value("pkcs12_passphrase"); v != nil {
		passphrase = []byte(pytext.Str(v))
	}
	loaded, err := pki.LoadCert(b, passphrase)
	var bad *pki.Error
	if errors.As(err, &bad) && bad.Kind == "InvalidPassword" {
		m.changes["pkcs12_passphrase"] = true
		return nil
	}
	if err != nil {
		m.replace = true
		return nil
	}
	cert := loaded.Cert
	m.current, m.raw = true, cert.Raw
	name := ""
	if v := m.Value("pkcs12_friendlyname"); pytext.Truth(v) {
		name = pytext.Str(v)
	}
	if v := m.Value("encoding"); v != loaded.Encoding {
		m.changes["encoding"] = v
	} else if v == "pkcs12" && name != loaded.Name {
		m.changes["pkcs12_friendlyname"] = m.Value("pkcs12_friendlyname")
	}
	days := m.Value("days_remaining")
	if days == nil {
		days = int64(90)
	}
	if err := m.expires(func(n int) bool { return cert.NotAfter.Before(m.Now().AddDate(0, 0, n)) }, days); err != nil {
		return err
	}
	if err := m.compareChain(loaded); err != nil {
		return err
	}
	draft, args, err := m.draft()
	if err != nil {
		return err
	}
	if err := m.compareDigest(cert.Raw, args["digest"], m.given["digest"]); err != nil {
		return err
	}
	if v := m.Value("serial_number"); v != nil && draft.Serial.Cmp(cert.SerialNumber) != 0 {
		m.changes["serial_number"] = v
	}
	if !pki.SamePublic(draft.PublicKey, cert.PublicKey) {
		m.changes["private_key"] = true
	}
	if draft.CA != nil && !x509mod.SignedBy(draft.CA.PublicKey, cert.SignatureAlgorithm, cert.RawTBSCertificate, cert.Signature) {
		m.changes["signing_private_key"] = true
	}
	m.compareName("subject_name", draft.Subject, cert.RawSubject)
	m.compareName("issuer_name", draft.Issuer, cert.RawIssuer)
	m.compareExtensions(draft.Extensions, cert.Extensions)
	return nil
}

// draft returns the certificate that the state would create now.
func (m *certificate) draft() (*x509mod.Draft, map[string]any, error) {
	v, err := m.ExecKw(m.ctx, "x509.get_signing_policy", []any{m.Value("signing_policy")}, map[string]any{"ca_server": m.Value("ca_server")})
	if err != nil {
		return nil, nil, err
	}
	policy, _ := v.(map[string]any)
	args := x509mod.Merge(policy, m.given)
	d, err := x509mod.DraftCertificate(m.Call.Call, args, m.Value("ca_server") != nil)
	return d, args, err
}

// compareChain compares the certificates behind the one in the file; PKCS#7 keeps them in no order.
func (m *certificate) compareChain(loaded *pki.Loaded) error {
	order := func(list [][]byte) [][]byte {
		if strings.Contains(loaded.Encoding, "pkcs7") {
			sorting.Stable(list, bytes.Compare)
		}
		return list
	}
	var have, want [][]byte
	for _, cert := range loaded.Chain {
		have = append(have, cert.Raw)
	}
	for _, x := range m.further {
		cert, err := x509mod.Certificate(m.Call.Call, x)
		if err != nil {
			return err
		}
		want = append(want, cert.Raw)
	}
	if !slices.EqualFunc(order(have), order(want), bytes.Equal) {
		m.changes["additional_certs"] = true
	}
	return nil
}
