package pki

import (
	"bytes"
	"context"
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"hash"
	"runtime"
	"strings"
)

// searches limits the concurrent searches for primes to half of the processors. It includes abandoned searches: a
// search cannot be stopped, and those of cancelled jobs must not block other work.
var searches = make(chan struct{}, max(1, runtime.NumCPU()/2))

// NewRSA generates an RSA key. It returns the context's error if ctx ends first. A search for large primes can take a
// minute and then continues in the background.
func NewRSA(ctx context.Context, bits int) (*rsa.PrivateKey, error) {
	type made struct {
		key *rsa.PrivateKey
		err error
	}
	select {
	case searches <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done := make(chan made, 1)
	go func() {
		defer func() { <-searches }()
		key, err := rsa.GenerateKey(rand.Reader, bits)
		done <- made{key, err}
	}()
	select {
	case m := <-done:
		if ctx.Err() == nil {
			return m.key, m.err
		}
	case <-ctx.Done():
	}
	return nil, ctx.Err()
}

// NewKey generates a private key of one of Salt's kinds; size 0 means the kind's default. It ends with ctx as NewRSA
// does.
func NewKey(ctx context.Context, algo string, size int) (crypto.Signer, error) {
	switch algo {
	case "rsa":
		if size == 0 {
			size = 2048
		}
		if size != 2048 && size != 3072 && size != 4096 {
			return nil, usage("RSA key size must be either 2048, 3072 or 4096 bits.")
		}
		key, err := NewRSA(ctx, size)
		if err != nil {
			return nil, err // not a non-nil interface with a nil key
		}
		return key, nil
	case "ec":
		switch size {
		case 0, 256:
			return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		case 384:
			return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
		case 521:
			return ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
		}
		return nil, usage("EC key size must be either 256, 384, 521 bits.")
	case "ed25519":
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	case "ed448":
		return nil, failed("Keys of the kind ed448 are not supported here")
	}
	return nil, usage("Invalid algorithm specified for generating private key: %s. Valid: rsa, ec, ed25519, ed448", algo)
}

// KeyType returns the kind of a public key, or "" for an unknown kind.
func KeyType(pub any) string {
	switch pub.(type) {
	case *rsa.PublicKey:
		return "rsa"
	case *ecdsa.PublicKey:
		return "ec"
	case ed25519.PublicKey:
		return "ed25519"
	}
	return ""
}

// KeySize returns the size of a public key in bits, or 0 if its kind has only one size.
func KeySize(pub any) int {
	switch k := pub.(type) {
	case *rsa.PublicKey:
		return k.N.BitLen()
	case *ecdsa.PublicKey:
		return k.Params().BitSize
	}
	return 0
}

// SamePublic reports whether two public keys are equal.
func SamePublic(a, b any) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

// PublicPEM encodes a public key as PEM.
func PublicPEM(pub any) (string, error) {
	b, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return "", usage("Could not serialize parameter to PEM")
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: b})), nil
}

// EncodeKey encodes a private key as PKCS#8 in DER, encrypted if passphrase is not nil. kind is the type of its PEM
// block.
func EncodeKey(key crypto.Signer, passphrase []byte) (b []byte, kind string, err error) {
	b, err = x509.MarshalPKCS8PrivateKey(key)
	if err != nil || passphrase == nil {
		return b, "PRIVATE KEY", err
	}
	b, err = encrypt(b, passphrase)
	return b, "ENCRYPTED PRIVATE KEY", err
}

// The algorithms of PKCS#5 that OpenSSL and Python use.
const (
	oidPBES2, oidPBKDF2  = "1.2.840.113549.1.5.13", "1.2.840.113549.1.5.12"
	oidAES128, oidAES256 = "2.16.840.1.101.3.4.1.2", "2.16.840.1.101.3.4.1.42"
	oidAES192            = "2.16.840.1.101.3.4.1.22"
	// iterations is for new keys, maxIterations the limit for keys that are read.
	iterations, maxIterations = 100_000, 10_000_000
)

func mustOID(text string) []byte {
	b, err := oid(text)
	if err != nil {
		panic(err) // the texts are constants
	}
	return b
}

// errNoPassphrase is the error of Python's package cryptography for an empty passphrase.
var errNoPassphrase = &Error{"ValueError", "Password must be 1 or more bytes."}

func encrypt(key, passphrase []byte) ([]byte, error) {
	algorithm, data, err := encryptWith(key, passphrase)
	if err != nil {
		return nil, err
	}
	return der(tagSequence, algorithm, der(tagOctets, data)), nil
}

// encryptWith encrypts data with a key derived from a passphrase. It also returns the encoded algorithm and its
// parameters.
func encryptWith(key, passphrase []byte) (algorithm, data []byte, err error) {
	if len(passphrase) == 0 {
		return nil, nil, errNoPassphrase
	}
	salt, iv := make([]byte, 16), make([]byte, aes.BlockSize)
	rand.Read(salt)
	rand.Read(iv)
	secret, err := pbkdf2.Key(sha256.New, string(passphrase), salt, iterations, 32)
	if err != nil {
		return nil, nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, nil, err
	}
	text := padded(key, aes.BlockSize)
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(text, text)
	count, err := asn1.Marshal(iterations)
	if err != nil {
		return nil, nil, err
	}
	prf := der(tagSequence, mustOID("1.2.840.113549.2.9"), der(tagNull))
	kdf := der(tagSequence, mustOID(oidPBKDF2), der(tagSequence, der(tagOctets, salt), count, prf))
	enc := der(tagSequence, mustOID(oidAES256), der(tagOctets, iv))
	return der(tagSequence, mustOID(oidPBES2), der(tagSequence, kdf, enc)), text, nil
}

// padded pads a text to whole blocks.
func padded(text []byte, block int) []byte {
	pad := block - len(text)%block
	return append(bytes.Clone(text), bytes.Repeat([]byte{byte(pad)}, pad)...)
}

// unpadded removes the padding. Invalid padding means a wrong passphrase.
func unpadded(text []byte, block int) ([]byte, error) {
	pad := int(text[len(text)-1])
	if pad == 0 || pad > block || pad > len(text) || !bytes.Equal(text[len(text)-pad:], bytes.Repeat([]byte{byte(pad)}, pad)) {
		return nil, errPassword
	}
	return text[:len(text)-pad], nil
}

var (
	errPassword  = &Error{"InvalidPassword", "Bad decrypt - is the password correct?"}
	errEncrypted = &Error{"MissingPassword", "Private key is encrypted. Please provide a password."}
	errPlain     = &Error{"SuperfluousPassword", "Private key is unencrypted. Please remove the password."}
)

type encryptedKey struct {
	Algorithm struct {
		ID     asn1.ObjectIdentifier
		Params struct {
			KDF struct {
				ID     asn1.ObjectIdentifier
				Params struct {
					Salt       []byte
					Iterations int
					KeyLength  int `asn1:"optional"`
					PRF        struct {
						ID   asn1.ObjectIdentifier
						Null asn1.RawValue `asn1:"optional"`
					} `asn1:"optional"`
				}
			}
			Cipher struct {
				ID asn1.ObjectIdentifier
				IV []byte
			}
		}
	}
	Data []byte
}

// decrypt decrypts a PKCS#8 key; ok is false if b is not an encrypted key.
func decrypt(b, passphrase []byte) (key []byte, ok bool, err error) {
	var e encryptedKey
	if _, err := asn1.Unmarshal(b, &e); err != nil || e.Algorithm.ID.String() != oidPBES2 || e.Algorithm.Params.KDF.ID.String() != oidPBKDF2 {
		return nil, false, nil
	}
	if passphrase == nil {
		return nil, true, errEncrypted
	}
	kdf, c := e.Algorithm.Params.KDF.Params, e.Algorithm.Params.Cipher
	size := map[string]int{oidAES128: 16, oidAES192: 24, oidAES256: 32}[c.ID.String()]
	var h func() hash.Hash
	switch kdf.PRF.ID.String() {
	case "", "1.2.840.113549.2.7":
		h = sha1.New
	case "1.2.840.113549.2.9":
		h = sha256.New
	case "1.2.840.113549.2.11":
		h = sha512.New
	}
	if size == 0 || h == nil || len(c.IV) != aes.BlockSize || kdf.Iterations < 1 || kdf.Iterations > maxIterations || len(e.Data) == 0 || len(e.Data)%aes.BlockSize != 0 {
		return nil, true, usage("Could not load PEM-encoded private key")
	}
	secret, err := pbkdf2.Key(h, string(passphrase), kdf.Salt, kdf.Iterations, size)
	if err != nil {
		return nil, true, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, true, err
	}
	text := bytes.Clone(e.Data)
	cipher.NewCBCDecrypter(block, c.IV).CryptBlocks(text, text)
	text, err = unpadded(text, aes.BlockSize)
	return text, true, err
}

// Bytes returns the content of a source that is not a file: PEM, a text in hex or base64, or bytes.
func Bytes(v any) ([]byte, error) {
	switch v := v.(type) {
	case []byte:
		return v, nil
	case string:
		if rest, ok := strings.CutPrefix(v, "b64:"); ok {
			return base64.StdEncoding.DecodeString(rest)
		}
		if strings.Contains(v, "-----BEGIN") {
			return []byte(v), nil
		}
		if b, err := hex.DecodeString(strings.Join(strings.Fields(v), "")); err == nil {
			return b, nil
		}
		if b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(v), "")); err == nil {
			return b, nil
		}
	}
	return nil, usage("Could not load provided source. You need to pass an existing file, (PEM|hex|base64)-encoded string or raw bytes.")
}

// KeyEncoding returns the encoding of a private key that was parsed: pem, der or pkcs12.
func KeyEncoding(b []byte) string {
	if IsPEM(b) {
		return "pem"
	}
	var p pfx
	if _, err := asn1.Unmarshal(b, &p); err == nil && p.Auth.ID.String() == oidData {
		return "pkcs12"
	}
	return "der"
}

// IsPEM reports whether a source contains PEM.
func IsPEM(b []byte) bool { return bytes.Contains(b, []byte("-----BEGIN")) }

func parseKey(b []byte) (crypto.Signer, error) {
	if k, err := x509.ParsePKCS8PrivateKey(b); err == nil {
		if s, ok := k.(crypto.Signer); ok {
			return s, nil
		}
	}
	if k, err := x509.ParsePKCS1PrivateKey(b); err == nil {
		return k, nil
	}
	k, err := x509.ParseECPrivateKey(b)
	return k, err
}

// PrivateKey parses a private key, encrypted or not, as PEM, DER or PKCS#12.
func PrivateKey(b, passphrase []byte) (crypto.Signer, error) {
	bad := usage("Could not deserialize binary data, neither as DER nor PKCS#12.")
	if IsPEM(b) {
		bad = usage("Could not load PEM-encoded private key")
		block, _ := pem.Decode(b)
		for rest := b; block != nil && !strings.HasSuffix(block.Type, "PRIVATE KEY"); {
			block, rest = pem.Decode(rest)
		}
		if block == nil {
			return nil, bad
		}
		if strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
			if passphrase == nil {
				return nil, errEncrypted
			}
			//lint:ignore SA1019 keys of old are encrypted so
			text, err := x509.DecryptPEMBlock(block, passphrase)
			if err != nil {
				return nil, errPassword
			}
			block.Bytes, passphrase = text, nil
		}
		b = block.Bytes
	} else if bundle, err := ParsePKCS12(b, passphrase); err == errPassword || err == errEncrypted {
		return nil, errPassword
	} else if err == nil {
		if bundle.Key == nil {
			return nil, failed("PKCS12-encoded blob does not contain a private key.")
		}
		return bundle.Key, nil
	}
	if text, ok, err := decrypt(b, passphrase); err != nil {
		return nil, err
	} else if ok {
		b, passphrase = text, nil
		bad = errPassword
	}
	key, err := parseKey(b)
	if err != nil {
		return nil, bad
	}
	if passphrase != nil {
		return nil, errPlain
	}
	return key, nil
}

// PublicKey parses a public key as PEM or DER.
func PublicKey(b []byte) (any, error) {
	bad := usage("Could not load DER-encoded public key.")
	if IsPEM(b) {
		bad = usage("Could not load PEM-encoded public key.")
		block, _ := pem.Decode(b)
		if block == nil {
			return nil, bad
		}
		if block.Type == "RSA PUBLIC KEY" {
			if k, err := x509.ParsePKCS1PublicKey(block.Bytes); err == nil {
				return k, nil
			}
		}
		if block.Type != "PUBLIC KEY" {
			return nil, bad
		}
		b = block.Bytes
	}
	k, err := x509.ParsePKIXPublicKey(b)
	if err != nil {
		return nil, bad
	}
	return k, nil
}
