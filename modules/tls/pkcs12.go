package tls

import (
	"context"
	"crypto/x509"

	"github.com/brine-salt/brine/internal/pki"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func createPkcs12(ctx context.Context, c *modules.Call) (any, error) {
	r, err := enter(ctx, c)
	if err != nil {
		return nil, err
	}
	cn := pytext.Str(c.Value("CN"))
	dir := r.base + "/" + r.ca()
	file := dir + "/certs/" + cn
	if !c.Bool("replace") && r.exists(file+".p12") {
		return `Certificate "` + cn + `" already exists`, nil
	}
	ca, err := r.cert(r.caFile() + ".crt")
	if notRead(err) {
		return `There is no CA named "` + r.ca() + `"`, nil
	}
	if err != nil {
		return nil, err
	}
	cert, err := r.cert(file + ".crt")
	var key signer
	if err == nil {
		key, err = r.key(file + ".key")
	}
	if notRead(err) {
		return `There is no certificate that matches the CN "` + cn + `"`, nil
	}
	if err != nil {
		return nil, err
	}
	if !pki.SamePublic(cert.PublicKey, key.Public()) {
		return nil, sslError("PKCS12 routines", "key values mismatch")
	}
	var passphrase []byte
	if v := c.Value("passphrase"); pytext.Truth(v) {
		passphrase = []byte(pytext.Str(v))
	}
	b, err := pki.Bundle{Key: key, Cert: cert, Name: cn, Chain: []*x509.Certificate{ca}}.PKCS12(passphrase, false)
	if err != nil {
		return nil, err
	}
	if err := r.write(file+".p12", b, 0o600); err != nil {
		return nil, err
	}
	return `Created PKCS#12 Certificate for "` + cn + `": "` + file + `.p12"`, nil
}
