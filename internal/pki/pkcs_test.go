package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/hex"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// issue creates a certificate that is valid until 2128.
func issue(t *testing.T, cn string, ca *Bundle) *Bundle {
	t.Helper()
	key, err := NewKey(t.Context(), "ec", 256)
	if err != nil {
		t.Fatal(err)
	}
	name, err := Name("CN=" + cn)
	if err != nil {
		t.Fatal(err)
	}
	c := Certificate{Serial: big.NewInt(7), Subject: name, Issuer: name, NotBefore: time.Unix(1e9, 0), NotAfter: time.Unix(5e9, 0), PublicKey: key.Public()}
	by := key
	if ca != nil {
		c.Issuer, by = ca.Cert.RawSubject, ca.Key
	}
	if c.Extensions, err = Build(map[string]any{"basicConstraints": "critical, CA:TRUE"}, "c", Issuer{Public: key.Public()}); err != nil {
		t.Fatal(err)
	}
	raw, err := c.Sign(by, "sha256")
	if err != nil {
		t.Fatal(err)
	}
	cert, err := Cert(raw)
	if err != nil {
		t.Fatal(err)
	}
	return &Bundle{Key: key, Cert: cert}
}

func TestPKCS12(t *testing.T) {
	root := issue(t, "root", nil)
	b := issue(t, "leaf", root)
	b.Chain, b.Name = []*x509.Certificate{root.Cert}, "nämë 𝄞"
	for _, tc := range []struct {
		name       string
		passphrase []byte
		compat     bool
	}{{"plain", nil, false}, {"today", []byte("geheim ü"), false}, {"old", []byte("geheim ü"), true}} {
		t.Run(tc.name, func(t *testing.T) {
			raw, err := b.PKCS12(tc.passphrase, tc.compat)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ParsePKCS12(raw, tc.passphrase)
			if err != nil {
				t.Fatal(err)
			}
			if !SamePublic(got.Key.Public(), b.Key.Public()) || !got.Cert.Equal(b.Cert) || len(got.Chain) != 1 || !got.Chain[0].Equal(root.Cert) || got.Name != b.Name {
				t.Errorf("got %+v", got)
			}
			if _, err := ParsePKCS12(raw, []byte("wrong")); err != errPassword {
				t.Errorf("with the wrong passphrase: %v", err)
			}
			loaded, err := LoadCert(raw, tc.passphrase)
			if err != nil || loaded.Encoding != "pkcs12" || !loaded.Cert.Equal(b.Cert) {
				t.Errorf("loaded %+v, %v", loaded, err)
			}
			if key, err := PrivateKey(raw, tc.passphrase); err != nil || !SamePublic(key.Public(), b.Key.Public()) {
				t.Errorf("the key: %v", err)
			}
			for n := range len(raw) { // truncated input must not cause a panic
				_, _ = ParsePKCS12(raw[:n], tc.passphrase)
			}
		})
	}
	if _, err := b.PKCS12([]byte{}, false); err == nil {
		t.Error("an empty passphrase is taken")
	}
}

// TestPKCS12IsBounded: the number of parts is limited, and only the first key is decrypted, since each can be costly.
func TestPKCS12IsBounded(t *testing.T) {
	bundle := func(safes int, bags ...[]byte) []byte {
		one := content(oidData, der(tagOctets, der(tagSequence, bags...)))
		return der(tagSequence, der(tagInt, []byte{3}), content(oidData, der(tagOctets, der(tagSequence, bytes.Repeat(one, safes)))))
	}
	if _, err := ParsePKCS12(bundle(maxSafes), nil); err != nil {
		t.Error(err)
	}
	if _, err := ParsePKCS12(bundle(maxSafes+1), nil); err != errNotPKCS12 {
		t.Errorf("too many parts: %v", err)
	}
	key, err := NewKey(t.Context(), "ec", 256)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParsePKCS12(bundle(1, content(oidKeyBag, plain), content(oidShroudedBag, []byte("no such thing"))), nil)
	if err != nil || !SamePublic(got.Key.Public(), key.Public()) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestPKCS12OfOpenSSL: OpenSSL can read our bundles, and we can read its bundles, including those with old ciphers.
func TestPKCS12OfOpenSSL(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no openssl")
	}
	dir := t.TempDir()
	b := issue(t, "leaf", nil)
	key, kind, err := EncodeKey(b.Key, nil)
	if err != nil {
		t.Fatal(err)
	}
	pem := filepath.Join(dir, "both.pem")
	if err := os.WriteFile(pem, append(PEM(kind, key), PEM("CERTIFICATE", b.Cert.Raw)...), 0o600); err != nil {
		t.Fatal(err)
	}
	openssl := func(args ...string) []byte {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "openssl", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("openssl %q: %s", args, out)
		}
		return out
	}
	for name, flags := range map[string][]string{
		"today": nil, "3des": {"-legacy", "-certpbe", "PBE-SHA1-3DES"}, "rc2-40": {"-legacy"}, "rc2-128": {"-legacy", "-certpbe", "PBE-SHA1-RC2-128"}, "no mac": {"-nomac"},
		"sha512": {"-macalg", "sha512"},
	} {
		file := filepath.Join(dir, name)
		openssl(append([]string{"pkcs12", "-export", "-in", pem, "-out", file, "-passout", "pass:secret", "-name", "a name"}, flags...)...)
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParsePKCS12(raw, []byte("secret"))
		if err != nil || !SamePublic(got.Key.Public(), b.Key.Public()) || got.Cert == nil || !got.Cert.Equal(b.Cert) || got.Name != "a name" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for _, compat := range []bool{false, true} {
		raw, err := b.PKCS12([]byte("secret"), compat)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "ours")
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"pkcs12", "-in", file, "-passin", "pass:secret", "-nodes"}
		if compat {
			args = append(args, "-legacy")
		}
		if out := openssl(args...); !bytes.Contains(out, PEM(kind, key)) || !bytes.Contains(out, PEM("CERTIFICATE", b.Cert.Raw)) {
			t.Errorf("OpenSSL reads %s", out)
		}
	}
}

func TestPKCS7(t *testing.T) {
	root := issue(t, "root", nil)
	mid := issue(t, "mid", root)
	leaf := issue(t, "leaf", mid)
	raw := PKCS7([][]byte{mid.Cert.Raw, leaf.Cert.Raw, root.Cert.Raw})
	for _, b := range [][]byte{raw, PEM("PKCS7", raw)} {
		got, err := LoadCert(b, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Cert.Equal(leaf.Cert) || len(got.Chain) != 2 || !got.Chain[0].Equal(mid.Cert) || !got.Chain[1].Equal(root.Cert) {
			t.Errorf("got %s with a chain of %d", got.Cert.Subject, len(got.Chain))
		}
	}
	for n := range len(raw) {
		_, _ = LoadCert(raw[:n], nil)
	}
	if _, err := LoadCert(PEM("PKCS7", raw[:20]), nil); err == nil {
		t.Error("half of it is taken")
	}
}

// TestRC2 uses those vectors of RFC 2268 whose effective key length is the length of the key.
func TestRC2(t *testing.T) {
	for _, v := range []struct{ key, text, secret string }{
		{"ffffffffffffffff", "ffffffffffffffff", "278b27e42e2f0d49"},
		{"3000000000000000", "1000000000000001", "30649edf9be7d2c2"},
		{"88bca90e90875a7f0f79c384627bafb2", "0000000000000000", "2269552ab0f85ca6"},
	} {
		key, err1 := hex.DecodeString(v.key)
		b, err2 := hex.DecodeString(v.secret)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		newRC2(key).Decrypt(b, b)
		if diff := cmp.Diff(v.text, hex.EncodeToString(b)); diff != "" {
			t.Errorf("%s: %s", v.key, diff)
		}
	}
}
