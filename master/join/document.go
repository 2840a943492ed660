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

// Document accepts minions by a document about their machine that the provider has signed. A minion without a
// document, or with one of another kind, is left to other acceptors; one with a bad document is refused.
type Document struct {
	// Name appears in the log and in events.
	Name string
	// Open verifies a document and returns its claims; see EC2 and JWT. ok is false for a document of another kind.
	Open func(ctx context.Context, doc []byte, a master.Applicant) (claims map[string]any, ok bool, err error)
	// Claim, a path with dots, is the claim that must equal the minion's id.
	Claim string
	// Check, if set, checks further conditions: the account, the region, …
	Check func(claims map[string]any, a master.Applicant) error
	// Issued is the claim with the time of the document (seconds or RFC 3339 text), and MaxAge how old it may be; 0
	// does not check. It limits the use of a stolen document.
	Issued string
	MaxAge time.Duration
	// Grain names an autosign grain in which minions may send the document, as stock ones must. Grains travel
	// unencrypted: anything that records one can use it for the same id, as long as that has no accepted key.
	Grain string
	// Now returns the time; nil means time.Now.
	Now func() time.Time
}

// Acceptor returns the acceptor.
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
			return rejectWith(err.Error()), nil
		}
		return acceptWith("its provider vouches for it"), nil
	}}
}

func (d Document) check(claims map[string]any, a master.Applicant) error {
	if id, ok := claimAt(claims, d.Claim).(string); !ok || id != a.ID {
		return errors.New("the document belongs to another machine")
	}
	if d.MaxAge > 0 {
		made, err := parseMoment(claimAt(claims, d.Issued))
		if err != nil {
			return errors.New("the document does not contain its time of creation")
		}
		if age := timeOf(d.Now).Sub(made); age > d.MaxAge || age < -time.Minute {
			return errors.New("the document is too old")
		}
	}
	if d.Check == nil {
		return nil
	}
	return d.Check(claims, a)
}

// claimAt follows a path with dots.
func claimAt(claims map[string]any, path string) any {
	var v any = claims
	for key := range strings.SplitSeq(path, ".") {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

func parseMoment(v any) (time.Time, error) {
	switch x := v.(type) {
	case json.Number:
		n, err := x.Float64()
		return time.Unix(int64(n), 0), err
	case string:
		return time.Parse(time.RFC3339, x)
	}
	return time.Time{}, errors.New("it is neither a number nor a text")
}

// decodeObject reads a JSON object and keeps numbers as they are written.
func decodeObject(b []byte) (map[string]any, error) {
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

// EC2 verifies Amazon's instance identity documents, {"document": "<the document>", "signature": "<its signature in
// base64>"}, as found under dynamic/instance-identity of the metadata service. certs are the provider's, by region.
// Claim is then "instanceId", and Issued "pendingTime".
func EC2(certs ...*x509.Certificate) func(context.Context, []byte, master.Applicant) (map[string]any, bool, error) {
	return func(_ context.Context, doc []byte, _ master.Applicant) (map[string]any, bool, error) {
		outer, err := decodeObject(doc)
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
		claims, err := decodeObject([]byte(text))
		return claims, true, err
	}
}

// JWT verifies signed tokens, as Google's and Azure's metadata services and many identity providers issue them:
// RS256, ES256 and EdDSA.
type JWT struct {
	// Key returns the provider's key with an id.
	Key func(ctx context.Context, kid string) (crypto.PublicKey, error)
	// Issuer and Audience must equal those of the token. With BoundToKey the audience ends in "/" and the KeyHash
	// of the minion's key, so that the token is valid for no other key.
	Issuer, Audience string
	BoundToKey       bool
	// Now returns the time; nil means time.Now.
	Now func() time.Time
}

// KeyHash is what a token that is issued for one key contains of it: the SHA-256 of the key's PEM text without
// white space around it, in hex. It is not the key's fingerprint; see Fingerprint.
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
	head, err := decodeObject(raw[0])
	if err != nil {
		return nil, false, nil
	}
	alg, _ := head["alg"].(string)
	kid, _ := head["kid"].(string)
	key, err := j.Key(ctx, kid)
	if err != nil {
		return nil, true, fmt.Errorf("the provider's key cannot be found: %w", err)
	}
	if !verifySignature(alg, key, []byte(parts[0]+"."+parts[1]), raw[2]) {
		return nil, true, errors.New("the token is not signed by the provider")
	}
	claims, err := decodeObject(raw[1])
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
		return errors.New("the token has another audience")
	}
	at := timeOf(j.Now)
	if expires, err := parseMoment(claims["exp"]); err != nil || !at.Before(expires) {
		return errors.New("the token has expired")
	}
	if v, has := claims["nbf"]; has {
		if from, err := parseMoment(v); err != nil || at.Add(time.Minute).Before(from) {
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

// verifySignature checks a signature with the algorithm that fits the key. The token's own alg must match it,
// because an attacker could otherwise choose a weaker one.
func verifySignature(alg string, key crypto.PublicKey, text, sig []byte) bool {
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
