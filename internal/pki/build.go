package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha256" // digests
	_ "crypto/sha512" // digests
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// Digests lists the digests that signatures may use.
const Digests = "sha1, sha224, sha256, sha384, sha512, sha512_224, sha512_256, sha3_224, sha3_256, sha3_384, sha3_512"

// digest returns the hash with a name, and the identifiers of the RSA and ECDSA signature algorithms that use it.
func digest(name string) (h crypto.Hash, rsaOID, ecOID string) {
	switch strings.ToLower(name) {
	case "sha1": // for reading only
		return 0, "1.2.840.113549.1.1.5", "1.2.840.10045.4.1"
	case "sha224":
		return crypto.SHA224, "1.2.840.113549.1.1.14", "1.2.840.10045.4.3.1"
	case "sha256":
		return crypto.SHA256, "1.2.840.113549.1.1.11", "1.2.840.10045.4.3.2"
	case "sha384":
		return crypto.SHA384, "1.2.840.113549.1.1.12", "1.2.840.10045.4.3.3"
	case "sha512":
		return crypto.SHA512, "1.2.840.113549.1.1.13", "1.2.840.10045.4.3.4"
	}
	return 0, "", ""
}

// sign returns a signed structure. body receives the encoded algorithm and returns the part to sign.
func sign(key crypto.Signer, name string, body func(algorithm []byte) []byte) ([]byte, error) {
	h, rsaOID, ecOID := digest(name)
	var algorithm []byte
	switch key.(type) {
	case ed25519.PrivateKey:
		h = 0
		algorithm = der(tagSequence, mustOID("1.3.101.112"))
	case *rsa.PrivateKey, *ecdsa.PrivateKey:
		if h == 0 {
			return nil, &Error{"cryptography.exceptions.UnsupportedAlgorithm", fmt.Sprintf("Hash algorithm %q not supported for signatures", strings.ToLower(name))}
		}
		algorithm = der(tagSequence, mustOID(ecOID))
		if _, ok := key.(*rsa.PrivateKey); ok {
			algorithm = der(tagSequence, mustOID(rsaOID), der(tagNull))
		}
	default:
		return nil, usage("Did not recognize key type")
	}
	tbs := body(algorithm)
	text := tbs
	if h != 0 {
		sum := h.New()
		sum.Write(tbs)
		text = sum.Sum(nil)
	}
	signature, err := key.Sign(rand.Reader, text, h)
	if err != nil {
		return nil, err
	}
	return der(tagSequence, tbs, algorithm, der(tagBits, []byte{0}, signature)), nil
}

func derTime(t time.Time) []byte {
	b, err := asn1.Marshal(t.UTC().Truncate(time.Second))
	if err != nil {
		return nil
	}
	return b
}

// extensions encodes a list of extensions. It returns nil for an empty list.
func extensions(list []Extension) []byte {
	var out []byte
	for _, e := range list {
		parts := [][]byte{mustOID(e.ID)}
		if e.Critical {
			parts = append(parts, derBool(true))
		}
		out = append(out, der(tagSequence, append(parts, der(tagOctets, e.Value))...)...)
	}
	if out == nil {
		return nil
	}
	return der(tagSequence, out)
}

// Certificate holds the contents of a certificate.
type Certificate struct {
	Serial              *big.Int
	Subject, Issuer     []byte
	NotBefore, NotAfter time.Time
	PublicKey           any
	Extensions          []Extension
}

// Sign returns the certificate, signed with a key, in DER.
func (c Certificate) Sign(key crypto.Signer, digest string) ([]byte, error) {
	spki, err := x509.MarshalPKIXPublicKey(c.PublicKey)
	if err != nil {
		return nil, usage("Did not recognize key type")
	}
	return sign(key, digest, func(algorithm []byte) []byte {
		parts := [][]byte{der(contextTag|constructed, derInt(big.NewInt(2))), derInt(c.Serial), algorithm, c.Issuer,
			der(tagSequence, derTime(c.NotBefore), derTime(c.NotAfter)), c.Subject, spki}
		if e := extensions(c.Extensions); e != nil {
			parts = append(parts, der(contextTag|constructed|3, e))
		}
		return der(tagSequence, parts...)
	})
}

// Request returns a signed certificate request in DER.
func Request(key crypto.Signer, digest string, subject []byte, list []Extension) ([]byte, error) {
	spki, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, usage("Did not recognize key type")
	}
	attributes := der(contextTag | constructed)
	if e := extensions(list); e != nil {
		attributes = der(contextTag|constructed, der(tagSequence, mustOID("1.2.840.113549.1.9.14"), der(tagSet, e)))
	}
	return sign(key, digest, func([]byte) []byte {
		return der(tagSequence, derInt(new(big.Int)), subject, spki, attributes)
	})
}

// Revoked is an entry of a revocation list.
type Revoked struct {
	Serial     *big.Int
	Date       time.Time
	Extensions []Extension
}

// RevocationList returns a signed revocation list in DER.
func RevocationList(key crypto.Signer, digest string, issuer []byte, from, to time.Time, revoked []Revoked, list []Extension) ([]byte, error) {
	return sign(key, digest, func(algorithm []byte) []byte {
		parts := [][]byte{derInt(big.NewInt(1)), algorithm, issuer, derTime(from), derTime(to)}
		var entries []byte
		for _, r := range revoked {
			entry := [][]byte{derInt(r.Serial), derTime(r.Date)}
			if e := extensions(r.Extensions); e != nil {
				entry = append(entry, e)
			}
			entries = append(entries, der(tagSequence, entry...)...)
		}
		if entries != nil {
			parts = append(parts, der(tagSequence, entries))
		}
		if e := extensions(list); e != nil {
			parts = append(parts, der(contextTag|constructed, e))
		}
		return der(tagSequence, parts...)
	})
}

// Serial converts an argument to a serial number: a number, bytes, or a text in hex. It returns a random number for
// nil.
func Serial(v any) (*big.Int, error) {
	switch v := v.(type) {
	case nil:
		b := make([]byte, 20)
		rand.Read(b)
		b[0] &= 0x7f
		return new(big.Int).SetBytes(b), nil
	case int64:
		return big.NewInt(v), nil
	case []byte:
		return new(big.Int).SetBytes(v), nil
	case string:
		if b, err := hex.DecodeString(strings.ReplaceAll(v, ":", "")); err == nil {
			return new(big.Int).SetBytes(b), nil
		}
		return nil, failed("Could not parse serial number %s", v)
	}
	return nil, failed("Could not parse serial number %v", v)
}

// PEM encodes DER as PEM.
func PEM(kind string, b []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b})
}

// load returns the content of the first PEM block if that is of one of the kinds. It returns DER unchanged.
func load(b []byte, what string, kinds ...string) ([]byte, error) {
	if !IsPEM(b) {
		return b, nil
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, usage("Could not load PEM-encoded %s.", what)
	}
	for _, k := range kinds {
		if block.Type == k {
			return block.Bytes, nil
		}
	}
	return nil, usage("Could not load PEM-encoded %s.", what)
}

// Cert parses a certificate. It returns the first if there are several.
func Cert(b []byte) (*x509.Certificate, error) {
	loaded, err := LoadCert(b, nil)
	if err != nil {
		return nil, err
	}
	return loaded.Cert, nil
}

// CSR parses a certificate request.
func CSR(b []byte) (*x509.CertificateRequest, error) {
	raw, err := load(b, "certificate signing request", "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST")
	if err != nil {
		return nil, err
	}
	c, err := x509.ParseCertificateRequest(raw)
	switch {
	case err == nil:
		return c, nil
	case IsPEM(b):
		return nil, usage("Could not load PEM-encoded certificate signing request.")
	}
	return nil, usage("Could not load DER-encoded certificate signing request.")
}

// CRL parses a revocation list.
func CRL(b []byte) (*x509.RevocationList, error) {
	raw, err := load(b, "certificate revocation list", "X509 CRL")
	if err != nil {
		return nil, err
	}
	c, err := x509.ParseRevocationList(raw)
	switch {
	case err == nil:
		return c, nil
	case IsPEM(b):
		return nil, usage("Could not load PEM-encoded certificate revocation list.")
	}
	return nil, usage("Could not load DER-encoded certificate revocation list.")
}

// SignatureName returns the name of the algorithm that signed a certificate or revocation list.
func SignatureName(raw []byte) string {
	list, err := inside(raw)
	if err != nil || len(list) != 3 {
		return ""
	}
	algorithm, err := children(list[1].Bytes)
	if err != nil || len(algorithm) == 0 {
		return ""
	}
	id := idText(algorithm[0].FullBytes)
	for _, name := range [...]string{"sha1", "sha224", "sha256", "sha384", "sha512"} {
		switch _, rsaOID, ecOID := digest(name); id {
		case rsaOID:
			return name + "WithRSAEncryption"
		case ecOID:
			return "ecdsa-with-" + strings.ToUpper(name)
		}
	}
	switch id {
	case "1.2.840.113549.1.1.4":
		return "md5WithRSAEncryption"
	case "1.2.840.113549.1.1.10":
		return "rsassaPss"
	case "1.3.101.112":
		return "ed25519"
	case "1.3.101.113":
		return "ed448"
	}
	return id
}

// InDays returns from plus a number of days, which a time.Duration cannot always represent. ok is false if a
// certificate cannot contain that time.
func InDays(from time.Time, days int64) (t time.Time, ok bool) {
	if days > 1<<22 || days < -(1<<22) {
		return t, false
	}
	t = from.AddDate(0, 0, int(days))
	return t, t.Year() >= 0 && t.Year() <= 9999
}
