// Package tls is Salt's execution module "tls": small certificate authorities in directories below /etc/pki, with the index of
// certificates that "openssl ca" has. Salt's source: salt/modules/tls.py; the errors are those of pyOpenSSL.
package tls

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/pki"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// tls.create_ca, tls.create_self_signed_cert, tls.create_ca_signed_cert differ: serial numbers have 20 octets, as RFC 5280 wants them; stock's have 24, and its revocation lists name others.
// tls.create_ca, tls.create_csr, tls.create_self_signed_cert differ: keys of less than 1024 bits are refused.
// tls.create_ca, tls.create_csr, tls.create_self_signed_cert, tls.create_ca_signed_cert differ: nothing is signed with MD5, SHA-1 and SHA-3.
// tls.create_csr differs: extensions are those that x509.create_csr knows, and mistakes in them are said in its words.
// tls.cert_info differs: an extension that OpenSSL has no words for is shown in hex, where stock fails.
// tls.validate differs: the certificate at fault is shown as PEM, where stock returns an object of Python.

// contextual is the key of the directory that set_ca_path chose, for the job, and in the configuration.
const contextual = "ca.contextual_cert_base_path"

// maxFile bounds what is read of a file.
const maxFile = 16 << 20

// room is the directory of the authorities, for one call.
type room struct {
	*modules.Call
	ctx  context.Context
	base string
}

// enter chooses the directory, and with the argument cacert_path that of the job's further calls.
func enter(ctx context.Context, c *modules.Call) (*room, error) {
	if v := c.Value("cacert_path"); pytext.Truth(v) {
		c.Context().Set(contextual, v)
	}
	base, err := basePath(ctx, c, nil)
	return &room{c, ctx, pytext.Str(base)}, err
}

func basePath(ctx context.Context, c *modules.Call, given any) (any, error) {
	if pytext.Truth(given) {
		return given, nil
	}
	for _, key := range [...]string{contextual, "ca.cert_base_path"} {
		v, ok := c.Context().Get(key)
		if !ok {
			var err error
			if v, err = c.Exec(ctx, "config.option", key); err != nil {
				return nil, err
			}
		}
		if pytext.Truth(v) || key != contextual {
			return v, nil
		}
	}
	return nil, nil
}

func certBasePath(ctx context.Context, c *modules.Call) (any, error) {
	return basePath(ctx, c, c.Value("cacert_path"))
}

func setCaPath(ctx context.Context, c *modules.Call) (any, error) {
	if v := c.Value("cacert_path"); pytext.Truth(v) {
		c.Context().Set(contextual, v)
	}
	return basePath(ctx, c, nil)
}

// ca returns the name of the argument ca_name.
func (r *room) ca() string { return pytext.Str(r.Value("ca_name")) }

// caFile returns the path of the authority's certificate, without the extension.
func (r *room) caFile() string {
	name := r.ca() + "_ca_cert"
	if v := r.Value("ca_filename"); pytext.Truth(v) {
		name = pytext.Str(v)
	}
	return r.base + "/" + r.ca() + "/" + name
}

func (r *room) exists(path string) bool {
	_, err := os.Stat(r.Path(path))
	return err == nil
}

func (r *room) read(path string) ([]byte, error) {
	info, err := os.Stat(r.Path(path))
	if err == nil && info.Size() > maxFile {
		return nil, modules.Errorf("cannot read %s: it is larger than %d bytes", path, maxFile)
	}
	b, err := os.ReadFile(r.Path(path))
	var at *fs.PathError
	if errors.As(err, &at) {
		err = &fs.PathError{Op: at.Op, Path: path, Err: at.Err}
	}
	return b, modules.OSError(err)
}

// notRead reports whether a file could not be read, which functions answer with a text.
func notRead(err error) bool {
	var python *modules.PythonError
	return errors.As(err, &python) && strings.HasSuffix(python.Type, "Error") && strings.HasPrefix(python.Msg, "[Errno ")
}

// sslError returns an error in the form of Python's OpenSSL library.
func sslError(list ...string) error {
	texts := make([]string, len(list)/2)
	for i := range texts {
		texts[i] = fmt.Sprintf("('%s', '', '%s')", list[2*i], list[2*i+1])
	}
	return &modules.PythonError{Type: "OpenSSL.crypto.Error", Msg: "[" + strings.Join(texts, ", ") + "]"}
}

// block returns the first PEM block of one of the given kinds.
func block(b []byte, kinds ...string) ([]byte, error) {
	for rest := b; ; {
		var p *pem.Block
		if p, rest = pem.Decode(rest); p == nil {
			break
		}
		for _, k := range kinds {
			if p.Type == k {
				return p.Bytes, nil
			}
		}
	}
	for _, k := range kinds {
		if strings.Contains(string(b), "-----BEGIN "+k+"-----") {
			return nil, sslError("PEM routines", "bad base64 decode")
		}
	}
	return nil, sslError("PEM routines", "no start line")
}

// parseCert parses the first certificate of a text. old means that it has an invalid version.
func parseCert(b []byte) (cert *x509.Certificate, old bool, err error) {
	raw, err := block(b, "CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE")
	if err != nil {
		return nil, false, err
	}
	cert, err = x509.ParseCertificate(raw)
	if err != nil && pki.Version(raw) == 4 {
		return nil, true, modules.Errorf("cannot read the certificate: it says to be of version 4")
	}
	if err != nil {
		return nil, false, sslError("asn1 encoding routines", "wrong tag", "asn1 encoding routines", "nested asn1 error", "PEM routines", "ASN1 lib")
	}
	return cert, false, nil
}

func (r *room) cert(path string) (*x509.Certificate, error) {
	b, err := r.read(path)
	if err != nil {
		return nil, err
	}
	cert, _, err := parseCert(b)
	return cert, err
}

func (r *room) key(path string) (key signer, err error) {
	b, err := r.read(path)
	if err != nil {
		return nil, err
	}
	if key, err = pki.PrivateKey(b, nil); err != nil {
		return nil, sslError("DECODER routines", "unsupported")
	}
	return key, nil
}

func caExists(ctx context.Context, c *modules.Call) (any, error) {
	r, err := enter(ctx, c)
	if err != nil {
		return nil, err
	}
	return r.caExists()
}

func (r *room) caExists() (bool, error) {
	if !r.exists(r.caFile() + ".crt") {
		return false, nil
	}
	return true, r.fixVersion()
}

func maybeFixSslVersion(ctx context.Context, c *modules.Call) (any, error) {
	r, err := enter(ctx, c)
	if err != nil {
		return nil, err
	}
	return nil, r.fixVersion()
}

// show returns the path of an authority's file, or its content with as_text. If there is none the error has the text
// missing.
func show(ctx context.Context, c *modules.Call, path func(r *room) string, missing string) (any, error) {
	r, err := enter(ctx, c)
	if err != nil {
		return nil, err
	}
	file := path(r)
	switch {
	case !r.exists(file):
		return nil, &modules.PythonError{Type: "ValueError", Msg: missing}
	case c.Bool("as_text"):
		b, err := r.read(file)
		if err != nil {
			return nil, err
		}
		return string(b), nil
	}
	return file, nil
}

func getCa(ctx context.Context, c *modules.Call) (any, error) {
	return show(ctx, c, func(r *room) string {
		return r.base + "/" + r.ca() + "/" + r.ca() + "_ca_cert.crt"
	}, "Certificate does not exist for "+pytext.Str(c.Value("ca_name")))
}

func getCaSignedCert(ctx context.Context, c *modules.Call) (any, error) {
	return signedFile(ctx, c, "cert_filename", ".crt")
}

func getCaSignedKey(ctx context.Context, c *modules.Call) (any, error) {
	return signedFile(ctx, c, "key_filename", ".key")
}

func signedFile(ctx context.Context, c *modules.Call, param, ending string) (any, error) {
	cn := c.Value("CN")
	return show(ctx, c, func(r *room) string {
		name := cn
		if v := c.Value(param); pytext.Truth(v) {
			name = v
		}
		return r.base + "/" + r.ca() + "/certs/" + pytext.Str(name) + ending
	}, "Certificate does not exists for "+pytext.Str(cn))
}
