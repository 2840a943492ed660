package join

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"testing"
	"time"

	"github.com/brine-salt/brine/master"
)

// FuzzDocuments: a sign-in may send any bytes as its proof. A document that the provider did not sign is refused; a
// signed one counts only for the machine and the time that it states.
func FuzzDocuments(f *testing.F) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		f.Fatal(err)
	}
	now := time.Unix(1_700_000_000, 0)
	rule := JWT{Issuer: "https://cloud", Audience: "salt", Now: func() time.Time { return now },
		Key: func(context.Context, string) (crypto.PublicKey, error) { return public, nil }}
	amazon := EC2()
	f.Add([]byte(`{"alg": "EdDSA", "kid": "a"}`), []byte(`{"iss": "https://cloud", "aud": ["salt"], "exp": 1700000100, "nbf": 1}`), []byte("x"))
	f.Add([]byte(`{"alg": "none"}`), []byte(`{"iss": "https://cloud", "aud": "salt", "exp": "2030-01-01T00:00:00Z"}`), []byte{})
	f.Add([]byte(`{"document": "{\"instanceId\": \"i-1\"}", "signature": "eA=="}`), []byte(`{"exp": 1e400}`), bytes.Repeat([]byte{0}, 64))
	f.Fuzz(func(t *testing.T, head, claims, sig []byte) {
		open := func(doc string) (map[string]any, bool) {
			got, taken, err := rule.Open(t.Context(), []byte(doc), master.Applicant{ID: "web1"})
			return got, taken && err == nil
		}
		encode := base64.RawURLEncoding.EncodeToString
		text := encode(head) + "." + encode(claims)
		if got, ok := open(text + "." + encode(sig)); ok {
			t.Fatalf("nobody signed %v", got)
		}
		for _, doc := range [][]byte{head, claims, []byte(text), sig} {
			if got, ok := open(string(doc)); ok {
				t.Fatalf("nobody signed %v", got)
			}
			if got, taken, err := amazon(t.Context(), doc, master.Applicant{ID: "web1"}); taken && err == nil {
				t.Fatalf("Amazon did not sign %v", got)
			}
		}
		if got, ok := open(text + "." + encode(ed25519.Sign(private, []byte(text)))); ok {
			expires, err := parseMoment(got["exp"])
			if err != nil || !now.Before(expires) || got["iss"] != rule.Issuer || !forAudience(got["aud"], "salt") {
				t.Fatalf("%v was let in", got)
			}
		}
	})
}
