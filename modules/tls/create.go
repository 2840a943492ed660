package tls

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/pki"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

type signer = crypto.Signer

// maxBits is the largest key that OpenSSL makes.
const maxBits = 16384

var errDigest = &modules.PythonError{Type: "ValueError", Msg: "No such digest method"}

// newKey makes a key of as many bits as the argument of that name says.
func (r *room) newKey(v any) (signer, error) {
	bits, ok := v.(int64)
	switch {
	case !ok:
		return nil, &modules.TypeError{Msg: "bits must be an integer"}
	case bits <= 0:
		return nil, &modules.PythonError{Type: "ValueError", Msg: "Invalid number of bits"}
	case bits < 1024:
		return nil, sslError("rsa routines", "key size too small")
	case bits > maxBits:
		return nil, sslError("rsa routines", "modulus too large")
	}
	key, err := pki.NewRSA(r.ctx, int(bits))
	if err != nil {
		return nil, err // and no signer that holds a nil key
	}
	return key, nil
}

// digest returns the name of a digest for signatures.
func digest(v any) (string, error) {
	name := strings.ReplaceAll(strings.ToLower(pytext.Str(v)), "-", "")
	switch name {
	case "sha224", "sha256", "sha384", "sha512":
		return name, nil
	case "md5", "sha1", "sha3224", "sha3256", "sha3384", "sha3512", "sha512224", "sha512256":
		return "", modules.Usagef("The digest %s is not used for signatures here", pytext.Str(v))
	}
	return "", errDigest
}

// subject returns the name that the arguments describe.
func subject(arg func(name string) any) ([]byte, error) {
	var list []pki.Attribute
	for _, name := range [...]string{"C", "ST", "L", "O", "OU", "CN", "emailAddress"} {
		v := arg(name)
		if (name == "OU" || name == "emailAddress") && !pytext.Truth(v) {
			continue
		}
		s, ok := v.(string)
		if !ok {
			return nil, &modules.TypeError{Msg: "initializer for ctype 'unsigned char *' must be a cdata pointer, not " + modules.TypeName(v)}
		}
		list = append(list, pki.Attribute{Name: name, Value: s})
	}
	name, problem := pki.OpenSSLName(list)
	if problem != "" {
		return nil, sslError("asn1 encoding routines", problem)
	}
	return name, nil
}

// newSerial returns a random serial number, and records it in the minion's cache.
func (r *room) newSerial(name string) (*big.Int, error) {
	n, err := pki.Serial(nil)
	if err != nil {
		return nil, err
	}
	dir, _ := r.Opt("cachedir").(string)
	if dir == "" {
		return n, nil
	}
	if err := os.MkdirAll(r.Path(dir), 0o755); err != nil {
		return nil, modules.OSError(err)
	}
	return n, r.append(filepath.Join(dir, name+".serial"), n.String())
}

// append adds to the end of a file.
func (r *room) append(path, text string) error {
	f, err := os.OpenFile(r.Path(path), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return modules.OSError(err)
	}
	_, err = f.WriteString(text)
	return modules.OSError(errors.Join(err, f.Close()))
}

func (r *room) write(path string, b []byte, mode fs.FileMode) error {
	return modules.OSError(atomicfile.Replace(r.Path(path), b, mode))
}

func (r *room) mkdir(path string) error { return modules.OSError(os.MkdirAll(r.Path(path), 0o755)) }

func keyPEM(key signer) ([]byte, error) {
	b, kind, err := pki.EncodeKey(key, nil)
	return pki.PEM(kind, b), err
}

// span returns the period for which a certificate with this number of days is valid.
func (r *room) span(days any) (from, to time.Time, err error) {
	n, err := modules.ToInt(days)
	if err != nil {
		return from, to, err
	}
	from = r.Now().UTC().Truncate(time.Second)
	to, ok := pki.InDays(from, n)
	if !ok {
		return from, to, &modules.PythonError{Type: "OverflowError", Msg: "date value out of range"}
	}
	return from, to, nil
}

// index adds a certificate to the index of an authority.
func (r *room) index(name string, raw []byte) error {
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		return err
	}
	ends, rest := indexEntry(cert)
	return r.append(r.base+"/"+name+"/index.txt", "V\t"+ends+"\t\t"+rest)
}

// indexEntry returns the end of a certificate's validity, and the constant part of its line in the index. As stock
// does, it writes names as Python's bytes.
func indexEntry(cert *x509.Certificate) (ends, rest string) {
	var list []string
	for _, p := range pki.NameComponents(cert.RawSubject) {
		list = append(list, pytext.Bytes([]byte(p[0]))+"="+pytext.Bytes([]byte(p[1])))
	}
	return cert.NotAfter.UTC().Format(twoDigitYear), strings.ToUpper(cert.SerialNumber.Text(16)) + "\tunknown\t/" + strings.Join(list, "/") + "\n"
}

// twoDigitYear is the form of times in an index.
const twoDigitYear = "060102150405Z"

// skip reports whether one of the conditions onlyif and unless says that nothing is to be done.
func (r *room) skip() (bool, error) {
	for _, name := range [...]string{"onlyif", "unless"} {
		v := r.Value(name)
		if v == nil {
			continue
		}
		holds := pytext.Truth(v)
		if s, ok := v.(string); ok {
			code, err := r.Exec(r.ctx, "cmd.retcode", s)
			if err != nil {
				return false, err
			}
			holds = code == int64(0)
		}
		if holds != (name == "onlyif") {
			return true, nil
		}
	}
	return false, nil
}

// authority describes the certificate of an authority.
type authority struct {
	bits, days any
	digest     string
	arg        func(name string) any // parts of the name
	fix        bool
}

func createCa(ctx context.Context, c *modules.Call) (any, error) {
	r := &room{Call: c, ctx: ctx}
	if over, err := r.skip(); over || err != nil {
		return nil, err
	}
	r, err := enter(ctx, c)
	if err != nil {
		return nil, err
	}
	fix := c.Bool("fixmode")
	if !c.Bool("replace") && !fix {
		there, err := r.caExists()
		if err != nil {
			return nil, err
		}
		if there {
			return `Certificate for CA named "` + r.ca() + `" already exists`, nil
		}
	}
	sum, err := digest(c.Value("digest"))
	if err != nil {
		return nil, err
	}
	return r.makeCA(authority{c.Value("bits"), c.Value("days"), sum, c.Value, fix})
}

func (r *room) makeCA(a authority) (any, error) {
	file := r.caFile()
	if a.fix && !r.exists(file+".crt") {
		return nil, &modules.PythonError{Type: "ValueError", Msg: file + ".crt does not exists, can't fix"}
	}
	if err := r.mkdir(r.base + "/" + r.ca()); err != nil {
		return nil, err
	}
	key, old, err := r.oldKey(file + ".key")
	if err != nil {
		return nil, err
	}
	if key == nil {
		if key, err = r.newKey(a.bits); err != nil {
			return nil, err
		}
	}
	raw, err := r.signCA(a, key)
	if err != nil {
		return nil, err
	}
	text, err := keyPEM(key)
	if err != nil {
		return nil, err
	}
	if old != nil {
		if err := r.write(file+".key."+r.stamp(), []byte(strings.TrimSpace(string(old))), 0o600); err != nil {
			return nil, err
		}
	}
	if err := r.write(file+".key", text, 0o600); err != nil {
		return nil, err
	}
	if err := r.write(file+".crt", pki.PEM("CERTIFICATE", raw), 0o644); err != nil {
		return nil, err
	}
	if err := r.index(r.ca(), raw); err != nil {
		return nil, err
	}
	return `Created Private Key: "` + file + `.key" Created CA "` + r.ca() + `": "` + file + `.crt"`, nil
}

func (r *room) stamp() string { return r.Now().UTC().Format("20060102150405") }

// oldKey returns an authority's existing key and its text, or nil if it is missing. A key that cannot be read is
// renamed, so that a new one replaces it.
func (r *room) oldKey(path string) (signer, []byte, error) {
	if !r.exists(path) {
		return nil, nil, nil
	}
	text, err := r.read(path)
	if err != nil {
		return nil, nil, err
	}
	key, err := pki.PrivateKey(text, nil)
	if err == nil {
		return key, text, nil
	}
	aside := path + ".unloadable." + r.stamp()
	r.Logger().Warn("Error loading existing private key "+path+", generating a new key; the old one is "+aside, "error", err)
	return nil, nil, modules.OSError(os.Rename(r.Path(path), r.Path(aside)))
}

// signCA makes the certificate of an authority, which signs itself.
func (r *room) signCA(a authority, key signer) ([]byte, error) {
	cert := pki.Certificate{PublicKey: key.Public()}
	var err error
	if cert.Serial, err = r.newSerial(r.ca()); err != nil {
		return nil, err
	}
	if cert.Subject, err = subject(a.arg); err != nil {
		return nil, err
	}
	cert.Issuer = cert.Subject
	if cert.NotBefore, cert.NotAfter, err = r.span(a.days); err != nil {
		return nil, err
	}
	id, err := pki.KeyID(key.Public())
	if err != nil {
		return nil, err
	}
	self := &x509.Certificate{RawIssuer: cert.Issuer, SerialNumber: cert.Serial, SubjectKeyId: id}
	cert.Extensions, err = pki.Build(map[string]any{
		"basicConstraints": "critical, CA:TRUE, pathlen:0", "keyUsage": "critical, keyCertSign, cRLSign",
		"subjectKeyIdentifier": "hash", "authorityKeyIdentifier": "issuer:always, keyid:always",
	}, "c", pki.Issuer{Cert: self, Subject: key.Public()})
	if err != nil {
		return nil, err
	}
	return cert.Sign(key, a.digest)
}

// fixVersion creates an authority's certificate again if it has an invalid version, as Salt's once had.
func (r *room) fixVersion() error {
	b, err := r.read(r.caFile() + ".crt")
	if err != nil {
		return err
	}
	_, old, err := parseCert(b)
	if err == nil || !old {
		return err
	}
	raw, err := block(b, "CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE")
	if err != nil {
		return err
	}
	// Stock wants it to end when it did, but cannot read that, and takes a year.
	name, err := pki.SubjectOf(raw)
	if err != nil {
		return sslError("asn1 encoding routines", "wrong tag")
	}
	parts := map[string]any{}
	for _, p := range pki.NameComponents(name) {
		if _, have := parts[p[0]]; !have {
			parts[p[0]] = p[1]
		}
	}
	r.Logger().Info("Regenerating wrong x509 version for certificate " + r.caFile() + ".crt")
	_, err = r.makeCA(authority{int64(2048), int64(365), "sha256", func(name string) any { return parts[name] }, true})
	return err
}

func createSelfSignedCert(ctx context.Context, c *modules.Call) (any, error) {
	r, err := enter(ctx, c)
	if err != nil {
		return nil, err
	}
	sum, err := digest(c.Value("digest"))
	if err != nil {
		return nil, err
	}
	dir := pytext.Str(c.Value("tls_dir"))
	if err := r.mkdir(r.base + "/" + dir + "/certs/"); err != nil {
		return nil, err
	}
	name := pytext.Str(c.Value("CN"))
	if v := c.Value("cert_filename"); pytext.Truth(v) {
		name = pytext.Str(v)
	}
	file := r.base + "/" + dir + "/certs/" + name
	if !c.Bool("replace") && r.exists(file+".crt") {
		return `Certificate "` + name + `" already exists`, nil
	}
	key, err := r.newKey(c.Value("bits"))
	if err != nil {
		return nil, err
	}
	cert := pki.Certificate{PublicKey: key.Public()}
	if cert.NotBefore, cert.NotAfter, err = r.span(c.Value("days")); err != nil {
		return nil, err
	}
	if cert.Subject, err = subject(c.Value); err != nil {
		return nil, err
	}
	cert.Issuer = cert.Subject
	if cert.Serial, err = r.newSerial(dir); err != nil {
		return nil, err
	}
	raw, err := cert.Sign(key, sum)
	if err != nil {
		return nil, err
	}
	if err := r.pair(file, "crt", key, pki.PEM("CERTIFICATE", raw)); err != nil {
		return nil, err
	}
	if err := r.index(dir, raw); err != nil {
		return nil, err
	}
	return `Created Private Key: "` + file + `.key" Created Certificate: "` + file + `.crt"`, nil
}

// pair writes a key and what was made with it.
func (r *room) pair(file, ending string, key signer, b []byte) error {
	text, err := keyPEM(key)
	if err != nil {
		return err
	}
	if err := r.write(file+".key", text, 0o600); err != nil {
		return err
	}
	return r.write(file+"."+ending, b, 0o644)
}
