package pki

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"slices"

	"github.com/brine-salt/brine/internal/sorting"
)

// PKCS7 encodes a PKCS#7 structure (RFC 2315) that contains only certificates.
func PKCS7(certs [][]byte) []byte {
	list := slices.Clone(certs)
	sorting.Stable(list, bytes.Compare) // DER sorts the elements of a SET
	return content(oidSignedData, der(tagSequence, der(tagInt, []byte{1}), der(tagSet), der(tagSequence, mustOID(oidData)),
		der(contextTag|constructed, list...), der(tagSet)))
}

var errNotPKCS7 = &Error{"ValueError", "Unable to parse PKCS7 data"}

// parsePKCS7 returns the certificates of a PKCS#7 structure, in no particular order.
func parsePKCS7(b []byte) ([]*x509.Certificate, error) {
	info, err := inside(b)
	if err != nil || len(info) != 2 || idText(info[0].FullBytes) != oidSignedData {
		return nil, errNotPKCS7
	}
	signed, err := inside(info[1].Bytes)
	if err != nil || len(signed) < 4 {
		return nil, errNotPKCS7
	}
	var out []*x509.Certificate
	if set, ok := find(signed, 0); ok {
		certs, err := children(set.Bytes)
		if err != nil {
			return nil, errNotPKCS7
		}
		for _, v := range certs {
			c, err := x509.ParseCertificate(v.FullBytes)
			if err != nil {
				return nil, errNotPKCS7
			}
			out = append(out, c)
		}
	}
	if out == nil {
		return nil, errNotPKCS7
	}
	return out, nil
}

// inOrder sorts certificates: first the longest chain from a certificate to its issuers, then the others by
// fingerprint.
func inOrder(list []*x509.Certificate) []*x509.Certificate {
	print := func(c *x509.Certificate) []byte { sum := sha256.Sum256(c.Raw); return sum[:] }
	sorting.Stable(list, func(a, b *x509.Certificate) int { return bytes.Compare(print(a), print(b)) })
	checks := 0
	signed := func(c, by *x509.Certificate) bool {
		if c == by || checks >= maxSteps || !bytes.Equal(c.RawIssuer, by.RawSubject) {
			return false
		}
		checks++ // identical names lead to many pairs
		return by.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil
	}
	issuers := map[*x509.Certificate][]*x509.Certificate{}
	issued := map[*x509.Certificate]bool{}
	for _, c := range list {
		for _, by := range list {
			if signed(c, by) {
				issuers[c] = append(issuers[c], by)
				issued[by] = true
			}
		}
	}
	var best []*x509.Certificate
	steps := 0
	var walk func(path []*x509.Certificate)
	walk = func(path []*x509.Certificate) {
		if len(path) > len(best) {
			best = slices.Clone(path)
		}
		// Keys that sign each other's certificates lead to many paths.
		if steps++; steps > maxSteps {
			return
		}
		for _, by := range issuers[path[len(path)-1]] {
			if !slices.Contains(path, by) {
				walk(append(path, by))
			}
		}
	}
	for _, c := range list {
		if !issued[c] {
			walk([]*x509.Certificate{c})
		}
	}
	for _, c := range list {
		if !slices.Contains(best, c) {
			best = append(best, c)
		}
	}
	return best
}

// maxSteps limits the steps of the search, and the signatures that it checks.
const maxSteps = 10_000

// Loaded is a certificate with the data that came with it.
type Loaded struct {
	Cert *x509.Certificate
	// Encoding is the encoding of the source: pem, der, pkcs7_pem, pkcs7_der or pkcs12.
	Encoding string
	// Chain has the certificates that follow Cert. Name is the friendly name in PKCS#12.
	Chain []*x509.Certificate
	Name  string
}

// LoadCert parses a certificate and those that follow it.
func LoadCert(b, passphrase []byte) (*Loaded, error) {
	if IsPEM(b) {
		return loadPEM(b)
	}
	if c, err := x509.ParseCertificate(b); err == nil {
		return &Loaded{Cert: c, Encoding: "der"}, nil
	}
	bundle, err := ParsePKCS12(b, passphrase)
	if err == errPassword || err == errEncrypted {
		return nil, errPassword
	}
	if err == nil && bundle.Cert != nil {
		return &Loaded{bundle.Cert, "pkcs12", bundle.Chain, bundle.Name}, nil
	}
	if list, err := parsePKCS7(b); err == nil {
		list = inOrder(list)
		return &Loaded{Cert: list[0], Encoding: "pkcs7_der", Chain: list[1:]}, nil
	}
	return nil, usage("Could not deserialize binary data, neither as DER nor PKCS#7, PKCS#12.")
}

func loadPEM(b []byte) (*Loaded, error) {
	block, rest := pem.Decode(b)
	if block != nil && block.Type == "PKCS7" {
		list, err := parsePKCS7(block.Bytes)
		if err != nil {
			return nil, usage("Could not load PEM-encoded PKCS#7 blob")
		}
		list = inOrder(list)
		return &Loaded{Cert: list[0], Encoding: "pkcs7_pem", Chain: list[1:]}, nil
	}
	raw, err := load(b, "certificate", "CERTIFICATE", "X509 CERTIFICATE")
	if err != nil {
		return nil, err
	}
	c, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, usage("Could not load PEM-encoded certificate.")
	}
	out := &Loaded{Cert: c, Encoding: "pem"}
	for block, rest := pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" && block.Type != "X509 CERTIFICATE" {
			continue
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			out.Chain = append(out.Chain, c)
		}
	}
	return out, nil
}
