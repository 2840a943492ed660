package crypt

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/protocol/internal/vectors"
)

func encode(t *testing.T, kind string, der []byte, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func TestKeyForms(t *testing.T) {
	k := private(t, "minion")
	pkcs8, err := x509.MarshalPKCS8PrivateKey(k.key)
	for name, text := range map[string][]byte{
		"PKCS#1": k.PEM(),
		"PKCS#8": encode(t, "PRIVATE KEY", pkcs8, err),
		"CRLF":   bytes.ReplaceAll(k.PEM(), []byte("\n"), []byte("\r\n")),
		"spaces": append([]byte("\n \n"), append(k.PEM(), " \n\n"...)...),
	} {
		got, err := ParsePrivateKey(text)
		if err != nil || !got.Public().Equal(k.Public()) {
			t.Errorf("private key as %s: %v", name, err)
		}
	}
	if string(k.PEM()) != vectors.Keys(t)["minion"].Private {
		t.Error("PEM differs from what Salt wrote")
	}
	p := k.Public()
	for name, text := range map[string][]byte{
		"SPKI":   p.PEM(),
		"PKCS#1": encode(t, "RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(p.key), nil),
	} {
		got, err := ParsePublicKey(text)
		if err != nil || !got.Equal(p) || got.Text() != CleanKey(string(text)) {
			t.Errorf("public key as %s: %v", name, err)
		}
	}
	if string(p.PEM()) != vectors.Keys(t)["minion"].Public || p.Bits() != 2048 {
		t.Error("PEM differs from what Salt wrote")
	}
	if len(p.Text()) != 450 || strings.HasSuffix(p.Text(), "\n") {
		t.Errorf("cleaned text has %d bytes", len(p.Text()))
	}
}

func TestKeyRefusals(t *testing.T) {
	good := public(t, "minion")
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	otherPub, err1 := x509.MarshalPKIXPublicKey(&other.PublicKey)
	otherPriv, err2 := x509.MarshalPKCS8PrivateKey(other)
	for name, text := range map[string]string{
		"empty":         "",
		"no PEM":        "hello",
		"not UTF-8":     "\xff\xfe",
		"half":          good.Text()[:200],
		"certificate":   "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----",
		"bad DER":       "-----BEGIN PUBLIC KEY-----\nMAA=\n-----END PUBLIC KEY-----",
		"two keys":      good.Text() + "\n" + good.Text(),
		"text before":   "hello\n" + good.Text(),
		"text after":    good.Text() + "\nhello",
		"huge":          good.Text() + strings.Repeat(" ", maxPEM) + "x",
		"elliptic":      string(encode(t, "PUBLIC KEY", otherPub, err1)),
		"elliptic priv": string(encode(t, "PRIVATE KEY", otherPriv, err2)),
		"passphrase": "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nMAA=\n" +
			"-----END RSA PRIVATE KEY-----",
		"passphrase 8": "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----",
	} {
		if _, err := ParsePublicKey([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), "cannot parse public key") {
			t.Errorf("public key, %s: %v", name, err)
		}
		if _, err := ParsePrivateKey([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), "cannot parse private key") {
			t.Errorf("private key, %s: %v", name, err)
		}
	}
}

// TestCVE_2013_2228_WeakKeys: generated keys are strong and readable by other programs, and weak keys are refused.
func TestCVE_2013_2228_WeakKeys(t *testing.T) {
	n := 8
	if testing.Short() {
		n = 2
	}
	for range n {
		k, err := GenerateKey(2048)
		if err != nil {
			t.Fatal(err)
		}
		if k.key.N.BitLen() != 2048 || k.key.E != 65537 {
			t.Fatalf("%d bits, e = %d", k.key.N.BitLen(), k.key.E)
		}
		again, err := ParsePrivateKey(k.PEM())
		if err != nil || !again.Public().Equal(k.Public()) {
			t.Fatal("generated key does not come back", err)
		}
	}
	for _, bits := range []int{-1, 0, 512, 1024, 2047, MaxBits + 1} {
		if _, err := GenerateKey(bits); !errors.Is(err, ErrWeakKey) {
			t.Errorf("%d bits: %v", bits, err)
		}
	}
	good := public(t, "minion").key
	even := new(big.Int).Sub(good.N, one)
	for name, k := range map[string]*rsa.PublicKey{
		"1024 bits":     {N: new(big.Int).Rsh(good.N, 1024), E: 65537},
		"2047 bits":     {N: new(big.Int).Rsh(good.N, 1), E: 65537},
		"32768 bits":    {N: new(big.Int).SetBit(new(big.Int).Lsh(good.N, 30720), 0, 1), E: 65537},
		"even modulus":  {N: even, E: 65537},
		"exponent 1":    {N: good.N, E: 1},
		"exponent 3":    {N: good.N, E: 3},
		"even exponent": {N: good.N, E: 65538},
	} {
		der := x509.MarshalPKCS1PublicKey(k)
		_, err := ParsePublicKey(encode(t, "RSA PUBLIC KEY", der, nil))
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := newPublic(k, ""); !errors.Is(err, ErrWeakKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := func(name string, content []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	k := private(t, "minion")
	if got, err := LoadPrivateKey(path("minion.pem", k.PEM())); err != nil || !got.Public().Equal(k.Public()) {
		t.Error(err)
	}
	if got, err := LoadPublicKey(path("minion.pub", k.Public().PEM())); err != nil || !got.Equal(k.Public()) {
		t.Error(err)
	}
	huge := path("huge", make([]byte, maxPEM+1))
	for name, p := range map[string]string{"missing": filepath.Join(dir, "missing"), "huge": huge, "minion.pub": dir} {
		for _, load := range []func(string) error{
			func(p string) error { _, err := LoadPrivateKey(p); return err },
			func(p string) error { _, err := LoadPublicKey(p); return err },
		} {
			if err := load(p); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", p)) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := LoadPublicKey(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file is %v", err)
	}
}

func TestSecretsAreHidden(t *testing.T) {
	k := private(t, "minion")
	c, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "private", k, "key", c, "value", *c)
	shown := log.String()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
		shown += fmt.Sprintf(verb+verb+verb, k, c, *c)
	}
	raw := fmt.Sprintf("%x", c.raw[:8])
	d := k.key.D.String()[:16]
	for _, secret := range []string{c.Text()[:16], raw, d, fmt.Sprintf("%x", k.key.D)[:16], fmt.Sprint(c.raw[0], " ", c.raw[1], " ", c.raw[2])} {
		if strings.Contains(shown, secret) {
			t.Errorf("%q shows up", secret)
		}
	}
	if !strings.Contains(shown, "hidden") {
		t.Error(shown)
	}
}

func TestX931Edges(t *testing.T) {
	k, other := private(t, "minion"), public(t, "other_minion")
	p := k.Public()
	for _, n := range []int{0, 1, 4, 64, 253, 254} {
		msg := bytes.Repeat([]byte{0xba}, n) // the byte that ends X9.31 padding
		sig, err := k.SignX931(msg)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.RecoverX931(sig); err != nil || !bytes.Equal(got, msg) {
			t.Errorf("%d bytes: %x, %v", n, got, err)
		}
		if _, err := other.RecoverX931(sig); !errors.Is(err, ErrSignature) {
			t.Errorf("%d bytes with another key: %v", n, err)
		}
		for _, i := range []int{0, 100, 255} {
			bad := bytes.Clone(sig)
			bad[i] ^= 1
			if got, err := p.RecoverX931(bad); err == nil && bytes.Equal(got, msg) {
				t.Errorf("%d bytes: survives a change at %d", n, i)
			}
		}
	}
	if _, err := k.SignX931(make([]byte, 255)); err == nil {
		t.Error("255 bytes fit")
	}
	for name, sig := range map[string][]byte{
		"nil": nil, "short": make([]byte, 255), "long": make([]byte, 257), "zero": make([]byte, 256),
		"one": append(make([]byte, 255), 1), "above the modulus": bytes.Repeat([]byte{0xff}, 256),
		"the modulus": p.key.N.Bytes(), "one below": new(big.Int).Sub(p.key.N, one).Bytes(),
	} {
		if got, err := p.RecoverX931(sig); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %x, %v", name, got, err)
		}
	}
}

func TestUnpadX931(t *testing.T) {
	for in, ok := range map[string]bool{
		"\x6b\xba\x61\xcc": true, "\x6b\xbb\xba\xcc": true, "\x6a\x61\x62\xcc": true,
		"\x6b\xbb\xbb\xcc": false, "\x6b\xbb\x00\xcc": false, "\x6b\xba\x61\xcd": false, "\x00\xba\x61\xcc": false,
	} {
		if _, err := unpadX931([]byte(in)); (err == nil) != ok {
			t.Errorf("%x: %v", in, err)
		}
	}
}

// forge seals bytes that Seal would never produce: authentic, but malformed.
func forge(t *testing.T, k *Key, padded []byte) []byte {
	t.Helper()
	block, err := aes.NewCipher(k.raw[:aesSize])
	if err != nil {
		t.Fatal(err)
	}
	out := append(make([]byte, 16), padded...)
	if len(padded)%16 == 0 && len(padded) > 0 {
		cipher.NewCBCEncrypter(block, out[:16]).CryptBlocks(out[16:], out[16:])
	}
	mac := hmac.New(sha256.New, k.raw[aesSize:])
	mac.Write(out)
	return mac.Sum(out)
}

func TestOpenIsStrict(t *testing.T) {
	k, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	pad := func(s string, tail ...byte) []byte { return append([]byte(s), tail...) }
	for name, c := range map[string]struct {
		padded []byte
		err    error
	}{
		"whole":             {pad("pickle::1234567", 1), nil},
		"padding 0":         {pad("pickle::1234567", 0), ErrFormat},
		"padding 17":        {pad("pickle::1234567", 17), ErrFormat},
		"padding differs":   {pad("pickle::12345", 1, 2, 3), ErrFormat},
		"no whole blocks":   {pad("pickle::12345"), ErrFormat},
		"no blocks":         {nil, ErrFormat},
		"only padding":      {bytes.Repeat([]byte{16}, 16), ErrFormat},
		"tls_opt prefix":    {pad("tls_opt::pickle::\x81\xa1a\x01", bytes.Repeat([]byte{11}, 11)...), ErrFormat},
		"upper case prefix": {pad("PICKLE::1234567", 1), ErrFormat},
	} {
		if _, err := k.Open(forge(t, k, c.padded), ""); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", name, err, c.err)
		}
	}
}

func aesKey(t *testing.T) *Key {
	t.Helper()
	k, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSealAndOpen(t *testing.T) {
	k, other, nonce := aesKey(t), aesKey(t), strings.Repeat("a", NonceLen)
	for n := range 50 {
		msg := bytes.Repeat([]byte{'x'}, n)
		for _, nc := range []string{"", nonce} {
			ct, err := k.Seal(msg, nc)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := k.Open(ct, nc); err != nil || !bytes.Equal(got, msg) {
				t.Errorf("%d bytes: %q, %v", n, got, err)
			}
			if _, err := other.Open(ct, nc); !errors.Is(err, ErrAuth) {
				t.Errorf("another key: %v", err)
			}
			for i := range ct {
				bad := bytes.Clone(ct)
				bad[i] ^= 0x80
				if _, err := k.Open(bad, nc); !errors.Is(err, ErrAuth) {
					t.Fatalf("byte %d changed: %v", i, err)
				}
			}
		}
	}
	a, _ := k.Seal(nil, "")
	b, _ := k.Seal(nil, "")
	if bytes.Equal(a, b) {
		t.Error("two messages have the same IV")
	}
	if _, err := k.Seal(nil, "short"); err == nil {
		t.Error("a nonce of five characters is sealed")
	}
}

// TestOpenInPlace: the result is a part of the message. A message sealed with another key is left unchanged.
func TestOpenInPlace(t *testing.T) {
	k, other, nonce := aesKey(t), aesKey(t), strings.Repeat("a", NonceLen)
	sealed, err := k.Seal([]byte("some value"), nonce)
	if err != nil {
		t.Fatal(err)
	}
	before := bytes.Clone(sealed)
	if _, err := other.OpenInPlace(sealed, nonce); !errors.Is(err, ErrAuth) || !bytes.Equal(before, sealed) {
		t.Errorf("another key: %v, changed %v", err, !bytes.Equal(before, sealed))
	}
	if got, err := k.Open(sealed, nonce); err != nil || string(got) != "some value" || !bytes.Equal(before, sealed) {
		t.Errorf("opened, not in place: %q, %v, changed %v", got, err, !bytes.Equal(before, sealed))
	}
	got, err := k.OpenInPlace(sealed, nonce)
	if err != nil || string(got) != "some value" || cap(got) > len(sealed) {
		t.Errorf("%q, %v", got, err)
	}
	clear(sealed)
	if string(got) != string(make([]byte, len(got))) {
		t.Errorf("the value is a copy: %q", got)
	}
	if _, err := k.OpenInPlace(sealed[:16], nonce); !errors.Is(err, ErrAuth) {
		t.Errorf("too short: %v", err)
	}
}

func TestParseKey(t *testing.T) {
	k, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{k.Text(), k.Text() + "\n", " " + k.Text()} {
		if got, err := ParseKey(text); err != nil || !got.Equal(k) {
			t.Errorf("%v", err)
		}
	}
	if len(k.Text()) != KeyTextLen {
		t.Errorf("%d characters", len(k.Text()))
	}
	for _, text := range []string{"", k.Text()[:72], k.Text() + "AAAA", strings.Repeat("!", 76), strings.Repeat("A", 76)} {
		if _, err := ParseKey(text); err == nil || strings.Contains(err.Error(), k.Text()[:8]) {
			t.Errorf("%d characters: %v", len(text), err)
		}
	}
	if k.Equal(nil) || (*Key)(nil).Equal(k) {
		t.Error("nil equals a key")
	}
}

func TestCleanKey(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "",
		" \t\r\n\x1f\u00a0":      "",
		"a\r\nb\rc\nd\n\n":       "a\nb\nc\nd",
		"a\n\nb":                 "a\n\nb",
		"a\x0bb\x0cc\x85d":       "a\nb\nc\x85d", // a lone byte 0x85 is not a character
		"a\u0085b\u2028c\u2029d": "a\nb\nc\nd",
		"a\x1cb\x1dc\x1ed":       "a\nb\nc\nd",
	} {
		if got := CleanKey(in); got != strings.ToValidUTF8(want, "\ufffd") && got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestFingerprintPEM(t *testing.T) {
	p := public(t, "master")
	want, err := p.Fingerprint("sha256")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"no final newline": p.Text(), "CRLF": strings.ReplaceAll(string(p.PEM()), "\n", "\r\n"),
		"empty lines": strings.ReplaceAll(p.Text(), "\n", "\n\n"),
	} {
		if got, err := FingerprintPEM([]byte(text), "sha256"); err != nil || got != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if _, err := p.Fingerprint("crc32"); err == nil {
		t.Error("crc32 is a hash_type")
	}
	for kind, n := range map[string]int{"md5": 16, "sha1": 20, "sha224": 28, "sha256": 32, "sha384": 48, "sha512": 64} {
		got, err := FingerprintPEM([]byte("not PEM"), kind)
		if err != nil || len(got) != 3*n-1 {
			t.Errorf("%s: %s, %v", kind, got, err)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	k := private(t, "minion")
	done := make(chan error, 8)
	for i := range cap(done) {
		go func() {
			msg := []byte{byte(i % 3)}
			sig, err := k.SignX931(msg)
			if err == nil {
				var got []byte
				if got, err = k.Public().RecoverX931(sig); err == nil && !bytes.Equal(got, msg) {
					err = errors.New("another message came back")
				}
			}
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
