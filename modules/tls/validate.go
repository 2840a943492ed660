package tls

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"slices"

	"github.com/brine-salt/brine/internal/pki"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func validate(ctx context.Context, c *modules.Call) (any, error) {
	base, err := basePath(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	r := &room{c, ctx, pytext.Str(base)}
	cert := r.given(c.Value("cert"))
	if cert == nil {
		return nil, unreadable(c.Value("cert"))
	}
	dir := r.base + "/" + r.ca()
	ca := r.given(r.caFile() + ".crt")
	if ca == nil {
		return nil, &modules.TypeError{}
	}
	var crl *x509.RevocationList
	if v := c.Value("crl_file"); v != nil {
		if crl, err = r.revocationList(pytext.Str(v)); err != nil {
			return nil, err
		}
	} else if crl, err = r.current(dir, ca); err != nil {
		c.Logger().Warn("Could not create empty CRL", "error", err)
		return map[string]any{"valid": false, "error": "Empty CRL requested but CA key missing or invalid"}, nil
	}
	if listed(crl, cert) {
		return wrong("certificate revoked", cert), nil
	}
	if problem, at := r.verify(cert, ca, crl); problem != "" {
		return wrong(problem, at), nil
	}
	return map[string]any{"valid": true}, nil
}

func wrong(why string, cert *x509.Certificate) map[string]any {
	return map[string]any{"valid": false, "error": why, "error_cert": string(pki.PEM("CERTIFICATE", cert.Raw))}
}

func listed(crl *x509.RevocationList, cert *x509.Certificate) bool {
	return slices.ContainsFunc(crl.RevokedCertificateEntries, func(e x509.RevocationListEntry) bool { return e.SerialNumber.Cmp(cert.SerialNumber) == 0 })
}

func (r *room) revocationList(path string) (*x509.RevocationList, error) {
	b, err := r.read(path)
	if err != nil {
		return nil, err
	}
	crl, err := pki.CRL(b)
	if p, _ := pem.Decode(b); p == nil {
		return nil, &modules.PythonError{Type: "ValueError", Msg: "Unable to load PEM file. See https://cryptography.io/en/latest/faq/#why-can-t-i-import-my-pem-file for more details. MalformedFraming"}
	}
	if err != nil {
		return nil, &modules.PythonError{Type: "ValueError", Msg: "Valid PEM but no BEGIN X509 CRL/END X509 delimiters. Are you sure this is a CRL?"}
	}
	return crl, nil
}

// current returns a new revocation list with the present content of the authority's index.
func (r *room) current(dir string, ca *x509.Certificate) (*x509.RevocationList, error) {
	key, err := r.key(r.caFile() + ".key")
	if err != nil {
		return nil, err
	}
	var revoked []pki.Revoked
	if index := dir + "/index.txt"; r.exists(index) {
		if revoked, err = r.revoked(index); err != nil {
			return nil, err
		}
	}
	b, err := r.list(ca, key, revoked, "sha256")
	if err != nil {
		return nil, err
	}
	return pki.CRL(b)
}

// verify checks a certificate against an authority and its revocation list, as OpenSSL does. problem is OpenSSL's
// text for the first problem, or "".
func (r *room) verify(cert, ca *x509.Certificate, crl *x509.RevocationList) (problem string, at *x509.Certificate) {
	chain := []*x509.Certificate{cert}
	if !bytes.Equal(cert.Raw, ca.Raw) {
		switch {
		case bytes.Equal(cert.RawIssuer, cert.RawSubject):
			return "self-signed certificate", cert
		case !issued(ca, cert):
			return "unable to get local issuer certificate", cert
		}
		chain = append(chain, ca)
	}
	root := chain[len(chain)-1]
	if !bytes.Equal(root.RawIssuer, root.RawSubject) {
		return "unable to get issuer certificate", root
	}
	if len(chain) > 1 && (!ca.IsCA || !ca.BasicConstraintsValid && ca.Version == 3) {
		return "invalid CA certificate", ca
	}
	if problem, at := r.checkLists(chain, ca, crl); problem != "" {
		return problem, at
	}
	now := r.Now()
	for _, x := range slices.Backward(chain) {
		by := x
		if x == cert && len(chain) > 1 {
			by = ca
		}
		switch {
		case x != root && by.CheckSignature(x.SignatureAlgorithm, x.RawTBSCertificate, x.Signature) != nil:
			return "certificate signature failure", x
		case now.Before(x.NotBefore):
			return "certificate is not yet valid", x
		case now.After(x.NotAfter):
			return "certificate has expired", x
		}
	}
	return "", nil
}

// issued reports whether an authority may have signed a certificate, from what both say.
func issued(ca, cert *x509.Certificate) bool {
	id := cert.AuthorityKeyId
	return bytes.Equal(cert.RawIssuer, ca.RawSubject) && (len(id) == 0 || len(ca.SubjectKeyId) == 0 || bytes.Equal(id, ca.SubjectKeyId)) &&
		(ca.KeyUsage == 0 || ca.KeyUsage&x509.KeyUsageCertSign != 0)
}

// checkLists looks for the certificates of a chain in a revocation list, which must be one of the authority.
func (r *room) checkLists(chain []*x509.Certificate, ca *x509.Certificate, crl *x509.RevocationList) (string, *x509.Certificate) {
	now := r.Now()
	for _, x := range chain {
		switch {
		case !bytes.Equal(crl.RawIssuer, x.RawIssuer):
			return "unable to get certificate CRL", x
		case ca.KeyUsage != 0 && ca.KeyUsage&x509.KeyUsageCRLSign == 0:
			return "key usage does not include CRL signing", x
		case !inScope(crl, x):
			return "different CRL scope", x
		case now.Before(crl.ThisUpdate):
			return "CRL is not yet valid", x
		case !crl.NextUpdate.IsZero() && now.After(crl.NextUpdate):
			return "CRL has expired", x
		case crl.CheckSignatureFrom(ca) != nil:
			return "CRL signature failure", x
		case listed(crl, x):
			return "certificate revoked", x
		}
	}
	return "", nil
}

// inScope reports whether a revocation list covers a certificate, according to its distribution point.
func inScope(crl *x509.RevocationList, cert *x509.Certificate) bool {
	point, ok := pki.Render(crl.Extensions, false)["issuingDistributionPoint"].(map[string]any)
	if !ok {
		return true
	}
	if point["onlyAA"] == true || point["onlyuser"] == true && cert.IsCA || point["onlyCA"] == true && !cert.IsCA {
		return false
	}
	names, _ := point["fullname"].([]any)
	if len(names) == 0 {
		return true
	}
	own, _ := pki.Render(cert.Extensions, false)["crlDistributionPoints"].(map[string]any)
	points, _ := own["value"].([]any)
	return slices.ContainsFunc(points, func(p any) bool {
		m, _ := p.(map[string]any)
		list, _ := m["fullname"].([]any)
		return slices.ContainsFunc(list, func(name any) bool { return slices.Contains(names, name) })
	})
}
