package tls

import (
	"context"
	"crypto/x509"
	"math/big"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/hashname"
	"github.com/brine-salt/brine/internal/pki"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/strftime"
	"github.com/brine-salt/brine/modules"
)

func unreadable(v any) error {
	return modules.Errorf("Failed to read cert from %s, see log for details", pytext.Str(v))
}

// given returns the certificate at the path in v, or nil if it is missing.
func (r *room) given(v any) *x509.Certificate {
	path, ok := v.(string)
	if !ok {
		r.Logger().Error("Not a valid cert path/object", "cert", pytext.Str(v))
		return nil
	}
	cert, err := r.cert(path)
	if err != nil {
		r.Logger().Error("Failed to read cert from path "+path, "error", err)
		return nil
	}
	return cert
}

func getExpirationDate(ctx context.Context, c *modules.Call) (any, error) {
	r := &room{Call: c, ctx: ctx}
	cert := r.given(c.Value("cert"))
	if cert == nil {
		return nil, unreadable(c.Value("cert"))
	}
	format, ok := c.Value("date_format").(string)
	if !ok {
		return nil, &modules.TypeError{Msg: "strftime() argument 1 must be str, not " + modules.TypeName(c.Value("date_format"))}
	}
	return strftime.Naive(format, cert.NotAfter.UTC()), nil
}

// number converts a number to an int64 if it fits.
func number(n *big.Int) any {
	if n.IsInt64() {
		return n.Int64()
	}
	return n
}

// nameMap returns the attributes of a name. Of several with the same name the last one counts.
func nameMap(raw []byte) map[string]any {
	out := map[string]any{}
	for _, p := range pki.NameComponents(raw) {
		out[p[0]] = p[1]
	}
	return out
}

func certInfo(ctx context.Context, c *modules.Call) (any, error) {
	r := &room{Call: c, ctx: ctx}
	text, ok := c.Value("cert").(string)
	if !ok {
		return nil, &modules.TypeError{Msg: "argument of type '" + modules.TypeName(c.Value("cert")) + "' is not iterable"}
	}
	b := []byte(text)
	if !strings.Contains(text, "-----BEGIN") {
		var err error
		if b, err = r.read(text); err != nil {
			return nil, err
		}
	}
	cert, _, err := parseCert(b)
	if err != nil {
		return nil, err
	}
	h := hashname.New(strings.ReplaceAll(strings.ToLower(pytext.Str(c.Value("digest"))), "-", ""))
	if h == nil {
		return nil, errDigest
	}
	h.Write(cert.Raw)
	ret := map[string]any{
		"fingerprint": pki.Hex(h.Sum(nil)), "subject": nameMap(cert.RawSubject), "issuer": nameMap(cert.RawIssuer), "serial_number": number(cert.SerialNumber),
		"not_before": cert.NotBefore.Unix(), "not_after": cert.NotAfter.Unix(), "signature_algorithm": signatureName(cert),
	}
	extensions := map[string]any{}
	for _, e := range cert.Extensions {
		name, text := pki.OpenSSLText(e)
		extensions[name] = text
		if name == "subjectAltName" {
			ret["subject_alt_names"] = alternatives(text)
		}
	}
	ret["extensions"] = extensions
	return ret, nil
}

// signatureName returns OpenSSL's name for the signature algorithm.
func signatureName(cert *x509.Certificate) string {
	if name := pki.SignatureName(cert.Raw); name != "ed25519" && name != "ed448" {
		return name
	}
	return strings.ToUpper(pki.SignatureName(cert.Raw))
}

// alternatives returns the host names and IP addresses in a text of subject alternative names.
func alternatives(text string) []any {
	out := []any{}
	for item := range strings.SplitSeq(text, ", ") {
		kind, name, _ := strings.Cut(item, ":")
		if (kind == "DNS" || kind == "IP Address") && !slices.Contains(out, any(name)) {
			out = append(out, name)
		}
	}
	return out
}
