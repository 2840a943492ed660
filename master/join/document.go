package join

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol/crypt"
)

// Document accepts minions by what the provider of their machine has signed about it. A minion without a document, or with one of another
// kind, is left to others; one with a bad document is refused.
type Document struct {
	// Name stands in the log and in events.
	Name string
	// Open verifies a document and gives what it says; see EC2 and JWT. ok is false for a document of another kind.
	Open func(ctx context.Context, doc []byte, a master.Applicant) (claims map[string]any, ok bool, err error)
	// Claim, a path with dots, is where the document says what must be the minion's id.
	Claim string
	// Check, when set, has more conditions: the account, the region, …
	Check func(claims map[string]any, a master.Applicant) error
	// Issued is the claim that says when the document was made (seconds or RFC 3339 text), and MaxAge how old it may be; 0 does not look. It
	// bounds the use of a document that was stolen.
	Issued string
	MaxAge time.Duration
	// Grain names an autosign grain in which minions may send the document, as stock ones must. Grains travel in clear: whoever records
	// one can use it for the same id, as long as that has no accepted key.
	Grain string
	// Now is the time; nil means time.Now.
	Now func() time.Time
}

// Acceptor makes it one.
func (d Document) Acceptor() master.Acceptor {
	return master.Acceptor{Name: d.Name, Judge: func(ctx context.Context, a master.Applicant) (master.Verdict, error) {
		doc := a.Document
		if text, ok := a.AutosignGrains[d.Grain].(string); ok && len(doc) == 0 && d.Grain != "" {
			doc = []byte(text)
		}
		if len(doc) == 0 {
			return master.Verdict{}, nil
		}
		claims, ok, err := d.Open(ctx, doc, a)
		if !ok {
			return master.Verdict{}, err
		}
		if err == nil {
			err = d.check(claims, a)
		}
		if err != nil {
			return reject(err.Error()), nil
		}
		return accept("its provider vouches for it"), nil
	}}
}

func (d Document) check(claims map[string]any, a master.Applicant) error {
	if id, ok := claim(claims, d.Claim).(string); !ok || id != a.ID {
		return errors.New("the document is another machine's")
	}
	if d.MaxAge > 0 {
		made, err := moment(claim(claims, d.Issued))
		if err != nil {
			return errors.New("the document does not say when it was made")
		}
		if age := now(d.Now).Sub(made); age > d.MaxAge || age < -time.Minute {
			return errors.New("the document is too old")
		}
	}
	if d.Check == nil {
		return nil
	}
	return d.Check(claims, a)
}

// claim follows a path with dots.
func claim(claims map[string]any, path string) any {
	var v any = claims
	for key := range strings.SplitSeq(path, ".") {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

func moment(v any) (time.Time, error) {
	switch x := v.(type) {
	case json.Number:
		n, err := x.Float64()
		return time.Unix(int64(n), 0), err
	case string:
		return time.Parse(time.RFC3339, x)
	}
	return time.Time{}, errors.New("no time")
}

// decode reads a JSON object, numbers as they are written.
func decode(b []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		return nil, err
	}
	if d.More() || out == nil {
		return nil, errors.New("it is not one object")
	}
	return out, nil
}

// EC2 opens Amazon's instance identity documents, {"document": "<the document>", "signature": "<its signature in base64>"}, as they are
// under dynamic/instance-identity of the metadata service. certs are the provider's, by region. Claim is "instanceId" then, and Issued
// "pendingTime".
func EC2(certs ...*x509.Certificate) func(context.Context, []byte, master.Applicant) (map[string]any, bool, error) {
	return func(_ context.Context, doc []byte, _ master.Applicant) (map[string]any, bool, error) {
		outer, err := decode(doc)
		text, isText := outer["document"].(string)
		signature, signed := outer["signature"].(string)
		if err != nil || !isText || !signed {
			return nil, false, nil
		}
		sig, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(signature), ""))
		if err != nil {
			return nil, true, errors.New("the signature of the document cannot be read")
		}
		if !slices.ContainsFunc(certs, func(c *x509.Certificate) bool { return c.CheckSignature(x509.SHA256WithRSA, []byte(text), sig) == nil }) {
			return nil, true, errors.New("the document is not signed by the provider")
		}
		claims, err := decode([]byte(text))
		return claims, true, err
	}
}

// JWT opens signed tokens, as Google's and Azure's metadata services and many identity providers make them: RS256, ES256 and EdDSA.
type JWT struct {
	// Key gives the provider's key with an id.
	Key func(ctx context.Context, kid string) (crypto.PublicKey, error)
	// Issuer and Audience must be those of the token. With BoundToKey the audience has "/" and the KeyHash of the minion's key behind it, so
	// that the token is good for no other key.
	Issuer, Audience string
	BoundToKey       bool
	// Now is the time; nil means time.Now.
	Now func() time.Time
}

// KeyHash is what a token that is made for one key has of it: the SHA-256 of the key's PEM text without white space around it, in
// hexadecimal digits. It is not the key's fingerprint, see Fingerprint.
func KeyHash(pubText string) string {
	sum := sha256.Sum256([]byte(crypt.CleanKey(pubText)))
	return hex.EncodeToString(sum[:])
}

// Open is for Document.Open.
func (j JWT) Open(ctx context.Context, doc []byte, a master.Applicant) (map[string]any, bool, error) {
	parts := strings.Split(strings.TrimSpace(string(doc)), ".")
	if len(parts) != 3 {
		return nil, false, nil
	}
	var raw [3][]byte
	for i, p := range parts {
		b, err := base64.RawURLEncoding.DecodeString(p)
		if err != nil {
			return nil, false, nil
		}
		raw[i] = b
	}
	head, err := decode(raw[0])
	if err != nil {
		return nil, false, nil
	}
	alg, _ := head["alg"].(string)
	kid, _ := head["kid"].(string)
	key, err := j.Key(ctx, kid)
	if err != nil {
		return nil, true, fmt.Errorf("the provider's key cannot be found: %w", err)
	}
	if !verify(alg, key, []byte(parts[0]+"."+parts[1]), raw[2]) {
		return nil, true, errors.New("the token is not signed by the provider")
	}
	claims, err := decode(raw[1])
	if err != nil {
		return nil, true, errors.New("the token cannot be read")
	}
	return claims, true, j.check(claims, a)
}

func (j JWT) check(claims map[string]any, a master.Applicant) error {
	if iss, _ := claims["iss"].(string); iss != j.Issuer || iss == "" {
		return errors.New("the token has another issuer")
	}
	want := j.Audience
	if j.BoundToKey {
		want += "/" + KeyHash(a.PubText)
	}
	if want == "" || !forAudience(claims["aud"], want) {
		return errors.New("the token is for somebody else")
	}
	at := now(j.Now)
	if expires, err := moment(claims["exp"]); err != nil || !at.Before(expires) {
		return errors.New("the token has expired")
	}
	if v, has := claims["nbf"]; has {
		if from, err := moment(v); err != nil || at.Add(time.Minute).Before(from) {
			return errors.New("the token is not valid yet")
		}
	}
	return nil
}

func forAudience(aud any, want string) bool {
	if list, ok := aud.([]any); ok {
		return slices.Contains(list, any(want))
	}
	return aud == want
}

// verify checks a signature by an algorithm that fits the key; what a token names cannot choose another one.
func verify(alg string, key crypto.PublicKey, text, sig []byte) bool {
	sum := sha256.Sum256(text)
	switch k := key.(type) {
	case *rsa.PublicKey:
		return alg == "RS256" && k.N.BitLen() >= 2048 && rsa.VerifyPKCS1v15(k, crypto.SHA256, sum[:], sig) == nil
	case *ecdsa.PublicKey:
		return alg == "ES256" && len(sig) == 64 && ecdsa.Verify(k, sum[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:]))
	case ed25519.PublicKey:
		return alg == "EdDSA" && ed25519.Verify(k, text, sig)
	}
	return false
}
