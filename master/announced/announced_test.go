package announced

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/bootstrap"
	"github.com/brine-salt/brine/master/internal/requesttest"
	"github.com/brine-salt/brine/master/requests/signin"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/tenants"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
)

// grants are the minions whose grants were taken.
type grants []string

func (g *grants) TakeGrants(x store.Minion) { *g = append(*g, x.ID) }

func newBook(t testing.TB) (*Book, *grants) {
	t.Helper()
	minions, _ := store.MinionsOf(store.NewMemory())
	log, g := slog.New(slog.DiscardHandler), new(grants)
	return New(Options{Minions: minions, Keys: requesttest.Keys(t), Tenants: tenants.New(minions, log), Grants: g, Key: requesttest.Key(),
		Log: log}), g
}

// ensure announces a minion whose master is known.
func ensure(t testing.TB, b *Book, s Spec) bootstrap.Bootstrap {
	t.Helper()
	out, err := b.Ensure(t.Context(), s, false, bootstrap.Bootstrap{ID: s.ID, Masters: []string{"salt.example"}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// join returns the verdict about a minion that shows a token.
func join(t *testing.T, b *Book, id, token string, key *crypt.PrivateKey) signin.Verdict {
	t.Helper()
	e, err := (&protocol.Signin{ID: id, Key: key, JoinToken: token}).Request()
	if err != nil {
		t.Fatal(err)
	}
	r, err := protocol.ParseAuthRequest(e)
	if err != nil {
		t.Fatal(err)
	}
	v, err := b.JudgeToken(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestTokens: a token is the same until its minion came, good for one key and for its time; without one there is no opinion.
func TestTokens(t *testing.T) {
	key := requesttest.Key()
	other, err := crypt.GenerateKey(2048)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		b, g := newBook(t)
		token := ensure(t, b, Spec{ID: "m", TokenTTL: time.Hour}).Token
		time.Sleep(50 * time.Minute)
		if again := ensure(t, b, Spec{ID: "m", TokenTTL: time.Hour}).Token; token == "" || again != token {
			t.Errorf("token %q, then %q", token, again)
		}
		if d := cmp.Diff(grants{"m", "m"}, *g); d != "" {
			t.Error(d)
		}
		if another := ensure(t, b, Spec{ID: "n"}).Token; another == token {
			t.Error("two minions have one token")
		}
		time.Sleep(50 * time.Minute) // the token has a new term
		for _, c := range []struct {
			id, token string
			key       *crypt.PrivateKey
			want      signin.Decision
			why       string
		}{
			{"m", "", key, signin.Abstain, ""},
			{"m", "x", key, signin.Reject, "wrong"},
			{"stray", token, key, signin.Reject, "not announced"},
			{"n", token, key, signin.Reject, "wrong"},
			{"m", token, key, signin.Accept, "this token"},
			{"m", token, key, signin.Accept, "this token"},
			{"m", token, other, signin.Reject, "another key"},
		} {
			if v := join(t, b, c.id, c.token, c.key); v.Decision != c.want || !strings.Contains(v.Reason, c.why) {
				t.Errorf("%s with %q: %+v", c.id, c.token, v)
			}
		}
		if again := ensure(t, b, Spec{ID: "m"}); again.Token != "" {
			t.Error("a minion that came gets a token")
		}
		late := ensure(t, b, Spec{ID: "late"}).Token
		time.Sleep(DefaultTokenTTL + time.Second)
		if v := join(t, b, "late", late, key); v.Decision != signin.Reject || !strings.Contains(v.Reason, "expired") {
			t.Errorf("%+v", v)
		}
	})
}

// TestKeyPairs: a pair that was made for a minion is given until it came, and its key is accepted; so is a key made elsewhere.
func TestKeyPairs(t *testing.T) {
	b, _ := newBook(t)
	first, again := ensure(t, b, Spec{ID: "m", KeyPair: true}), ensure(t, b, Spec{ID: "m", KeyPair: true})
	if first.PrivateKey == "" || first.PrivateKey != again.PrivateKey || first.PublicKey != again.PublicKey || first.Token != "" {
		t.Error("another pair the second time")
	}
	private, err := crypt.ParsePrivateKey([]byte(first.PrivateKey))
	if err != nil || crypt.CleanKey(private.Public().Text()) != crypt.CleanKey(first.PublicKey) {
		t.Fatal("the keys are not a pair:", err)
	}
	x, err := b.Minions.Minion(t.Context(), "m")
	if sealed, _ := x.Spec["private"].([]byte); err != nil || len(sealed) == 0 || strings.Contains(string(sealed), "PRIVATE") {
		t.Error("the private key is not sealed in the store:", err)
	}
	if _, err := b.Keys.Accepted("m"); err != nil {
		t.Error(err)
	}
	b.Joined(t.Context(), "m")
	if x, err := b.Minions.Minion(t.Context(), "m"); err != nil || !x.Joined || x.Spec["private"] != nil {
		t.Error("the private key is kept after the minion came:", x, err)
	}
	if got := ensure(t, b, Spec{ID: "m", KeyPair: true}); got.PrivateKey != "" {
		t.Error("given again")
	}
	text := requesttest.Key().Public().Text()
	if got := ensure(t, b, Spec{ID: "n", PublicKey: text}); got.Token+got.PrivateKey != "" {
		t.Error(got)
	}
	if pub, err := b.Keys.Accepted("n"); err != nil || pub.Text() != requesttest.Key().Public().Text() {
		t.Error(err)
	}
}

// TestBook: what cannot be announced, the tenants' borders, and the end of an announcement.
func TestBook(t *testing.T) {
	b, g := newBook(t)
	ensure(t, b, Spec{ID: "m", Tenant: "blue", Grains: map[string]any{"os": "Debian"}, Events: []string{"app/m"}})
	known := bootstrap.Bootstrap{Masters: []string{"salt.example"}}
	for name, c := range map[string]struct {
		spec Spec
		with bootstrap.Bootstrap
		err  error // nil for any
	}{
		"a bad id":        {Spec{ID: "../m"}, known, nil},
		"two keys":        {Spec{ID: "x", KeyPair: true, PublicKey: "y"}, known, nil},
		"a bad key":       {Spec{ID: "x", PublicKey: "y"}, known, nil},
		"no master":       {Spec{ID: "x"}, bootstrap.Bootstrap{}, nil},
		"a bad tag":       {Spec{ID: "x", Events: []string{"salt/x/y"}}, known, nil},
		"another tenant":  {Spec{ID: "m", Tenant: "red"}, known, ErrOtherTenant},
		"nobody's of one": {Spec{ID: "m"}, known, ErrOtherTenant},
	} {
		if _, err := b.Ensure(t.Context(), c.spec, false, c.with); err == nil || c.err != nil && !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	want := []Minion{{ID: "m", Tenant: "blue", Grains: map[string]any{"os": "Debian"}, Events: []string{"app/m"}}}
	for _, tenant := range []string{"", "blue", "red"} {
		list, err := b.List(t.Context(), tenant)
		if tenant == "red" {
			want = nil
		}
		if d := cmp.Diff(want, list); d != "" || err != nil {
			t.Errorf("%q: %v %s", tenant, err, d)
		}
	}
	if tenant, announced, err := b.Announced(t.Context(), "m"); tenant != "blue" || !announced || err != nil {
		t.Error(tenant, announced, err)
	}
	for range 2 {
		if err := b.Forget(t.Context(), "m"); err != nil {
			t.Error(err)
		}
	}
	if list, err := b.List(t.Context(), ""); len(list) != 0 || err != nil || len(*g) != 3 {
		t.Error(list, err, *g)
	}
	none := New(Options{Keys: b.Keys, Tenants: b.Tenants, Grants: g, Key: b.Key, Log: b.Log})
	if _, err := none.Ensure(t.Context(), Spec{ID: "m"}, false, known); !errors.Is(err, store.ErrNoMinions) {
		t.Error(err)
	}
	if v := join(t, none, "m", "t", requesttest.Key()); v.Decision != signin.Abstain {
		t.Error(v)
	}
}
