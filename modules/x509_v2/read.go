package x509_v2

import (
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/pki"
	"github.com/brine-salt/brine/internal/python/pyglob"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func show(t time.Time) string { return t.UTC().Format(time.DateTime) }

func describe(c *modules.Call, cert *x509.Certificate) (map[string]any, error) {
	pub, err := pki.PublicPEM(cert.PublicKey)
	if err != nil {
		return nil, Wrap(err)
	}
	one, two := sha1.Sum(cert.Raw), sha256.Sum256(cert.Raw)
	prints := map[string]any{"sha1": pki.Hex(one[:]), "sha256": pki.Hex(two[:])}
	if c.Opt("fips_mode") == false {
		sum := md5.Sum(cert.Raw)
		prints["md5"] = pki.Hex(sum[:])
	}
	return map[string]any{
		"version": int64(cert.Version), "key_size": size(cert.PublicKey), "key_type": pki.KeyType(cert.PublicKey), "serial_number": pki.HexInt(cert.SerialNumber),
		"fingerprints": prints, "subject": pki.NameMap(cert.RawSubject), "subject_hash": pki.NameHash(cert.RawSubject), "subject_str": pki.NameText(cert.RawSubject),
		"issuer": pki.NameMap(cert.RawIssuer), "issuer_hash": pki.NameHash(cert.RawIssuer), "issuer_str": pki.NameText(cert.RawIssuer),
		"not_before": show(cert.NotBefore), "not_after": show(cert.NotAfter), "public_key": pub, "extensions": pki.Render(cert.Extensions, false),
		"signature_algorithm": pki.SignatureName(cert.Raw),
	}, nil
}

func readCertificate(_ context.Context, c *modules.Call) (any, error) {
	cert, err := Certificate(c, c.Value("certificate"))
	if err != nil {
		return nil, err
	}
	return describe(c, cert)
}

// files returns the regular files that match a pattern.
func files(c *modules.Call, pattern string) []string {
	var out []string
	for _, path := range pyglob.Glob(c.Path, pattern) {
		if c.IsFile(path) {
			out = append(out, path)
		}
	}
	return out
}

func readCertificates(_ context.Context, c *modules.Call) (any, error) {
	out := map[string]any{}
	for _, path := range files(c, c.Str("glob_path")) {
		cert, err := Certificate(c, path)
		if err != nil {
			return nil, err
		}
		if out[path], err = describe(c, cert); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func readCsr(_ context.Context, c *modules.Call) (any, error) {
	csr, err := request(c, c.Value("csr"))
	if err != nil {
		return nil, err
	}
	id, err := pki.KeyID(csr.PublicKey)
	if err != nil {
		return nil, Wrap(err)
	}
	return map[string]any{
		"key_size": size(csr.PublicKey), "key_type": pki.KeyType(csr.PublicKey), "subject": pki.NameMap(csr.RawSubject), "subject_hash": pki.NameHash(csr.RawSubject),
		"subject_str": pki.NameText(csr.RawSubject), "public_key_hash": pki.Hex(id), "extensions": pki.Render(csr.Extensions, false),
	}, nil
}

func readCrl(_ context.Context, c *modules.Call) (any, error) {
	crl, err := revocationList(c, c.Value("crl"))
	if err != nil {
		return nil, err
	}
	revoked := map[string]any{}
	for _, r := range crl.RevokedCertificateEntries {
		revoked[strings.ReplaceAll(pki.HexInt(r.SerialNumber), ":", "")] = map[string]any{
			"revocation_date": show(r.RevocationTime), "extensions": pki.Render(r.Extensions, true),
		}
	}
	return map[string]any{
		"issuer": pki.NameMap(crl.RawIssuer), "last_update": show(crl.ThisUpdate), "next_update": show(crl.NextUpdate), "revoked_certificates": revoked,
		"extensions": pki.Render(crl.Extensions, false), "signature_algorithm": pki.SignatureName(crl.Raw),
	}, nil
}

// entry returns the first PEM entry of a text, correctly formatted. kind is a regular expression; "" matches any.
func entry(text, kind string) (string, error) {
	text = oneLine(strings.ReplaceAll(text, `\n`, "\n"))
	problem := "PEM text not valid:\n" + text
	any := kind == ""
	if any {
		kind = "[0-9A-Z ]+"
	} else {
		problem = "PEM does not contain a single entry of type " + kind + ":\n" + text
	}
	re, err := regexp.Compile(`(?s)\s*(-----BEGIN (?:` + kind + `)-----)\s+(?:(Proc-Type: 4,ENCRYPTED)\s*)?(.+?)\s+(-----END (?:` + kind + `)-----)\s*`)
	if err != nil {
		return "", &modules.PythonError{Type: "re.error", Msg: err.Error()}
	}
	m := re.FindStringSubmatch(text)
	if m == nil {
		return "", modules.Usagef("%s", problem)
	}
	var b strings.Builder
	b.WriteString(m[1] + "\n")
	if proc := m[len(m)-3]; proc != "" {
		b.WriteString(proc + "\n")
	}
	body := strings.Join(strings.Fields(m[len(m)-2]), "")
	for len(body) > 0 {
		n := min(64, len(body))
		b.WriteString(body[:n] + "\n")
		body = body[n:]
	}
	b.WriteString(m[len(m)-1] + "\n")
	return b.String(), nil
}

// oneLine gives PEM that is all on one line its lines.
func oneLine(text string) string {
	if strings.Contains(strings.TrimSuffix(text, "\n"), "\n") || !strings.HasPrefix(text, "-----") || !strings.HasSuffix(text, "-----") {
		return text
	}
	var lines []string
	for text != "" {
		n := min(64, len(text))
		if strings.HasPrefix(text, "-----") {
			end := strings.Index(text[5:], "-----")
			if end < 0 {
				return strings.Join(append(lines, text), "\n")
			}
			n = end + 10
		} else if at := strings.IndexByte(text[:n], '-'); at >= 0 {
			n = at
		}
		lines, text = append(lines, text[:n]), text[n:]
	}
	return strings.Join(lines, "\n")
}

// pemSource returns the PEM text of a source: a file, or the argument itself.
func pemSource(c *modules.Call, v any) (string, error) {
	b, err := Source(c, v)
	if err != nil || utf8.Valid(b) {
		return string(b), err
	}
	at := 0
	for r, n := utf8.DecodeRune(b); r != utf8.RuneError || n != 1; r, n = utf8.DecodeRune(b[at:]) {
		at += n
	}
	why := "invalid start byte"
	if b[at] >= 0xc2 && b[at] < 0xf5 {
		why = "invalid continuation byte"
	}
	return "", &modules.PythonError{Type: "UnicodeDecodeError", Msg: fmt.Sprintf("'utf-8' codec can't decode byte 0x%02x in position %d: %s", b[at], at, why)}
}

func getPemEntry(_ context.Context, c *modules.Call) (any, error) {
	text, err := pemSource(c, c.Value("text"))
	if err != nil {
		return nil, err
	}
	got, err := entry(text, c.Str("pem_type"))
	if err != nil {
		return nil, err
	}
	return []byte(got), nil
}

func getPemEntries(_ context.Context, c *modules.Call) (any, error) {
	out := map[string]any{}
	for _, path := range files(c, c.Str("glob_path")) {
		text, err := pemSource(c, path)
		if err != nil {
			return nil, err
		}
		got, err := entry(text, "")
		if err != nil {
			return nil, err
		}
		out[path] = []byte(got)
	}
	return out, nil
}

func writePem(_ context.Context, c *modules.Call) (any, error) {
	text, err := pemSource(c, c.Value("text"))
	if err != nil {
		return nil, err
	}
	kind := c.Str("pem_type")
	if text, err = entry(text, kind); err != nil {
		return nil, err
	}
	path := c.Str("path")
	if _, there := isFile(c, path); there && kind == "CERTIFICATE" && !c.Bool("overwrite") {
		// The rest of the file stays: the key before the certificate, and the parameters after it.
		old, err := pemSource(c, path)
		if err != nil {
			return nil, err
		}
		if key, err := entry(old, "(?:RSA )?PRIVATE KEY"); err == nil {
			text = key + text
		}
		if dh, err := entry(old, "DH PARAMETERS"); err == nil {
			text += dh
		}
	}
	if err := atomicfile.Replace(c.Path(path), []byte(text), 0o600); err != nil {
		return nil, modules.OSError(err)
	}
	return "PEM written to " + pytext.Str(c.Value("path")), nil
}
