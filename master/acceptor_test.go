package master_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/join"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/events"
)

// An authority is a certificate authority for the tests.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func newAuthority(t *testing.T, key crypto.Signer) authority {
	t.Helper()
	tpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	return authority{cert: certificate(t, tpl, tpl, key.Public(), key), key: key}
}

func certificate(t *testing.T, tpl, parent *x509.Certificate, pub crypto.PublicKey, key crypto.Signer) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, tpl, parent, pub, key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// proof returns a join proof for minion m: a client certificate for key, signed by the authority. change may alter
// the certificate before it is signed.
func (a authority) proof(t *testing.T, key crypto.Signer, change func(*x509.Certificate)) protocol.JoinProof {
	t.Helper()
	tpl := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "m"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if change != nil {
		change(tpl)
	}
	return protocol.JoinProof{Certificates: []*x509.Certificate{certificate(t, tpl, a.cert, key.Public(), a.key)}, Signer: key}
}

func ecKey(t *testing.T) crypto.Signer {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func edKey(t *testing.T) crypto.Signer {
	t.Helper()
	_, k, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func rsaKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestAcceptX509 checks that a certificate accepts the minion that it names, and no other minion.
func TestAcceptX509(t *testing.T) {
	ca, other := newAuthority(t, ecKey(t)), newAuthority(t, ecKey(t))
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	revoked := big.NewInt(66)
	rule := join.X509{Roots: roots, Revoked: func(_ context.Context, c *x509.Certificate) (bool, error) {
		return c.SerialNumber.Cmp(revoked) == 0, nil
	}}
	good := ca.proof(t, ecKey(t), nil)
	stolen := good
	stolen.Signer = ecKey(t)
	for name, c := range map[string]struct {
		id    string
		proof protocol.JoinProof
		want  protocol.SigninStatus
	}{
		"good":            {"m", good, protocol.Accepted},
		"rsa":             {"m", ca.proof(t, rsaKey(t), nil), protocol.Accepted},
		"ed25519":         {"m", ca.proof(t, edKey(t), nil), protocol.Accepted},
		"DNS name":        {"web", ca.proof(t, ecKey(t), func(c *x509.Certificate) { c.DNSNames = []string{"web"} }), protocol.Accepted},
		"none":            {"m", protocol.JoinProof{}, protocol.Pending},
		"another's":       {"n", good, protocol.Rejected},
		"without its key": {"m", stolen, protocol.Pending},
		"another CA":      {"m", other.proof(t, ecKey(t), nil), protocol.Rejected},
		"expired":         {"m", ca.proof(t, ecKey(t), func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), protocol.Rejected},
		"for servers":     {"m", ca.proof(t, ecKey(t), func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), protocol.Rejected},
		"revoked":         {"m", ca.proof(t, ecKey(t), func(c *x509.Certificate) { c.SerialNumber = revoked }), protocol.Rejected},
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t, master.Options{Keys: master.KeyOptions{Acceptors: []master.Acceptor{rule.Acceptor()}}})
			// Another key signs in first under this id, without a proof, and stays pending.
			if first := r.newMinion(c.id, 2).signIn(); first != protocol.Pending {
				t.Fatal(first)
			}
			m := r.newMinion(c.id, 1)
			if c.want == protocol.Pending {
				if err := r.Keys().Delete(c.id); err != nil {
					t.Fatal(err)
				}
			}
			if got := m.signInWith(protocol.Signin{Proof: c.proof}); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if st := r.Keys().State(c.id); (st == keys.Accepted) != (c.want == protocol.Accepted) {
				t.Error("stored as", st)
			}
		})
	}
}

// jwt returns a token with the claims, signed with key.
func jwt(t *testing.T, key *rsa.PrivateKey, claims map[string]any) []byte {
	t.Helper()
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	text := part(map[string]any{"alg": "RS256", "kid": "k"}) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return []byte(text + "." + base64.RawURLEncoding.EncodeToString(sig))
}

// TestAcceptDocument checks that a document signed by the provider accepts the machine that it names, until the
// document expires, and that the document cannot be read on the wire.
func TestAcceptDocument(t *testing.T) {
	provider, forger := rsaKey(t), rsaKey(t)
	rule := join.JWT{Issuer: "https://cloud", Audience: "salt", BoundToKey: true, Key: func(_ context.Context, kid string) (crypto.PublicKey, error) {
		if kid != "k" {
			return nil, errors.New("unknown")
		}
		return provider.Public(), nil
	}}
	amazon := newAuthority(t, provider)
	ec2 := func(id string, made time.Time, key *rsa.PrivateKey) []byte {
		doc, _ := json.Marshal(map[string]any{"instanceId": id, "region": "x", "pendingTime": made.UTC().Format(time.RFC3339)})
		sum := sha256.Sum256(doc)
		sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		b, _ := json.Marshal(map[string]any{"document": string(doc), "signature": base64.StdEncoding.EncodeToString(sig)})
		return b
	}
	o := master.Options{Keys: master.KeyOptions{Acceptors: []master.Acceptor{
		join.Document{Name: "jwt", Open: rule.Open, Claim: "vm.name"}.Acceptor(),
		join.Document{Name: "ec2", Open: join.EC2(amazon.cert), Claim: "instanceId", Issued: "pendingTime", MaxAge: time.Hour, Grain: "identity"}.Acceptor(),
	}}}
	claims := func(change func(map[string]any)) map[string]any {
		c := map[string]any{"iss": "https://cloud", "aud": "salt/" + join.KeyHash(testKey(t, 1).Public().Text()),
			"exp": time.Now().Add(time.Hour).Unix(), "vm": map[string]any{"name": "m"}}
		if change != nil {
			change(c)
		}
		return c
	}
	for name, c := range map[string]struct {
		doc  []byte
		want protocol.SigninStatus
	}{
		"good":              {jwt(t, provider, claims(nil)), protocol.Accepted},
		"forged":            {jwt(t, forger, claims(nil)), protocol.Rejected},
		"another machine's": {jwt(t, provider, claims(func(c map[string]any) { c["vm"] = map[string]any{"name": "n"} })), protocol.Rejected},
		"for another key":   {jwt(t, provider, claims(func(c map[string]any) { c["aud"] = "salt/" + join.KeyHash(testKey(t, 2).Public().Text()) })), protocol.Rejected},
		"expired":           {jwt(t, provider, claims(func(c map[string]any) { c["exp"] = time.Now().Add(-time.Minute).Unix() })), protocol.Rejected},
		"another issuer":    {jwt(t, provider, claims(func(c map[string]any) { c["iss"] = "me" })), protocol.Rejected},
		"not yet":           {jwt(t, provider, claims(func(c map[string]any) { c["nbf"] = time.Now().Add(time.Hour).Unix() })), protocol.Rejected},
		"of no kind":        {[]byte("hello"), protocol.Pending},
		"ec2":               {ec2("m", time.Now(), provider), protocol.Accepted},
		"ec2 forged":        {ec2("m", time.Now(), forger), protocol.Rejected},
		"ec2 another id":    {ec2("n", time.Now(), provider), protocol.Rejected},
		"ec2 old":           {ec2("m", time.Now().Add(-2*time.Hour), provider), protocol.Rejected},
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t, o)
			pub, err := crypt.ParsePublicKey([]byte(r.PublicKey()))
			if err != nil {
				t.Fatal(err)
			}
			sign := protocol.Signin{ID: "m", Key: testKey(t, 1), Proof: protocol.JoinProof{Document: c.doc}, MasterKey: pub}
			e, err := sign.Request()
			if err != nil {
				t.Fatal(err)
			}
			b, err := e.Marshal()
			if err != nil || strings.Contains(string(b), string(c.doc)) {
				t.Fatal("the document is on the wire", err)
			}
			if got := r.newMinion("m", 1).signInWith(protocol.Signin{Proof: protocol.JoinProof{Document: c.doc}, MasterKey: pub}); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	t.Run("from a stock minion", func(t *testing.T) {
		r := serve(t, o)
		if got := r.newMinion("m", 1).signInWith(protocol.Signin{AutosignGrains: map[string]any{"identity": string(ec2("m", time.Now(), provider))}}); got != protocol.Accepted {
			t.Error(got)
		}
	})
}

// TestAcceptorChain checks that acceptors are asked in order until one decides, that they are never asked about keys
// that are already decided, and that each decision fires an event.
func TestAcceptorChain(t *testing.T) {
	var asked []string
	opinion := func(name string, d master.Decision, ids ...string) master.Acceptor {
		return master.Acceptor{Name: name, Judge: func(_ context.Context, a master.Applicant) (master.Verdict, error) {
			asked = append(asked, name+" "+a.ID)
			for _, id := range ids {
				if id == a.ID {
					return master.Verdict{Decision: d, Reason: "because"}, nil
				}
			}
			if a.ID == "broken" {
				return master.Verdict{}, errors.New("no database")
			}
			return master.Verdict{}, nil
		}}
	}
	print, err := testKey(t, 1).Public().Fingerprint("sha256")
	if err != nil {
		t.Fatal(err)
	}
	r := serve(t, master.Options{Keys: master.KeyOptions{Acceptors: []master.Acceptor{
		opinion("first", master.Reject, "bad"), opinion("second", master.Accept, "bad", "good"),
		join.Fingerprints(func(_ context.Context, id string) (string, error) {
			return map[string]string{"known": print, "other": "00:11"}[id], nil
		}),
	}}})
	sub := r.Events().Subscribe(events.SubscribeOptions{Prefix: "brine/join/"})
	defer sub.Close()
	for _, c := range []struct {
		id   string
		want protocol.SigninStatus
		by   string
	}{
		{"bad", protocol.Rejected, "first"}, {"good", protocol.Accepted, "second"}, {"good", protocol.Accepted, ""},
		{"known", protocol.Accepted, "fingerprint"}, {"other", protocol.Rejected, "fingerprint"}, {"nobody", protocol.Pending, ""}, {"broken", protocol.Pending, ""},
	} {
		if got := r.newMinion(c.id, 1).signIn(); got != c.want {
			t.Errorf("%s: %v, want %v", c.id, got, c.want)
		}
		if c.by == "" {
			continue
		}
		e, err := sub.Next(within(t))
		if err != nil || e.Tag != "brine/join/"+c.id || e.Data["acceptor"] != c.by || e.Data["result"] != (c.want == protocol.Accepted) || e.Data["fingerprint"] != print || e.Data["reason"] == "" || e.Data["peer"] == "" {
			t.Errorf("%s: %v %v", c.id, e, err)
		}
	}
	if got := strings.Join(asked, ", "); got != "first bad, first good, second good, first nobody, second nobody, first broken" {
		t.Error("asked:", got)
	}
	if st := r.Keys().State("bad"); st != keys.Unknown {
		t.Error("the key of a refused one is stored as", st)
	}
	// An operator's rejection stays: the acceptors are not asked again.
	if err := r.Keys().Reject("nobody", false, false); err != nil {
		t.Fatal(err)
	}
	asked = nil
	if got := r.newMinion("nobody", 1).signIn(); got != protocol.Rejected || len(asked) != 0 {
		t.Error(got, asked)
	}
}

// TestAcceptorsOrder checks the order of the proofs: a known fingerprint, the join token, the program's other
// acceptors, and then the policy or the operator. Once a proof has failed or could not be checked, AutoAccept no
// longer applies: the minion is rejected or waits for the operator. No proof appears in the log.
func TestAcceptorsOrder(t *testing.T) {
	print, err := testKey(t, 1).Public().Fingerprint("sha256")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	ca := newAuthority(t, ecKey(t))
	roots.AddCert(ca.cert)
	provider := rsaKey(t)
	documents := join.JWT{Issuer: "https://cloud", Audience: "salt", Key: func(_ context.Context, kid string) (crypto.PublicKey, error) {
		return provider.Public(), nil
	}}
	document := func(audience string) []byte {
		return jwt(t, provider, map[string]any{"iss": "https://cloud", "aud": audience, "exp": time.Now().Add(time.Hour).Unix(), "name": "m"})
	}
	var log testlog.Buffer
	const right, wrong = "right", "wrong"
	for _, c := range []struct {
		name                         string
		fingerprint, token, certFrom string // right, wrong, or "" if the minion has no such proof
		document                     string
		policy                       bool // AutoAccept is on
		want                         protocol.SigninStatus
		by                           string // the acceptors that decide, in order
	}{
		{"nothing", "", "", "", "", false, protocol.Pending, ""},
		{"only the policy", "", "", "", "", true, protocol.Accepted, ""},
		{"fingerprint before a wrong token", right, wrong, wrong, wrong, false, protocol.Accepted, "fingerprint"},
		{"wrong fingerprint before a token", wrong, right, right, right, true, protocol.Rejected, "fingerprint"},
		{"broken fingerprints", "broken", right, right, right, true, protocol.Pending, ""},
		{"token before a wrong certificate", "", right, wrong, wrong, false, protocol.Accepted, "token"},
		{"wrong token", "", wrong, "", "", true, protocol.Pending, "token"},
		{"wrong token, certificate", "", wrong, right, "", false, protocol.Accepted, "token x509"},
		{"wrong token, wrong certificate", "", wrong, wrong, right, true, protocol.Rejected, "token x509"},
		{"certificate before a wrong document", "", "", right, wrong, false, protocol.Accepted, "x509"},
		{"wrong certificate before a document", "", "", wrong, right, true, protocol.Rejected, "x509"},
		{"document", "", "", "", right, false, protocol.Accepted, "document"},
		{"wrong document", "", "", "", wrong, true, protocol.Rejected, "document"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: c.policy,
				Acceptors: []master.Acceptor{
					join.X509{Roots: roots}.Acceptor(),
					join.Document{Name: "document", Open: documents.Open, Claim: "name"}.Acceptor(),
					join.Fingerprints(func(context.Context, string) (string, error) {
						switch c.fingerprint {
						case "broken":
							return "", errors.New("no database")
						case right:
							return print, nil
						case wrong:
							return "00:11", nil
						}
						return "", nil
					})}}, Network: master.NetworkOptions{Advertise: []string{"salt.example"}},
				Log: slog.New(slog.NewTextHandler(&log,
					&slog.HandlerOptions{Level: slog.LevelDebug}))})
			pub, err := crypt.ParsePublicKey([]byte(r.PublicKey()))
			if err != nil {
				t.Fatal(err)
			}
			sign := protocol.Signin{MasterKey: pub}
			secrets := []string{}
			token := ensure(t, r, master.MinionSpec{ID: "m"})
			switch c.token {
			case right:
				sign.JoinToken = token
			case wrong:
				sign.JoinToken = "x" + token
			}
			secrets = append(secrets, token)
			switch c.certFrom {
			case right:
				sign.Proof = ca.proof(t, ecKey(t), nil)
			case wrong:
				sign.Proof = newAuthority(t, ecKey(t)).proof(t, ecKey(t), nil)
			}
			switch c.document {
			case right:
				sign.Proof.Document = document("salt")
			case wrong:
				sign.Proof.Document = document("pepper")
			}
			if len(sign.Proof.Document) > 0 {
				secrets = append(secrets, string(sign.Proof.Document))
			}
			sub := r.Events().Subscribe(events.SubscribeOptions{Prefix: "brine/join/"})
			defer sub.Close()
			if got := r.newMinion("m", 1).signInWith(sign); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
			if st := r.Keys().State("m"); (st == keys.Accepted) != (c.want == protocol.Accepted) || (st == keys.Pending) != (c.want == protocol.Pending) {
				t.Error("stored as", st)
			}
			for by := range strings.FieldsSeq(c.by) {
				e, err := sub.Next(within(t))
				if err != nil || e.Data["acceptor"] != by {
					t.Errorf("%v %v, want it decided by %s", e, err, by)
				}
			}
			for _, s := range secrets {
				if strings.Contains(log.String(), s) {
					t.Error("the log has a proof in it")
				}
			}
		})
	}
	if !strings.Contains(log.String(), "Minion joins") {
		t.Error("there is no log")
	}
}
