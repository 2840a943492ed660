package crypt

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
)

// Sizes of a Crypticle key and message, in bytes.
const (
	aesSize  = 24 // AES-192
	hmacSize = 32
	keySize  = aesSize + hmacSize

	// KeyTextLen is the length of a key in its text form.
	KeyTextLen = 76
	// NonceLen is the length of a nonce: 32 hexadecimal digits.
	NonceLen = 32

	prefix = "pickle::"
)

var (
	// ErrAuth means that a message was not sealed with this key, or is not a sealed message. Salt then signs in
	// again, because the peer most likely has another key now.
	ErrAuth = errors.New("crypt: message does not authenticate")
	// ErrNonce means that a message is authentic but answers another request: a replay.
	ErrNonce = errors.New("crypt: message has another nonce")
	// ErrFormat means that a message is authentic but its content is malformed.
	ErrFormat = errors.New("crypt: sealed message is malformed")
)

// A Key is a Crypticle key: 24 bytes for AES-192 and 32 for HMAC-SHA256 (salt/crypt.py:Crypticle). It is immutable
// and safe for concurrent use. Printing and logging do not show it.
type Key struct{ raw [keySize]byte }

// NewKey returns a random key.
func NewKey() (*Key, error) {
	k := new(Key)
	if _, err := rand.Read(k.raw[:]); err != nil {
		return nil, fmt.Errorf("cannot make key: %w", err)
	}
	return k, nil
}

// ParseKey parses a key from 76 characters of standard base64, the form in which keys are sent and stored. White
// space around them is ignored.
func ParseKey(text string) (*Key, error) {
	text = CleanKey(text)
	if len(text) != KeyTextLen {
		return nil, fmt.Errorf("cannot parse Crypticle key: it has %d characters, not %d", len(text), KeyTextLen)
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != keySize {
		return nil, errors.New("cannot parse Crypticle key: it is not base64 of 56 bytes")
	}
	return &Key{raw: [keySize]byte(raw)}, nil
}

// Text returns the 76 characters of base64. They are the secret key itself.
func (k *Key) Text() string { return base64.StdEncoding.EncodeToString(k.raw[:]) }

// Equal reports in constant time whether k and o are the same key.
func (k *Key) Equal(o *Key) bool {
	return k != nil && o != nil && subtle.ConstantTimeCompare(k.raw[:], o.raw[:]) == 1
}

// String hides the key.
func (k Key) String() string { return "crypt.Key(hidden)" }

// GoString hides the key.
func (k Key) GoString() string { return k.String() }

// Format hides the key from every verb of fmt.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// LogValue hides the key.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// Seal encrypts and authenticates a packed value. nonce is empty or has [NonceLen] characters and precedes the
// value. The result is
//
//	IV │ AES-192-CBC("pickle::" + nonce + value, PKCS#7 padding) │ HMAC-SHA256 of both
func (k *Key) Seal(msgpack []byte, nonce string) ([]byte, error) {
	var iv [aes.BlockSize]byte
	if _, err := rand.Read(iv[:]); err != nil {
		return nil, fmt.Errorf("cannot seal message: %w", err)
	}
	return k.sealWith(msgpack, nonce, iv)
}

// sealWith is like Seal with a given IV, so that tests can compare with Salt's vectors.
func (k *Key) sealWith(msgpack []byte, nonce string, iv [aes.BlockSize]byte) ([]byte, error) {
	if nonce != "" && len(nonce) != NonceLen {
		return nil, fmt.Errorf("cannot seal message: nonce has %d characters, not %d", len(nonce), NonceLen)
	}
	n := len(prefix) + len(nonce) + len(msgpack)
	pad := aes.BlockSize - n%aes.BlockSize
	out := make([]byte, aes.BlockSize, aes.BlockSize+n+pad+sha256.Size)
	copy(out, iv[:])
	out = append(append(append(out, prefix...), nonce...), msgpack...)
	for range pad {
		out = append(out, byte(pad))
	}
	block, err := aes.NewCipher(k.raw[:aesSize])
	if err != nil {
		return nil, fmt.Errorf("cannot seal message: %w", err)
	}
	cipher.NewCBCEncrypter(block, iv[:]).CryptBlocks(out[aes.BlockSize:], out[aes.BlockSize:])
	mac := newMAC(k)
	mac.Write(out)
	return mac.Sum(out), nil
}

// Open checks and decrypts a message of [Key.Seal] and returns the packed value. If nonce is not empty, the message
// must carry the same nonce. Errors are [ErrAuth], [ErrFormat] and [ErrNonce], checked in this order: no part of a
// message is used before its HMAC is verified.
func (k *Key) Open(ct []byte, nonce string) ([]byte, error) { return k.openMessage(ct, nonce, false) }

// OpenInPlace is like [Key.Open] for a message that the caller owns. It decrypts within ct and returns a part of it,
// so a large message is in memory once. If the HMAC is wrong, ct stays unchanged.
func (k *Key) OpenInPlace(ct []byte, nonce string) ([]byte, error) {
	return k.openMessage(ct, nonce, true)
}

// openMessage implements Open and OpenInPlace.
func (k *Key) openMessage(ct []byte, nonce string, inPlace bool) ([]byte, error) {
	at := len(ct) - sha256.Size
	if at < 0 {
		return nil, fmt.Errorf("%w: %d bytes are too few", ErrAuth, len(ct))
	}
	mac := newMAC(k)
	mac.Write(ct[:at])
	var sum [sha256.Size]byte
	if subtle.ConstantTimeCompare(mac.Sum(sum[:0]), ct[at:]) != 1 {
		return nil, ErrAuth
	}
	if at < 2*aes.BlockSize || at%aes.BlockSize != 0 {
		return nil, fmt.Errorf("%w: %d bytes are not whole blocks", ErrFormat, at)
	}
	block, err := aes.NewCipher(k.raw[:aesSize])
	if err != nil {
		return nil, fmt.Errorf("cannot open message: %w", err)
	}
	plain := ct[aes.BlockSize:at:at]
	if !inPlace {
		plain = make([]byte, at-aes.BlockSize)
	}
	cipher.NewCBCDecrypter(block, ct[:aes.BlockSize]).CryptBlocks(plain, ct[aes.BlockSize:at])
	plain, ok := unpad(plain)
	if !ok {
		return nil, fmt.Errorf("%w: wrong padding", ErrFormat)
	}
	if len(plain) < len(prefix) || string(plain[:len(prefix)]) != prefix {
		return nil, fmt.Errorf("%w: no %q at its start", ErrFormat, prefix)
	}
	plain = plain[len(prefix):]
	if nonce == "" {
		return plain, nil
	}
	if len(plain) < NonceLen || subtle.ConstantTimeCompare(plain[:NonceLen], []byte(nonce)) != 1 {
		return nil, ErrNonce
	}
	return plain[NonceLen:], nil
}

func newMAC(k *Key) hash.Hash { return hmac.New(sha256.New, k.raw[aesSize:]) }

// unpad removes PKCS#7 padding and checks each byte of it, which Python does not. The HMAC was verified before, so
// this is not a padding oracle.
func unpad(b []byte) ([]byte, bool) {
	n := int(b[len(b)-1])
	if n == 0 || n > aes.BlockSize || n > len(b) {
		return nil, false
	}
	for _, c := range b[len(b)-n:] {
		if int(c) != n {
			return nil, false
		}
	}
	return b[:len(b)-n], true
}
