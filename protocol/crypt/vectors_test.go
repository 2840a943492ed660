package crypt

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/protocol/internal/vectors"
	"github.com/brine-salt/brine/protocol/payload"
)

func private(t testing.TB, name string) *PrivateKey {
	t.Helper()
	k, err := ParsePrivateKey([]byte(vectors.Keys(t)[name].Private))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func public(t testing.TB, name string) *PublicKey {
	t.Helper()
	k, err := ParsePublicKey([]byte(vectors.Keys(t)[name].Public))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

type rsaVectors struct {
	Key  string `json:"key"`
	Sign []struct {
		Algorithm string `json:"algorithm"`
		Name      string `json:"name"`
		Message   []byte `json:"message"`
		Signature []byte `json:"signature"`
	} `json:"sign"`
	OAEP []struct {
		Algorithm  string `json:"algorithm"`
		Name       string `json:"name"`
		Plaintext  []byte `json:"plaintext"`
		Ciphertext []byte `json:"ciphertext"`
	} `json:"oaep"`
	X931 []struct {
		Name      string `json:"name"`
		Message   []byte `json:"message"`
		Signature []byte `json:"signature"`
	} `json:"x931"`
	Bad []struct {
		Algorithm string `json:"algorithm"`
	} `json:"bad_algorithms"`
	Fingerprint map[string]string `json:"fingerprint"`
	Clean       []struct {
		Input  []byte `json:"input"`
		Output []byte `json:"output"`
	} `json:"clean_key"`
}

func TestVectorsRSA(t *testing.T) {
	for _, line := range vectors.Lines {
		t.Run(line, func(t *testing.T) {
			var v rsaVectors
			vectors.Load(t, line+"/rsa.json", &v)
			k, p := private(t, v.Key), public(t, v.Key)
			if !k.Public().Equal(p) || k.Public().Text() != p.Text() {
				t.Error("public half differs from the public file")
			}
			if len(v.Sign) < 6 || len(v.OAEP) < 4 || len(v.X931) < 4 || len(v.Bad) < 4 || len(v.Clean) < 4 {
				t.Fatal("vectors are missing")
			}
			v.signatures(t, k, p)
			for _, c := range v.OAEP {
				got, err := k.Decrypt(c.Algorithm, c.Ciphertext)
				if err != nil || !bytes.Equal(got, c.Plaintext) {
					t.Errorf("OAEP %s %s: %q, %v", c.Algorithm, c.Name, got, err)
				}
				own, err := p.Encrypt(c.Algorithm, c.Plaintext)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := k.Decrypt(c.Algorithm, own); err != nil || !bytes.Equal(got, c.Plaintext) {
					t.Errorf("OAEP %s %s: own ciphertext: %q, %v", c.Algorithm, c.Name, got, err)
				}
			}
			for _, c := range v.Bad {
				_, signErr := k.Sign(c.Algorithm, nil)
				_, encErr := p.Encrypt(c.Algorithm, nil)
				_, decErr := k.Decrypt(c.Algorithm, nil)
				for _, err := range []error{signErr, encErr, decErr, p.Verify(c.Algorithm, nil, nil)} {
					if !errors.Is(err, ErrAlgorithm) {
						t.Errorf("algorithm %q: %v", c.Algorithm, err)
					}
				}
			}
			for kind, want := range v.Fingerprint {
				if got, err := p.Fingerprint(kind); err != nil || got != want {
					t.Errorf("fingerprint %s: %s, %v, Salt: %s", kind, got, err, want)
				}
			}
			for i, c := range v.Clean {
				if got := CleanKey(string(c.Input)); got != string(c.Output) {
					t.Errorf("clean_key %d: %q", i, got)
				}
			}
		})
	}
}

func (v rsaVectors) signatures(t *testing.T, k *PrivateKey, p *PublicKey) {
	t.Helper()
	for _, c := range v.Sign {
		got, err := k.Sign(c.Algorithm, c.Message)
		if err != nil || !bytes.Equal(got, c.Signature) {
			t.Errorf("sign %s %s: %v", c.Algorithm, c.Name, err)
		}
		if err := p.Verify(c.Algorithm, c.Message, c.Signature); err != nil {
			t.Errorf("verify %s %s: %v", c.Algorithm, c.Name, err)
		}
		if err := p.Verify(c.Algorithm, append(c.Message, '!'), c.Signature); !errors.Is(err, ErrSignature) {
			t.Errorf("verify %s %s of another message: %v", c.Algorithm, c.Name, err)
		}
	}
	for _, c := range v.X931 {
		for range 2 { // computed, then cached
			got, err := k.SignX931(c.Message)
			if err != nil || !bytes.Equal(got, c.Signature) {
				t.Errorf("X9.31 %s: %v", c.Name, err)
			}
		}
		if got, err := p.RecoverX931(c.Signature); err != nil || !bytes.Equal(got, c.Message) {
			t.Errorf("X9.31 recover %s: %q, %v", c.Name, got, err)
		}
	}
}

func TestVectorsCrypticle(t *testing.T) {
	var v struct {
		Roundtrip []struct {
			Name       string        `json:"name"`
			Key        string        `json:"key_string"`
			Nonce      string        `json:"nonce"`
			IV         []byte        `json:"iv"`
			Msgpack    []byte        `json:"msgpack"`
			Ciphertext []byte        `json:"ciphertext"`
			Decoded    vectors.Value `json:"decoded"`
			Raw        vectors.Value `json:"decoded_raw"`
		} `json:"roundtrip"`
		Errors []struct {
			Name       string `json:"name"`
			Key        string `json:"key_string"`
			Ciphertext []byte `json:"ciphertext"`
			Nonce      string `json:"nonce"`
		} `json:"errors"`
	}
	vectors.Load(t, "common/crypticle.json", &v)
	if len(v.Roundtrip) < 18 || len(v.Errors) < 11 {
		t.Fatal("vectors are missing")
	}
	for _, c := range v.Roundtrip {
		t.Run(c.Name+" "+c.Nonce, func(t *testing.T) {
			k, err := ParseKey(c.Key)
			if err != nil {
				t.Fatal(err)
			}
			got, err := k.sealWith(c.Msgpack, c.Nonce, [16]byte(c.IV))
			if err != nil || !bytes.Equal(got, c.Ciphertext) {
				t.Errorf("sealed otherwise than Salt: %v", err)
			}
			plain, err := k.Open(c.Ciphertext, c.Nonce)
			if err != nil || !bytes.Equal(plain, c.Msgpack) {
				t.Fatalf("opened %q, %v", plain, err)
			}
			decoded, err := payload.Unmarshal(plain)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.Decoded.Go(t), decoded); d != "" {
				t.Error(d)
			}
			raw, err := payload.UnmarshalRaw(plain, payload.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.Raw.Go(t), raw); d != "" {
				t.Error(d)
			}
		})
	}
	want := map[string]error{
		"flipped first byte": ErrAuth, "flipped hmac": ErrAuth, "truncated": ErrAuth,
		"the plain words bad load": ErrAuth, "empty": ErrAuth, "no pickle prefix": ErrFormat,
		"other nonce": ErrNonce, "nonce wanted but absent": ErrNonce,
		// The sealed value contains the serial; see protocol.Serials.
		"serial above last": nil, "serial equal to last": nil, "serial below last": nil,
	}
	for _, c := range v.Errors {
		k, err := ParseKey(c.Key)
		if err != nil {
			t.Fatal(err)
		}
		wanted, known := want[c.Name]
		if !known {
			t.Errorf("vector %q has no expectation", c.Name)
		}
		if _, err := k.Open(c.Ciphertext, c.Nonce); !errors.Is(err, wanted) {
			t.Errorf("%s: %v, want %v", c.Name, err, wanted)
		}
	}
}

// TestVectorsTLSOptimisation: a message that is marked as not encrypted is never opened, with or without an HMAC.
func TestVectorsTLSOptimisation(t *testing.T) {
	var v struct {
		Marked []byte `json:"marked_message"`
		AES    []byte `json:"dumps_without_peer_certificate_is_aes"`
	}
	vectors.Load(t, "3008/tls_optimisation.json", &v)
	var c struct {
		Keys []string `json:"key_strings"`
	}
	vectors.Load(t, "common/crypticle.json", &c)
	k, err := ParseKey(c.Keys[0])
	if err != nil {
		t.Fatal(err)
	}
	if got, err := k.Open(v.Marked, ""); !errors.Is(err, ErrAuth) {
		t.Errorf("marked message opened as %q, %v", got, err)
	}
	if got, err := k.Open(v.AES, ""); err != nil || string(got) != "\x81\xa1a\x01" {
		t.Errorf("sealed message opened as %q, %v", got, err)
	}
}
