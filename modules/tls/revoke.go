package tls

import (
	"context"
	"crypto/x509"
	"math/big"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/pki"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// listDays is how long a revocation list is valid.
const listDays = 36500

// authority returns the certificate and the key of the authority.
func (r *room) authority() (*x509.Certificate, signer, error) {
	if err := r.fixVersion(); err != nil {
		return nil, nil, err
	}
	cert, err := r.cert(r.caFile() + ".crt")
	if err != nil {
		return nil, nil, err
	}
	key, err := r.key(r.caFile() + ".key")
	return cert, key, err
}

// list signs a revocation list. Stock takes SHA-256 for a digest that it does not know.
func (r *room) list(ca *x509.Certificate, key signer, revoked []pki.Revoked, sum any) ([]byte, error) {
	name, err := digest(sum)
	if err != nil {
		if err != error(errDigest) {
			return nil, err
		}
		name = "sha256"
	}
	now := r.Now()
	b, err := pki.RevocationList(key, name, ca.RawSubject, now, now.Add(listDays*24*time.Hour), revoked, nil)
	return pki.PEM("X509 CRL", b), err
}

func createEmptyCrl(ctx context.Context, c *modules.Call) (any, error) {
	r, err := enter(ctx, c)
	if err != nil {
		return nil, err
	}
	file := r.base + "/" + r.ca() + "/crl.pem"
	if v := c.Value("crl_file"); pytext.Truth(v) {
		file = pytext.Str(v)
	}
	if r.exists(file) {
		return `CRL "` + file + `" already exists`, nil
	}
	ca, key, err := r.signer()
	if notRead(err) {
		return `There is no CA named "` + r.ca() + `"`, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := r.list(ca, key, nil, c.Value("digest"))
	if err != nil {
		return nil, err
	}
	if err := r.write(file, b, 0o644); err != nil {
		return nil, err
	}
	return `Created an empty CRL: "` + file + `"`, nil
}

// signer returns the certificate and the key of the authority, whatever its version.
func (r *room) signer() (*x509.Certificate, signer, error) {
	cert, err := r.cert(r.caFile() + ".crt")
	if err != nil {
		return nil, nil, err
	}
	key, err := r.key(r.caFile() + ".key")
	return cert, key, err
}

func revokeCert(ctx context.Context, c *modules.Call) (any, error) {
	r, err := enter(ctx, c)
	if err != nil {
		return nil, err
	}
	dir := r.base + "/" + r.ca()
	certs, name, file := dir+"/certs", pytext.Str(c.Value("CN")), dir+"/crl.pem"
	if v := c.Value("cert_path"); v != nil {
		certs = pytext.Str(v)
	}
	if v := c.Value("cert_filename"); v != nil {
		name = pytext.Str(v)
	}
	if v := c.Value("crl_file"); v != nil {
		file = pytext.Str(v)
	}
	ca, key, err := r.signer()
	if notRead(err) {
		return `There is no CA named "` + r.ca() + `"`, nil
	}
	if err != nil {
		return nil, err
	}
	cert := r.given(certs + "/" + name + ".crt")
	if cert == nil {
		return `There is no client certificate named "` + pytext.Str(c.Value("CN")) + `"`, nil
	}
	// Before the index says so: what is noted there as revoked is not tried again.
	if _, err := digest(c.Value("digest")); err != nil && err != error(errDigest) {
		return nil, err
	}
	serial := strings.ToUpper(cert.SerialNumber.Text(16))
	if ret, err := r.markRevoked(dir+"/index.txt", cert); err != nil || ret != "" {
		return `"` + certs + "/" + name + `.crt" ` + ret + serial, err
	}
	revoked, err := r.revoked(dir + "/index.txt")
	if err != nil {
		return nil, err
	}
	b, err := r.list(ca, key, revoked, c.Value("digest"))
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(r.Path(file)); err == nil && info.IsDir() {
		return map[string]any{"retcode": int64(1), "comment": `crl_file "` + file + `" is an existing directory`}, nil
	}
	if err := r.write(file, b, 0o644); err != nil {
		return nil, err
	}
	return `Revoked Certificate: "` + certs + "/" + name + `.crt", serial number: ` + serial, nil
}

// markRevoked notes in the index that a certificate is revoked. The text says that it was already.
func (r *room) markRevoked(index string, cert *x509.Certificate) (string, error) {
	ends, rest := indexEntry(cert)
	b, err := r.read(index)
	if err != nil {
		return "", err
	}
	done, err := regexp.Compile(`^R\t` + ends + `\t\d{12}Z\t` + regexp.QuoteMeta(rest))
	if err != nil {
		return "", err
	}
	for line := range strings.SplitAfterSeq(string(b), "\n") {
		switch {
		case done.MatchString(line):
			return "was already revoked, serial number: ", nil
		case strings.Contains(line, rest):
			// What the file has is taken literally, other than stock does.
			want := "R\t" + ends + "\t" + r.Now().UTC().Format(twoDigitYear) + "\t" + rest
			text := strings.ReplaceAll(string(b), "V\t"+ends+"\t\t"+rest, want)
			return "", r.write(index, []byte(text), 0o644)
		}
	}
	return "", nil
}

// revoked returns the certificates that the index lists as revoked.
func (r *room) revoked(index string) ([]pki.Revoked, error) {
	b, err := r.read(index)
	if err != nil {
		return nil, err
	}
	var out []pki.Revoked
	for line := range strings.SplitAfterSeq(string(b), "\n") {
		if !strings.HasPrefix(line, "R") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) < 4 {
			return nil, modules.IndexError()
		}
		n, ok := new(big.Int).SetString(strings.TrimSpace(fields[3]), 16)
		if !ok || n.Sign() <= 0 || len(fields[3]) > 1000 {
			return nil, &modules.PythonError{Type: "ValueError", Msg: "invalid literal for int() with base 16: " + pytext.Repr(fields[3])}
		}
		at, err := time.Parse(twoDigitYear, fields[2])
		if err != nil {
			return nil, &modules.PythonError{Type: "ValueError", Msg: "time data " + pytext.Repr(fields[2]) + " does not match format '%y%m%d%H%M%SZ'"}
		}
		out = append(out, pki.Revoked{Serial: n, Date: at})
	}
	return out, nil
}
