package crypt

import (
	"bytes"
	"strings"
	"testing"

	"github.com/brine-salt/brine/protocol/internal/vectors"
)

// FuzzOpen: only messages that Seal made can be opened, and everything that is sealed can be opened again.
func FuzzOpen(f *testing.F) {
	var v struct {
		Roundtrip []struct {
			Nonce      string `json:"nonce"`
			Ciphertext []byte `json:"ciphertext"`
		} `json:"roundtrip"`
		Keys []string `json:"key_strings"`
	}
	vectors.Load(f, "common/crypticle.json", &v)
	for _, c := range v.Roundtrip {
		f.Add(c.Ciphertext, c.Nonce)
	}
	k, err := ParseKey(v.Keys[1])
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in []byte, nonce string) {
		if got, err := k.Open(in, nonce); err == nil {
			t.Fatalf("opened as %q", got) // the seeds are sealed with another key
		}
		if len(nonce) != NonceLen {
			nonce = ""
		}
		ct, err := k.Seal(in, nonce)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := k.Open(ct, nonce); err != nil || !bytes.Equal(got, in) {
			t.Fatalf("%q came back as %q, %v", in, got, err)
		}
		// Authentic but arbitrary content must not panic either.
		if len(in) >= 16 {
			_, _ = k.Open(forge2(k, in), nonce)
		}
	})
}

// forge2 adds a valid HMAC to arbitrary bytes.
func forge2(k *Key, body []byte) []byte {
	mac := newMAC(k)
	mac.Write(body)
	return mac.Sum(bytes.Clone(body))
}

// FuzzPEM: no text makes a parser panic, and a key that parses is the same after writing and parsing it.
func FuzzPEM(f *testing.F) {
	for _, k := range vectors.Keys(f) {
		f.Add([]byte(k.Private))
		f.Add([]byte(k.Public))
		f.Add([]byte(strings.ReplaceAll(k.Public, "\n", "\r\n")))
	}
	f.Add([]byte("-----BEGIN RSA PUBLIC KEY-----\nMAA=\n-----END RSA PUBLIC KEY-----"))
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\nA: b\n\nMAA=\n-----END PRIVATE KEY-----"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := ParsePublicKey(text); err == nil {
			if p.Bits() < MinBits {
				t.Fatalf("key of %d bits accepted", p.Bits())
			}
			again, err := ParsePublicKey([]byte(p.Text()))
			if err != nil || !again.Equal(p) || again.Text() != p.Text() {
				t.Fatalf("public key does not come back: %v", err)
			}
		}
		if k, err := ParsePrivateKey(text); err == nil {
			again, err := ParsePrivateKey(k.PEM())
			if err != nil || !again.Public().Equal(k.Public()) {
				t.Fatalf("private key does not come back: %v", err)
			}
		}
		_, _ = FingerprintPEM(text, "sha256")
		if c := CleanKey(string(text)); CleanKey(c) != c {
			t.Fatalf("cleaning %q twice is not cleaning it once", text)
		}
	})
}

// FuzzRecoverX931: RecoverX931 succeeds only for a signature by this key.
func FuzzRecoverX931(f *testing.F) {
	p := public(f, "minion")
	var v rsaVectors
	vectors.Load(f, "3007/rsa.json", &v)
	for _, c := range v.X931 {
		f.Add(c.Signature)
	}
	f.Fuzz(func(t *testing.T, sig []byte) {
		if got, err := p.RecoverX931(sig); err == nil && string(got) == "salt" {
			t.Fatal("forged")
		}
	})
}
