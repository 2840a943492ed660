// Package x509_v2 is Salt's execution module "x509" as it is from Salt 3006 on with the feature x509_v2, and by default from 3008.
// Salt's source: salt/modules/x509_v2.py.
package x509_v2

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/pki"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// x509.create_certificate_ssh is added: Salt 3008 has it.
// x509.create_private_key, x509.create_certificate differ: a new file with a private key is for its owner only, in DER and PKCS#12 too.
// x509.create_private_key differs: there are no keys of the kind ed448.
// x509.create_certificate differs: the digests of SHA-3 are not supported.
// x509.get_public_key differs: keys of the kind ed448 are not read.

// Wrap gives an error of package pki the type that it has for callers.
func Wrap(err error) error {
	var e *pki.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Kind {
	case "CommandExecutionError":
		return modules.Errorf("%s", e.Text)
	case "SaltInvocationError", "InvalidPassword", "MissingPassword", "SuperfluousPassword":
		return modules.Usagef("%s", e.Text)
	}
	return &modules.PythonError{Type: e.Kind, Msg: e.Text}
}

// maxFile bounds what is read of a file.
const maxFile = 64 << 20

// isFile returns the path of a source. ok is false if the source is not a file.
func isFile(c *modules.Call, v any) (path string, ok bool) {
	s, isText := v.(string)
	if !isText || s == "" || len(s) > 4096 || strings.ContainsAny(s, "\n\x00") {
		return "", false
	}
	info, err := os.Stat(c.Path(s))
	return s, err == nil && info.Mode().IsRegular()
}

// Source returns the content of a source: a file, a text or bytes.
func Source(c *modules.Call, v any) ([]byte, error) {
	path, ok := isFile(c, v)
	if !ok {
		b, err := pki.Bytes(v)
		return b, Wrap(err)
	}
	info, err := os.Stat(c.Path(path))
	if err != nil {
		return nil, modules.OSError(err)
	}
	if info.Size() > maxFile {
		return nil, modules.Errorf("cannot read %s: it is larger than %d bytes", path, maxFile)
	}
	b, err := os.ReadFile(c.Path(path))
	if err != nil {
		return nil, modules.OSError(err)
	}
	return b, nil
}

func secret(v any) []byte {
	if v == nil {
		return nil
	}
	return []byte(pytext.Str(v))
}

// PrivateKey returns the private key in a file, a text or bytes.
func PrivateKey(c *modules.Call, v, passphrase any) (crypto.Signer, error) {
	b, err := Source(c, v)
	if err != nil {
		return nil, err
	}
	key, err := pki.PrivateKey(b, secret(passphrase))
	return key, Wrap(err)
}

func publicKey(c *modules.Call, v any) (any, error) {
	b, err := Source(c, v)
	if err != nil {
		return nil, err
	}
	key, err := pki.PublicKey(b)
	return key, Wrap(err)
}

// Certificate returns the certificate in a file, a text or bytes. Of several it returns the first.
func Certificate(c *modules.Call, v any) (*x509.Certificate, error) {
	b, err := Source(c, v)
	if err != nil {
		return nil, err
	}
	cert, err := pki.Cert(b)
	return cert, Wrap(err)
}

func request(c *modules.Call, v any) (*x509.CertificateRequest, error) {
	b, err := Source(c, v)
	if err != nil {
		return nil, err
	}
	csr, err := pki.CSR(b)
	return csr, Wrap(err)
}

func revocationList(c *modules.Call, v any) (*x509.RevocationList, error) {
	b, err := Source(c, v)
	if err != nil {
		return nil, err
	}
	crl, err := pki.CRL(b)
	return crl, Wrap(err)
}

// anyPublic returns the public key of a public key, a certificate, a private key or a request, whichever v is.
func anyPublic(c *modules.Call, v, passphrase any) (any, error) {
	if key, err := publicKey(c, v); err == nil {
		return key, nil
	}
	b, err := Source(c, v)
	if err != nil {
		return nil, modules.Errorf("Could not load key as certificate, public key, private key or CSR")
	}
	var e *pki.Error
	cert, err := pki.LoadCert(b, secret(passphrase))
	if err == nil {
		return cert.Cert.PublicKey, nil
	}
	if errors.As(err, &e) && strings.HasSuffix(e.Kind, "Password") {
		return nil, modules.Errorf("%s", e.Text)
	}
	key, err := pki.PrivateKey(b, secret(passphrase))
	if err == nil {
		return key.Public(), nil
	}
	if errors.As(err, &e) && strings.HasSuffix(e.Kind, "Password") {
		return nil, modules.Errorf("%s", e.Text)
	}
	if csr, err := request(c, v); err == nil {
		return csr.PublicKey, nil
	}
	return nil, modules.Errorf("Could not load key as certificate, public key, private key or CSR")
}

func getPublicKey(_ context.Context, c *modules.Call) (any, error) {
	key, err := anyPublic(c, c.Value("key"), c.Value("passphrase"))
	if err != nil {
		return nil, err
	}
	text, err := pki.PublicPEM(key)
	return text, Wrap(err)
}

func getPrivateKeySize(_ context.Context, c *modules.Call) (any, error) {
	key, err := PrivateKey(c, c.Value("private_key"), c.Value("passphrase"))
	if err != nil {
		return nil, err
	}
	return size(key.Public()), nil
}

// size returns the size of a key in bits, or None if the type of key implies it.
func size(pub any) any {
	if n := pki.KeySize(pub); n > 0 {
		return int64(n)
	}
	return nil
}

// encoding checks the argument of that name.
func encoding(c *modules.Call, valid ...string) (string, error) {
	s, ok := c.Value("encoding").(string)
	if !ok || !slices.Contains(valid, s) {
		return "", modules.Errorf("Invalid value '%s' for encoding. Valid: %s", pytext.Str(c.Value("encoding")), strings.Join(valid, ", "))
	}
	return s, nil
}

func checkDigest(v any) (string, error) {
	s, ok := v.(string)
	if !ok || !slices.Contains(strings.Split(pki.Digests, ", "), strings.ToLower(s)) {
		return "", modules.Errorf("Invalid value '%s' for digest. Valid: %s", pytext.Str(v), pki.Digests)
	}
	return s, nil
}

// give encodes DER in the wanted form. chain follows it, in PEM only.
func give(how string, raw bool, kind string, b []byte, chain ...[]byte) any {
	if how == "pkcs7_pem" {
		how, kind = "pem", "PKCS7"
	}
	if how == "pem" {
		b = pki.PEM(kind, b)
		for _, x := range chain {
			b = append(append(b, '\n'), pki.PEM(kind, x)...)
		}
		if raw {
			return b
		}
		return string(b)
	}
	if raw {
		return b
	}
	return base64.StdEncoding.EncodeToString(b)
}

// deliver returns the encoded object, or writes it to the file that the argument path names.
func deliver(c *modules.Call, how, kind, title string, b []byte, chain ...[]byte) (any, error) {
	if c.Value("path") == nil {
		return give(how, c.Bool("raw"), kind, b, chain...), nil
	}
	path := c.Str("path")
	data, _ := give(how, true, kind, b, chain...).([]byte)
	if how == "pem" {
		entry, err := entry(string(data), kind)
		if err != nil {
			return nil, err
		}
		return "PEM written to " + path, modules.OSError(atomicfile.Replace(c.Path(path), []byte(entry), 0o600))
	}
	mode := fs.FileMode(0o644)
	if how == "pkcs12" || strings.HasSuffix(kind, "PRIVATE KEY") {
		mode = 0o600
	}
	return title + " written to " + path, modules.OSError(atomicfile.Replace(c.Path(path), data, mode))
}

func createPrivateKey(ctx context.Context, c *modules.Call) (any, error) {
	length := c.Value("keysize")
	var unknown []any
	for k, v := range c.Keywords {
		switch {
		case k == "bits":
			length = v
		case strings.HasPrefix(k, "_") || k == "cipher" || k == "verbose" || k == "text":
		default:
			unknown = append(unknown, k)
		}
	}
	if unknown != nil {
		sorting.Stable(unknown, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		return nil, modules.Usagef("Unrecognized keyword arguments: %s", pytext.Repr(unknown))
	}
	how, err := encoding(c, "der", "pem", "pkcs12")
	if err != nil {
		return nil, err
	}
	n := int64(0)
	if pytext.Truth(length) {
		if n, err = modules.ToInt(length); err != nil {
			return nil, err
		}
	}
	key, err := pki.NewKey(ctx, c.Str("algo"), int(min(max(n, 0), 1<<20)))
	if err != nil {
		return nil, Wrap(err)
	}
	b, kind, err := encodeKey(c, how, key)
	if err != nil {
		return nil, err
	}
	return deliver(c, how, kind, "File", b)
}

func encodeKey(c *modules.Call, how string, key crypto.Signer) (b []byte, kind string, err error) {
	passphrase := secret(c.Value("passphrase"))
	if how == "pkcs12" {
		b, err = pki.Bundle{Key: key}.PKCS12(passphrase, c.Bool("pkcs12_encryption_compat"))
		return b, "", Wrap(err)
	}
	b, kind, err = pki.EncodeKey(key, passphrase)
	return b, kind, Wrap(err)
}

func encodePrivateKey(_ context.Context, c *modules.Call) (any, error) {
	how, err := encoding(c, "der", "pem", "pkcs12")
	if err != nil {
		return nil, err
	}
	key, err := PrivateKey(c, c.Value("private_key"), c.Value("private_key_passphrase"))
	if err != nil {
		return nil, err
	}
	b, kind, err := encodeKey(c, how, key)
	if err != nil {
		return nil, err
	}
	return give(how, c.Bool("raw"), kind, b), nil
}

func encodeCsr(_ context.Context, c *modules.Call) (any, error) {
	how, err := encoding(c, "der", "pem")
	if err != nil {
		return nil, err
	}
	csr, err := request(c, c.Value("csr"))
	if err != nil {
		return nil, err
	}
	return give(how, c.Bool("raw"), "CERTIFICATE REQUEST", csr.Raw), nil
}

func encodeCrl(_ context.Context, c *modules.Call) (any, error) {
	how, err := encoding(c, "der", "pem")
	if err != nil {
		return nil, err
	}
	crl, err := revocationList(c, c.Value("crl"))
	if err != nil {
		return nil, err
	}
	return give(how, c.Bool("raw"), "X509 CRL", crl.Raw), nil
}

// further returns the certificates of append_certs, which follow the first one.
func further(c *modules.Call) ([]*x509.Certificate, error) {
	list, ok := c.Value("append_certs").([]any)
	if !ok && c.Bool("append_certs") {
		list = []any{c.Value("append_certs")}
	}
	var out []*x509.Certificate
	for _, x := range list {
		cert, err := Certificate(c, x)
		if err != nil {
			return nil, err
		}
		out = append(out, cert)
	}
	return out, nil
}

// encodeCert encodes a certificate and those that follow it, in PEM and DER separately.
func encodeCert(c *modules.Call, how string, cert *x509.Certificate, key crypto.Signer) (b []byte, chain [][]byte, err error) {
	behind, err := further(c)
	if err != nil {
		return nil, nil, err
	}
	for _, x := range behind {
		chain = append(chain, x.Raw)
	}
	switch how {
	case "pkcs7_der", "pkcs7_pem":
		return pki.PKCS7(append([][]byte{cert.Raw}, chain...)), nil, nil
	case "pkcs12":
		if key == nil {
			return nil, nil, errNoKey()
		}
		bundle := pki.Bundle{Key: key, Cert: cert, Chain: behind}
		if v := c.Value("pkcs12_friendlyname"); pytext.Truth(v) {
			bundle.Name = pytext.Str(v)
		}
		if !pki.SamePublic(cert.PublicKey, key.Public()) {
			return nil, nil, modules.Usagef("The private key does not match the certificate's public key")
		}
		b, err := bundle.PKCS12(secret(c.Value("pkcs12_passphrase")), c.Bool("pkcs12_encryption_compat"))
		return b, nil, Wrap(err)
	}
	return cert.Raw, chain, nil
}

func certEncoding(c *modules.Call) (string, error) {
	how, err := encoding(c, "der", "pem", "pkcs7_der", "pkcs7_pem", "pkcs12")
	if err == nil && how == "der" && c.Bool("append_certs") {
		return "", modules.Usagef("Cannot encode a certificate chain in DER")
	}
	return how, err
}

func encodeCertificate(_ context.Context, c *modules.Call) (any, error) {
	how, err := certEncoding(c)
	switch {
	case err != nil:
		return nil, err
	case how != "pkcs12" && c.Bool("private_key"):
		return nil, modules.Usagef("Embedding private keys is only supported for pkcs12 encoding")
	case how == "pkcs12" && !c.Bool("private_key"):
		return nil, errNoKey()
	}
	cert, err := Certificate(c, c.Value("certificate"))
	if err != nil {
		return nil, err
	}
	var key crypto.Signer
	if how == "pkcs12" {
		if key, err = PrivateKey(c, c.Value("private_key"), c.Value("private_key_passphrase")); err != nil {
			return nil, err
		}
	}
	b, chain, err := encodeCert(c, how, cert, key)
	if err != nil {
		return nil, err
	}
	return give(how, c.Bool("raw"), "CERTIFICATE", b, chain...), nil
}

// ends reports whether a certificate will have ended in some days.
func ends(c *modules.Call, cert *x509.Certificate, days any) (bool, error) {
	at, err := after(c, days)
	return err == nil && !cert.NotAfter.After(at), err
}

func expires(_ context.Context, c *modules.Call) (any, error) {
	cert, err := Certificate(c, c.Value("certificate"))
	if err != nil {
		return nil, err
	}
	return ends(c, cert, c.Value("days"))
}

// about begins an answer about a certificate with its path and name.
func about(c *modules.Call, v any) (*x509.Certificate, map[string]any, error) {
	ret := map[string]any{}
	if path, ok := isFile(c, v); ok {
		ret["path"] = path
	}
	cert, err := Certificate(c, v)
	if err != nil {
		return nil, nil, err
	}
	if name, ok := pki.NameMap(cert.RawSubject)["CN"]; ok {
		ret["cn"] = name
	}
	return cert, ret, nil
}

func expired(_ context.Context, c *modules.Call) (any, error) {
	cert, ret, err := about(c, c.Value("certificate"))
	if err != nil {
		return nil, err
	}
	ret["expired"], err = ends(c, cert, int64(0))
	return ret, err
}

func willExpire(_ context.Context, c *modules.Call) (any, error) {
	cert, ret, err := about(c, c.Value("certificate"))
	if err != nil {
		return nil, err
	}
	ret["check_days"] = c.Value("days")
	ret["will_expire"], err = ends(c, cert, c.Value("days"))
	return ret, err
}

func verifyPrivateKey(_ context.Context, c *modules.Call) (any, error) {
	key, err := PrivateKey(c, c.Value("private_key"), c.Value("passphrase"))
	if err != nil {
		return nil, err
	}
	pub, err := anyPublic(c, c.Value("public_key"), nil)
	if err != nil {
		return nil, err
	}
	return pki.SamePublic(pub, key.Public()), nil
}

func verifySignature(_ context.Context, c *modules.Call) (any, error) {
	cert, err := Certificate(c, c.Value("certificate"))
	if err != nil {
		return nil, err
	}
	by := c.Value("signing_pub_key")
	if !pytext.Truth(by) {
		by = c.Value("certificate")
	}
	pub, err := anyPublic(c, by, c.Value("signing_pub_key_passphrase"))
	if err != nil {
		return nil, err
	}
	return SignedBy(pub, cert.SignatureAlgorithm, cert.RawTBSCertificate, cert.Signature), nil
}

func verifyCrl(_ context.Context, c *modules.Call) (any, error) {
	crl, err := revocationList(c, c.Value("crl"))
	if err != nil {
		return nil, err
	}
	pub, err := anyPublic(c, c.Value("cert"), nil)
	if err != nil {
		return nil, err
	}
	return SignedBy(pub, crl.SignatureAlgorithm, crl.RawTBSRevocationList, crl.Signature), nil
}

func algorithm(pub any) x509.PublicKeyAlgorithm {
	switch pki.KeyType(pub) {
	case "rsa":
		return x509.RSA
	case "ec":
		return x509.ECDSA
	}
	return x509.Ed25519
}
