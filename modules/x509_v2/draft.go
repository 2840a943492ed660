package x509_v2

import (
	"crypto"
	"crypto/x509"
	"time"

	"github.com/brine-salt/brine/internal/pki"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Draft is a certificate before it is signed.
type Draft struct {
	pki.Certificate
	// Key signs; it is nil where another minion does.
	Key crypto.Signer
	// Own is the private key that the certificate is about, nil if that is not known.
	Own crypto.Signer
	// CA is the certificate of that key, nil for a certificate that signs itself.
	CA *x509.Certificate
}

// DraftCertificate returns the certificate that the arguments describe, not yet signed. remote means that another
// minion will sign it.
func DraftCertificate(c *modules.Call, args map[string]any, remote bool) (*Draft, error) {
	var err error
	d := &Draft{}
	if !remote {
		if d.Key, err = PrivateKey(c, args["signing_private_key"], args["signing_private_key_passphrase"]); err != nil {
			return nil, err
		}
	}
	if d.Serial, err = pki.Serial(args["serial_number"]); err != nil {
		return nil, Wrap(err)
	}
	var csr *x509.CertificateRequest
	if pytext.Truth(args["csr"]) {
		if csr, err = request(c, args["csr"]); err != nil {
			return nil, err
		}
	}
	if pytext.Truth(args["signing_cert"]) {
		if d.CA, err = Certificate(c, args["signing_cert"]); err != nil {
			return nil, err
		}
	} else if remote {
		return nil, modules.NoAttribute(nil, "public_key")
	}
	if d.PublicKey, err = d.subjectKey(c, args, csr); err != nil {
		return nil, err
	}
	ca := pki.Issuer{Cert: d.CA, Subject: d.PublicKey}
	if d.CA == nil {
		ca.Public = d.Key.Public()
	} else if !remote && !pki.SamePublic(d.CA.PublicKey, d.Key.Public()) {
		return nil, modules.Usagef("Signing private key does not match the certificate's public key")
	}
	if d.Subject, err = subject(args); err != nil {
		return nil, err
	}
	d.Issuer = d.Subject
	if d.CA != nil {
		d.Issuer = d.CA.RawSubject
	}
	if d.NotBefore, d.NotAfter, err = span(c, args); err != nil {
		return nil, err
	}
	if d.Extensions, err = pki.Build(args, "c", ca); err != nil {
		return nil, Wrap(err)
	}
	if csr != nil {
		d.Extensions = append(d.Extensions, pki.FromRequest(csr, args)...)
	}
	return d, nil
}

// subjectKey returns the public key that the certificate certifies.
func (d *Draft) subjectKey(c *modules.Call, args map[string]any, csr *x509.CertificateRequest) (any, error) {
	switch {
	case d.CA == nil:
		d.Own = d.Key
		return d.Key.Public(), nil
	case pytext.Truth(args["private_key"]):
		own, err := PrivateKey(c, args["private_key"], args["private_key_passphrase"])
		if err != nil {
			return nil, err
		}
		d.Own = own
		return own.Public(), nil
	case pytext.Truth(args["public_key"]):
		return publicKey(c, args["public_key"])
	case csr != nil:
		return csr.PublicKey, nil
	}
	return nil, modules.Usagef("This certificate is not self-signed (signing_cert is set) and thus needs public_key, private_key or csr to derive public key to sign")
}

// DraftRequest returns the key, the subject and the extensions of the certificate request that the arguments
// describe. private_key and private_key_passphrase are those of the call.
func DraftRequest(c *modules.Call, args map[string]any) (key crypto.Signer, who []byte, list []pki.Extension, err error) {
	if key, err = PrivateKey(c, c.Value("private_key"), c.Value("private_key_passphrase")); err != nil {
		return nil, nil, nil, err
	}
	if who, err = subject(args); err != nil {
		return nil, nil, nil, err
	}
	list, err = pki.Build(args, "r", pki.Issuer{Subject: key.Public()})
	return key, who, list, Wrap(err)
}

// RevocationDraft is a revocation list before it is signed.
type RevocationDraft struct {
	Key        crypto.Signer
	Cert       *x509.Certificate
	Until      time.Time
	Revoked    []pki.Revoked
	Extensions []pki.Extension
}

// DraftRevocationList returns the revocation list that create_crl would make with these extensions. Its other
// parameters are those of the call.
func DraftRevocationList(c *modules.Call, extensions map[string]any) (*RevocationDraft, error) {
	cert, err := Certificate(c, c.Value("signing_cert"))
	if err != nil {
		return nil, err
	}
	key, err := PrivateKey(c, c.Value("signing_private_key"), c.Value("signing_private_key_passphrase"))
	if err != nil {
		return nil, err
	}
	if !pki.SamePublic(cert.PublicKey, key.Public()) {
		return nil, modules.Usagef("Signing private key does not match the certificate's public key")
	}
	valid := c.Value("days_valid")
	if valid == nil {
		valid = int64(100)
	}
	ends, err := after(c, valid)
	if err != nil {
		return nil, err
	}
	revoked, err := revocations(c)
	if err != nil {
		return nil, err
	}
	list, err := pki.Build(extensions, "l", pki.Issuer{Cert: cert})
	return &RevocationDraft{key, cert, ends, revoked, list}, Wrap(err)
}

// SignedBy reports whether a public key's owner made a signature.
func SignedBy(pub any, how x509.SignatureAlgorithm, text, signature []byte) bool {
	signer := &x509.Certificate{PublicKey: pub, PublicKeyAlgorithm: algorithm(pub)}
	return signer.CheckSignature(how, text, signature) == nil
}
