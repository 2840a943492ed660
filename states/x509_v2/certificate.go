package x509_v2

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"maps"

	"github.com/brine-salt/brine/internal/pki"
	"github.com/brine-salt/brine/internal/pytext"
	x509mod "github.com/brine-salt/brine/modules/x509_v2"
	"github.com/brine-salt/brine/states"
)

// certificate is one run of certificate_managed.
type certificate struct {
	*job
	// given are the arguments that say what is in the certificate.
	given map[string]any
	// further are the certificates behind it.
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
			m.take(kw, "private_key", "pkcs12_passphrase", "pkcs12_encryption_compat", "pkcs12_friendlyname")
			if !m.Bool("signing_cert") {
				kw["private_key"] = m.Value("signing_private_key")
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
	cert, err := pki.Cert(b)
	if err != nil {
		m.replace = true
		return nil
	}
	m.current, m.raw = true, cert.Raw
	if v := m.Value("encoding"); v != encodingOf(b) {
		m.changes["encoding"] = v
	}
	days := m.Value("days_remaining")
	if days == nil {
		days = int64(90)
	}
	if err := m.expires(func(n int) bool { return cert.NotAfter.Before(m.Now().AddDate(0, 0, n)) }, days); err != nil {
		return err
	}
	if err := m.compareChain(b); err != nil {
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

// draft is the certificate that would be made now.
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

// compareChain compares the certificates behind the one in the file.
func (m *certificate) compareChain(b []byte) error {
	have := chain(b)
	want := make([][]byte, len(m.further))
	for i, x := range m.further {
		cert, err := x509mod.Certificate(m.Call.Call, x)
		if err != nil {
			return err
		}
		want[i] = cert.Raw
	}
	equal := len(have) == len(want)
	for i := 0; equal && i < len(want); i++ {
		equal = bytes.Equal(have[i], want[i])
	}
	if !equal {
		m.changes["additional_certs"] = true
	}
	return nil
}

// chain are the certificates in PEM behind the first one.
func chain(b []byte) [][]byte {
	var out [][]byte
	_, rest := pem.Decode(b)
	for block, rest := pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" && block.Type != "X509 CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, block.Bytes)
		}
	}
	return out
}
