package pki

import (
	"bytes"
	"crypto"
	"crypto/cipher"
	"crypto/des"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"crypto/x509"
	"encoding/asn1"
	"hash"
	"unicode/utf16"
)

// Bundle is the content of a PKCS#12 file (RFC 7292): a private key with its certificate and the certificates above
// it.
type Bundle struct {
	Key crypto.Signer
	// Cert may be nil.
	Cert *x509.Certificate
	// Name is the friendly name, or "".
	Name  string
	Chain []*x509.Certificate
}

// Object identifiers of PKCS#7 and PKCS#12.
const (
	oidData, oidSignedData, oidEncrypted  = "1.2.840.113549.1.7.1", "1.2.840.113549.1.7.2", "1.2.840.113549.1.7.6"
	oidKeyBag, oidShroudedBag, oidCertBag = "1.2.840.113549.1.12.10.1.1", "1.2.840.113549.1.12.10.1.2", "1.2.840.113549.1.12.10.1.3"
	oidX509, oidFriendlyName, oidKeyID    = "1.2.840.113549.1.9.22.1", "1.2.840.113549.1.9.20", "1.2.840.113549.1.9.21"
	oidTripleDES                          = "1.2.840.113549.1.12.1.3"
	oidSHA1, oidSHA256                    = "1.3.14.3.2.26", "2.16.840.1.101.3.4.2.1"
	oidSHA384, oidSHA512                  = "2.16.840.1.101.3.4.2.2", "2.16.840.1.101.3.4.2.3"
)

// maxSafes limits the parts of a bundle that is read: each encrypted part can cost maxIterations. Programs usually
// write two parts.
const maxSafes = 8

// Iterations for new bundles.
const macIterations, tripleDESIterations = 2048, 50_000

// bmp converts a passphrase to the form of PKCS#12: UTF-16 with a final zero.
func bmp(text []byte) []byte {
	var out []byte
	for _, u := range append(utf16.Encode([]rune(string(text))), 0) {
		out = append(out, byte(u>>8), byte(u))
	}
	return out
}

// kdf implements the key derivation of RFC 7292, appendix B, for keys (1), initialization vectors (2) and MAC
// keys (3).
func kdf(h func() hash.Hash, passphrase, salt []byte, iterations int, id byte, size int) []byte {
	block := h().BlockSize()
	fill := func(b []byte) []byte {
		var out []byte
		for n := (len(b) + block - 1) / block * block; len(out) < n; {
			out = append(out, b[:min(len(b), n-len(out))]...)
		}
		return out
	}
	in := append(fill(salt), fill(passphrase)...)
	d := bytes.Repeat([]byte{id}, block)
	var out []byte
	for {
		sum := h()
		sum.Write(d)
		sum.Write(in)
		a := sum.Sum(nil)
		for range iterations - 1 {
			sum.Reset()
			sum.Write(a)
			a = sum.Sum(a[:0])
		}
		if out = append(out, a...); len(out) >= size {
			return out[:size]
		}
		b := fill(a)[:0]
		for len(b) < block {
			b = append(b, a[:min(len(a), block-len(b))]...)
		}
		for at := 0; at < len(in); at += block {
			carry := 1
			for i := block - 1; i >= 0; i-- {
				carry += int(in[at+i]) + int(b[i])
				in[at+i] = byte(carry)
				carry >>= 8
			}
		}
	}
}

func content(kind string, parts ...[]byte) []byte {
	return der(tagSequence, mustOID(kind), der(contextTag|constructed, parts...))
}

// PKCS12 encodes the bundle. A nil passphrase leaves it unencrypted; compat selects the old algorithms.
func (b Bundle) PKCS12(passphrase []byte, compat bool) ([]byte, error) {
	seal := encryptWith
	if compat {
		seal = sealTripleDES
	}
	var attributes []byte
	if b.Name != "" {
		name := bmp([]byte(b.Name))
		attributes = der(tagSequence, mustOID(oidFriendlyName), der(tagSet, der(tagBMP, name[:len(name)-2])))
	}
	if b.Cert != nil {
		id := sha1.Sum(b.Cert.Raw)
		attributes = append(attributes, der(tagSequence, mustOID(oidKeyID), der(tagSet, der(tagOctets, id[:])))...)
	}
	if attributes != nil {
		attributes = der(tagSet, attributes)
	}
	var safes []byte
	certs := certBags(b.Cert, attributes, b.Chain)
	switch {
	case certs == nil:
	case passphrase == nil:
		safes = content(oidData, der(tagOctets, certs))
	default:
		algorithm, data, err := seal(certs, passphrase)
		if err != nil {
			return nil, err
		}
		safes = content(oidEncrypted, der(tagSequence, der(tagInt, []byte{0}), der(tagSequence, mustOID(oidData), algorithm, der(contextTag, data))))
	}
	key, err := x509.MarshalPKCS8PrivateKey(b.Key)
	if err != nil {
		return nil, err
	}
	bag := content(oidKeyBag, key)
	if passphrase != nil {
		algorithm, data, err := seal(key, passphrase)
		if err != nil {
			return nil, err
		}
		bag = content(oidShroudedBag, der(tagSequence, algorithm, der(tagOctets, data)))
	}
	safes = append(safes, content(oidData, der(tagOctets, der(tagSequence, withAttributes(bag, attributes))))...)
	all := der(tagSequence, safes)
	h, id := sha256.New, oidSHA256
	if compat && passphrase != nil {
		h, id = sha1.New, oidSHA1
	}
	salt := make([]byte, 8)
	rand.Read(salt)
	mac := hmac.New(h, kdf(h, bmp(passphrase), salt, macIterations, 3, h().Size()))
	mac.Write(all)
	count, err := asn1.Marshal(macIterations)
	if err != nil {
		return nil, err
	}
	sum := der(tagSequence, der(tagSequence, mustOID(id), der(tagNull)), der(tagOctets, mac.Sum(nil)))
	return der(tagSequence, der(tagInt, []byte{3}), content(oidData, der(tagOctets, all)), der(tagSequence, sum, der(tagOctets, salt), count)), nil
}

// withAttributes adds attributes to a bag.
func withAttributes(bag, attributes []byte) []byte {
	list, err := inside(bag)
	if err != nil || attributes == nil {
		return bag
	}
	return der(tagSequence, list[0].FullBytes, list[1].FullBytes, attributes)
}

func certBags(cert *x509.Certificate, attributes []byte, chain []*x509.Certificate) []byte {
	one := func(c *x509.Certificate) []byte {
		return content(oidCertBag, content(oidX509, der(tagOctets, c.Raw)))
	}
	var out []byte
	if cert != nil {
		out = withAttributes(one(cert), attributes)
	}
	for _, c := range chain {
		out = append(out, one(c)...)
	}
	if out == nil {
		return nil
	}
	return der(tagSequence, out)
}

func sealTripleDES(text, passphrase []byte) (algorithm, data []byte, err error) {
	if len(passphrase) == 0 {
		return nil, nil, errNoPassphrase
	}
	salt := make([]byte, 8)
	rand.Read(salt)
	block, iv, err := tripleDES(passphrase, salt, tripleDESIterations)
	if err != nil {
		return nil, nil, err
	}
	data = padded(text, des.BlockSize)
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(data, data)
	count, err := asn1.Marshal(tripleDESIterations)
	return der(tagSequence, mustOID(oidTripleDES), der(tagSequence, der(tagOctets, salt), count)), data, err
}

func tripleDES(passphrase, salt []byte, iterations int) (block cipher.Block, iv []byte, err error) {
	secret := bmp(passphrase)
	block, err = des.NewTripleDESCipher(kdf(sha1.New, secret, salt, iterations, 1, 24))
	return block, kdf(sha1.New, secret, salt, iterations, 2, des.BlockSize), err
}

// contentInfo is one part of a bundle.
type contentInfo struct {
	ID      asn1.ObjectIdentifier
	Content asn1.RawValue `asn1:"explicit,tag:0,optional"`
}

type pfx struct {
	Version int
	Auth    contentInfo
	MAC     struct {
		Digest struct {
			Algorithm struct {
				ID   asn1.ObjectIdentifier
				Null asn1.RawValue `asn1:"optional"`
			}
			Sum []byte
		}
		Salt       []byte
		Iterations int `asn1:"optional,default:1"`
	} `asn1:"optional"`
}

// errNotPKCS12 means that the input is not a PKCS#12 bundle.
var errNotPKCS12 = &Error{"ValueError", "Could not deserialize PKCS12 data"}

// ParsePKCS12 parses a bundle. Key and Cert are nil if the bundle does not contain them; Cert is the certificate of
// Key.
func ParsePKCS12(b, passphrase []byte) (*Bundle, error) {
	var p pfx
	rest, err := asn1.Unmarshal(b, &p)
	if err != nil || len(rest) > 0 || p.Version != 3 || p.Auth.ID.String() != oidData {
		return nil, errNotPKCS12
	}
	all, err := octets(p.Auth.Content)
	if err != nil {
		return nil, errNotPKCS12
	}
	if err := p.checkMAC(all, passphrase); err != nil {
		return nil, err
	}
	safes, err := inside(all)
	if err != nil || len(safes) > maxSafes {
		return nil, errNotPKCS12
	}
	out := &Bundle{}
	for _, safe := range safes {
		var c contentInfo
		if _, err := asn1.Unmarshal(safe.FullBytes, &c); err != nil {
			return nil, errNotPKCS12
		}
		bags, err := c.open(passphrase)
		if err != nil {
			return nil, err
		}
		if err := out.take(bags, passphrase); err != nil {
			return nil, err
		}
	}
	out.findCert()
	return out, nil
}

// octets returns the content of the OCTET STRING in an element.
func octets(v asn1.RawValue) ([]byte, error) {
	var b []byte
	_, err := asn1.Unmarshal(v.Bytes, &b)
	return b, err
}

func (p *pfx) checkMAC(all, passphrase []byte) error {
	var h func() hash.Hash
	switch p.MAC.Digest.Algorithm.ID.String() {
	case "": // no MAC
		return nil
	case oidSHA1:
		h = sha1.New
	case oidSHA256:
		h = sha256.New
	case oidSHA384:
		h = sha512.New384
	case oidSHA512:
		h = sha512.New
	}
	n := max(p.MAC.Iterations, 1)
	if h == nil || n > maxIterations || len(p.MAC.Salt) == 0 {
		return errNotPKCS12
	}
	secrets := [][]byte{bmp(passphrase)}
	if len(passphrase) == 0 {
		secrets = append(secrets, nil)
	}
	for _, secret := range secrets {
		mac := hmac.New(h, kdf(h, secret, p.MAC.Salt, n, 3, h().Size()))
		mac.Write(all)
		if subtle.ConstantTimeCompare(mac.Sum(nil), p.MAC.Digest.Sum) == 1 {
			return nil
		}
	}
	return errPassword
}

// open returns the bags in one part of a bundle, decrypted if necessary.
func (c contentInfo) open(passphrase []byte) ([]byte, error) {
	switch c.ID.String() {
	case oidData:
		b, err := octets(c.Content)
		if err != nil {
			return nil, errNotPKCS12
		}
		return b, nil
	case oidEncrypted:
		var e struct {
			Version int
			Info    struct {
				ID        asn1.ObjectIdentifier
				Algorithm asn1.RawValue
				Data      asn1.RawValue `asn1:"tag:0,optional"`
			}
		}
		if _, err := asn1.Unmarshal(c.Content.Bytes, &e); err != nil {
			return nil, errNotPKCS12
		}
		return unseal(e.Info.Algorithm.FullBytes, e.Info.Data.Bytes, passphrase)
	}
	return nil, errNotPKCS12
}

// unseal decrypts data that was encrypted with an algorithm of PKCS#5 or PKCS#12.
func unseal(algorithm, data, passphrase []byte) ([]byte, error) {
	text, ok, err := decrypt(der(tagSequence, algorithm, der(tagOctets, data)), passphrase)
	if ok || err != nil {
		return text, err
	}
	var a struct {
		ID     asn1.ObjectIdentifier
		Params struct {
			Salt       []byte
			Iterations int
		}
	}
	if _, err := asn1.Unmarshal(algorithm, &a); err != nil || a.Params.Iterations < 1 || a.Params.Iterations > maxIterations || len(a.Params.Salt) == 0 {
		return nil, errNotPKCS12
	}
	block, iv, err := pbe(a.ID.String(), passphrase, a.Params.Salt, a.Params.Iterations)
	if err != nil || len(data) == 0 || len(data)%block.BlockSize() != 0 {
		return nil, errNotPKCS12
	}
	text = bytes.Clone(data)
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(text, text)
	return unpadded(text, block.BlockSize())
}

// pbe returns the cipher and the initialization vector of an old algorithm of PKCS#12.
func pbe(id string, passphrase, salt []byte, iterations int) (cipher.Block, []byte, error) {
	switch id {
	case oidTripleDES:
		return tripleDES(passphrase, salt, iterations)
	case oidRC2of128:
		return rc2PBE(passphrase, salt, iterations, 16)
	case oidRC2of40:
		return rc2PBE(passphrase, salt, iterations, 5)
	}
	return nil, nil, errNotPKCS12
}

// take adds the contents of bags to the bundle.
func (b *Bundle) take(bags, passphrase []byte) error {
	list, err := inside(bags)
	if err != nil {
		return errNotPKCS12
	}
	for _, v := range list {
		var bag struct {
			ID         asn1.ObjectIdentifier
			Value      asn1.RawValue   `asn1:"explicit,tag:0"`
			Attributes []asn1.RawValue `asn1:"set,optional"`
		}
		if _, err := asn1.Unmarshal(v.FullBytes, &bag); err != nil {
			return errNotPKCS12
		}
		switch bag.ID.String() {
		case oidCertBag:
			var c contentInfo
			if _, err := asn1.Unmarshal(bag.Value.Bytes, &c); err != nil || c.ID.String() != oidX509 {
				return errNotPKCS12
			}
			raw, err := octets(c.Content)
			if err != nil {
				return errNotPKCS12
			}
			cert, err := x509.ParseCertificate(raw)
			if err != nil {
				return errNotPKCS12
			}
			b.Chain = append(b.Chain, cert)
			if name := friendlyName(bag.Attributes); b.Name == "" {
				b.Name = name
			}
		case oidKeyBag, oidShroudedBag:
			if b.Key != nil {
				continue // use the first
			}
			text := bag.Value.Bytes
			if bag.ID.String() == oidShroudedBag {
				two, err := inside(bag.Value.Bytes)
				if err != nil || len(two) != 2 {
					return errNotPKCS12
				}
				if text, err = unseal(two[0].FullBytes, two[1].Bytes, passphrase); err != nil {
					return err
				}
			}
			if b.Key, err = parseKey(text); err != nil {
				return errNotPKCS12
			}
		}
	}
	return nil
}

// findCert moves the certificate of the key from Chain to Cert.
func (b *Bundle) findCert() {
	if b.Key == nil {
		return
	}
	for i, c := range b.Chain {
		if SamePublic(c.PublicKey, b.Key.Public()) {
			b.Cert, b.Chain = c, append(b.Chain[:i:i], b.Chain[i+1:]...)
			return
		}
	}
}

func friendlyName(attributes []asn1.RawValue) string {
	for _, a := range attributes {
		two, err := children(a.Bytes)
		if err != nil || len(two) != 2 || idText(two[0].FullBytes) != oidFriendlyName {
			continue
		}
		values, err := children(two[1].Bytes)
		if err != nil || len(values) == 0 {
			continue
		}
		raw := values[0].Bytes
		units := make([]uint16, len(raw)/2)
		for i := range units {
			units[i] = uint16(raw[2*i])<<8 | uint16(raw[2*i+1])
		}
		return string(utf16.Decode(units))
	}
	return ""
}
