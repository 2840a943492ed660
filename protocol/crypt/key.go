package crypt

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha1" // both hashes must be linked in so that crypto.Hash finds them
	_ "crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// Names of algorithms in enc_algo and sig_algo. If a message names none, SHA1 is used.
const (
	OAEPSHA1       = "OAEP-SHA1"
	OAEPSHA224     = "OAEP-SHA224"
	PKCS1v15SHA1   = "PKCS1v15-SHA1"
	PKCS1v15SHA224 = "PKCS1v15-SHA224"
)

// Limits of acceptable keys.
const (
	MinBits     = 2048
	MaxBits     = 16384 // larger moduli only cost the verifier time
	MinExponent = 65537
	maxPEM      = 64 << 10 // bytes of a key file
)

var (
	// ErrWeakKey means that a key is too short or has an unusable modulus or exponent.
	ErrWeakKey = errors.New("crypt: weak key")
	// ErrAlgorithm means that the name of an algorithm is not one of Salt's.
	ErrAlgorithm = errors.New("crypt: unsupported algorithm")
	// ErrSignature means that a signature does not match the message and the key.
	ErrSignature = errors.New("crypt: signature does not verify")
	// ErrDecrypt means that a ciphertext is not for this key. It never has details, since details help an attacker who
	// sends chosen ciphertexts.
	ErrDecrypt = errors.New("crypt: cannot decrypt with this key")
)

// ValidEncryption reports whether alg names an encryption algorithm of Salt
// (salt/crypt.py:VALID_ENCRYPTION_ALGORITHMS).
func ValidEncryption(alg string) bool { return alg == OAEPSHA1 || alg == OAEPSHA224 }

// ValidSigning reports whether alg names a signing algorithm of Salt (salt/crypt.py:VALID_SIGNING_ALGORITHMS).
func ValidSigning(alg string) bool { return alg == PKCS1v15SHA1 || alg == PKCS1v15SHA224 }

// FIPS reports whether alg, a valid name, uses only hashes that FIPS allows (option fips_mode).
func FIPS(alg string) bool { return alg == OAEPSHA224 || alg == PKCS1v15SHA224 }

// CheckSigning returns an error if alg is no signing algorithm of Salt, or if fips is set and FIPS does not allow it.
func CheckSigning(alg string, fips bool) error {
	switch {
	case !ValidSigning(alg):
		return fmt.Errorf("signing algorithm %.40q is unknown", alg)
	case fips && !FIPS(alg):
		return fmt.Errorf("signing algorithm %s is not allowed in FIPS mode", alg)
	}
	return nil
}

// hashOf returns the hash of an algorithm, or an error if valid refuses the algorithm.
func hashOf(alg string, valid func(string) bool) (crypto.Hash, error) {
	if !valid(alg) {
		return 0, fmt.Errorf("%w %.40q", ErrAlgorithm, alg)
	}
	if strings.HasSuffix(alg, "-SHA224") {
		return crypto.SHA224, nil
	}
	return crypto.SHA1, nil
}

// A PrivateKey is an RSA key pair. It is safe for concurrent use. Printing and logging do not show it.
type PrivateKey struct {
	key  *rsa.PrivateKey
	pub  *PublicKey
	x931 x931Cache
}

// GenerateKey returns a new key pair with exponent 65537. Salt's default size is 2048 bits (option keysize).
func GenerateKey(bits int) (*PrivateKey, error) {
	if bits < MinBits || bits > MaxBits {
		return nil, fmt.Errorf("cannot generate key of %d bits: %w", bits, ErrWeakKey)
	}
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return nil, fmt.Errorf("cannot generate key of %d bits: %w", bits, err)
	}
	return newPrivate(k)
}

// ParsePrivateKey parses a private key in PEM form, PKCS#1 (which Salt writes) or PKCS#8, without a passphrase.
func ParsePrivateKey(text []byte) (*PrivateKey, error) {
	block, err := onlyBlock(text)
	if err != nil {
		return nil, fmt.Errorf("cannot parse private key: %w", err)
	}
	var k *rsa.PrivateKey
	switch block.Type {
	case "RSA PRIVATE KEY":
		if block.Headers["DEK-Info"] != "" {
			return nil, errors.New("cannot parse private key: it is locked with a passphrase")
		}
		k, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "PRIVATE KEY":
		var any any
		if any, err = x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			var ok bool
			if k, ok = any.(*rsa.PrivateKey); !ok {
				return nil, errors.New("cannot parse private key: it is not an RSA key")
			}
		}
	case "ENCRYPTED PRIVATE KEY":
		return nil, errors.New("cannot parse private key: it is locked with a passphrase")
	default:
		return nil, fmt.Errorf("cannot parse private key: PEM block is a %.40q", block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot parse private key: %w", err)
	}
	return newPrivate(k)
}

func newPrivate(k *rsa.PrivateKey) (*PrivateKey, error) {
	pub, err := newPublic(&k.PublicKey, "")
	if err != nil {
		return nil, err
	}
	if err := k.Validate(); err != nil {
		return nil, fmt.Errorf("cannot use private key: %w", err)
	}
	return &PrivateKey{key: k, pub: pub}, nil
}

// LoadPrivateKey reads a private key from a file.
func LoadPrivateKey(path string) (*PrivateKey, error) {
	text, err := readKeyFile(path)
	if err != nil {
		return nil, err
	}
	k, err := ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("cannot use key file %q: %w", path, err)
	}
	return k, nil
}

// PEM returns the key in Salt's form: PKCS#1, with a final newline.
func (k *PrivateKey) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k.key)})
}

// Public returns the public half.
func (k *PrivateKey) Public() *PublicKey { return k.pub }

// String hides the key.
func (k *PrivateKey) String() string { return "crypt.PrivateKey(hidden)" }

// GoString hides the key.
func (k *PrivateKey) GoString() string { return k.String() }

// Format hides the key from every verb of fmt.
func (k *PrivateKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// LogValue hides the key.
func (k *PrivateKey) LogValue() slog.Value { return slog.StringValue(k.String()) }

// Sign returns an RSASSA-PKCS1-v1_5 signature of msg. It is deterministic.
func (k *PrivateKey) Sign(alg string, msg []byte) ([]byte, error) {
	h, err := hashOf(alg, ValidSigning)
	if err != nil {
		return nil, err
	}
	d := h.New()
	d.Write(msg)
	sig, err := rsa.SignPKCS1v15(nil, k.key, h, d.Sum(nil))
	if err != nil {
		return nil, fmt.Errorf("cannot sign with %s: %w", alg, err)
	}
	return sig, nil
}

// Decrypt decrypts an RSA-OAEP ciphertext. The error is [ErrDecrypt] or [ErrAlgorithm].
func (k *PrivateKey) Decrypt(alg string, ct []byte) ([]byte, error) {
	h, err := hashOf(alg, ValidEncryption)
	if err != nil {
		return nil, err
	}
	msg, err := rsa.DecryptOAEP(h.New(), nil, k.key, ct, nil)
	if err != nil {
		return nil, ErrDecrypt
	}
	return msg, nil
}

// A PublicKey is an RSA public key and the text it was parsed from. It is immutable and safe for concurrent use.
type PublicKey struct {
	key  *rsa.PublicKey
	text string // cleaned PEM
	last atomic.Pointer[recovered]
}

// ParsePublicKey parses a public key in PEM form, SPKI (which Salt writes) or PKCS#1. The error is [ErrWeakKey] for
// keys of less than 2048 bits or more than 16384, an exponent that is even or below 65537, and an even modulus. Text
// around the PEM block is an error, too.
func ParsePublicKey(text []byte) (*PublicKey, error) {
	block, err := onlyBlock(text)
	if err != nil {
		return nil, fmt.Errorf("cannot parse public key: %w", err)
	}
	var k *rsa.PublicKey
	switch block.Type {
	case "PUBLIC KEY":
		var any any
		if any, err = x509.ParsePKIXPublicKey(block.Bytes); err == nil {
			var ok bool
			if k, ok = any.(*rsa.PublicKey); !ok {
				return nil, errors.New("cannot parse public key: it is not an RSA key")
			}
		}
	case "RSA PUBLIC KEY":
		k, err = x509.ParsePKCS1PublicKey(block.Bytes)
	default:
		return nil, fmt.Errorf("cannot parse public key: PEM block is a %.40q", block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot parse public key: %w", err)
	}
	return newPublic(k, CleanKey(string(text)))
}

func newPublic(k *rsa.PublicKey, text string) (*PublicKey, error) {
	switch bits := k.N.BitLen(); {
	// guard: CVE-2013-2228 TestCVE_2013_2228_WeakKeys,master:TestT2WeakKeys
	case bits < MinBits || bits > MaxBits:
		return nil, fmt.Errorf("%w: modulus has %d bits", ErrWeakKey, bits)
	// guard: CVE-2013-2228 TestCVE_2013_2228_WeakKeys
	case k.N.Bit(0) == 0:
		return nil, fmt.Errorf("%w: modulus is even", ErrWeakKey)
	// guard: CVE-2013-2228 TestCVE_2013_2228_WeakKeys
	case k.E < MinExponent || k.E%2 == 0:
		return nil, fmt.Errorf("%w: exponent is %d", ErrWeakKey, k.E)
	}
	if text == "" {
		der, err := x509.MarshalPKIXPublicKey(k)
		if err != nil {
			return nil, fmt.Errorf("cannot encode public key: %w", err)
		}
		text = CleanKey(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	}
	return &PublicKey{key: k, text: text}, nil
}

// LoadPublicKey reads a public key from a file.
func LoadPublicKey(path string) (*PublicKey, error) {
	text, err := readKeyFile(path)
	if err != nil {
		return nil, err
	}
	k, err := ParsePublicKey(text)
	if err != nil {
		return nil, fmt.Errorf("cannot use key file %q: %w", path, err)
	}
	return k, nil
}

// PEM returns the key with a final newline, as Salt writes it to minion.pub and master.pub.
func (p *PublicKey) PEM() []byte { return []byte(p.text + "\n") }

// Text returns the cleaned PEM text without a final newline. Keys are sent and compared in this form.
func (p *PublicKey) Text() string { return p.text }

// Bits returns the length of the modulus.
func (p *PublicKey) Bits() int { return p.key.N.BitLen() }

// Equal reports whether p and o are the same key, whatever form they were parsed from.
func (p *PublicKey) Equal(o *PublicKey) bool {
	if p == nil || o == nil {
		return p == o
	}
	return p.key.Equal(o.key)
}

// Verify checks an RSASSA-PKCS1-v1_5 signature. The error is [ErrSignature] or [ErrAlgorithm].
func (p *PublicKey) Verify(alg string, msg, sig []byte) error {
	h, err := hashOf(alg, ValidSigning)
	if err != nil {
		return err
	}
	d := h.New()
	d.Write(msg)
	if err := rsa.VerifyPKCS1v15(p.key, h, d.Sum(nil), sig); err != nil {
		return ErrSignature
	}
	return nil
}

// Encrypt returns an RSA-OAEP ciphertext of msg. With OAEP-SHA1 msg is at least 42 bytes shorter than the key, with
// OAEP-SHA224 58 bytes.
func (p *PublicKey) Encrypt(alg string, msg []byte) ([]byte, error) {
	h, err := hashOf(alg, ValidEncryption)
	if err != nil {
		return nil, err
	}
	ct, err := rsa.EncryptOAEP(h.New(), rand.Reader, p.key, msg, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot encrypt with %s: %w", alg, err)
	}
	return ct, nil
}

// Fingerprint returns the fingerprint that salt-key -f shows; see [FingerprintPEM].
func (p *PublicKey) Fingerprint(hashType string) (string, error) {
	return FingerprintPEM(p.PEM(), hashType)
}

func readKeyFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read key file %q: %w", path, errors.Unwrap(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPEM+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read key file %q: %w", path, err)
	}
	if len(text) > maxPEM {
		return nil, fmt.Errorf("cannot read key file %q: it exceeds %d bytes", path, maxPEM)
	}
	return text, nil
}

// onlyBlock decodes text that consists of one PEM block. With two blocks an operator could be shown one key while
// another is used.
func onlyBlock(text []byte) (*pem.Block, error) {
	if len(text) > maxPEM {
		return nil, fmt.Errorf("text exceeds %d bytes", maxPEM)
	}
	if !utf8.Valid(text) {
		return nil, errors.New("text is not PEM")
	}
	clean := CleanKey(string(text))
	if !strings.HasPrefix(clean, "-----BEGIN ") {
		return nil, errors.New("text is not PEM")
	}
	block, rest := pem.Decode([]byte(clean))
	if block == nil {
		return nil, errors.New("text is not PEM")
	}
	if len(rest) != 0 || strings.Count(clean, "-----BEGIN ") != 1 {
		return nil, errors.New("text is more than one PEM block")
	}
	return block, nil
}

// x931Cache caches the last two X9.31 signatures of a key. Salt requests the same ones again and again: of "salt" on
// a minion, of the shared key's digest on a master. A signature costs about a hundred times as much as a
// verification.
type x931Cache struct {
	mu   sync.Mutex
	msgs [2]string // guarded by mu, like sigs
	sigs [2][]byte
}

func (c *x931Cache) get(msg string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, m := range c.msgs {
		if c.sigs[i] != nil && m == msg {
			return append([]byte(nil), c.sigs[i]...)
		}
	}
	return nil
}

func (c *x931Cache) put(msg string, sig []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.msgs[1], c.sigs[1] = c.msgs[0], c.sigs[0]
	c.msgs[0], c.sigs[0] = msg, append([]byte(nil), sig...)
}

var one = big.NewInt(1)
