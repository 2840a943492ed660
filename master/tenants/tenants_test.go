package tenants

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
)

// newRegistry returns a Registry of minions with these tenants, and the store of their records.
func newRegistry(t *testing.T, of map[string]string) (*Registry, store.Minions) {
	t.Helper()
	minions, _ := store.MinionsOf(store.NewMemory())
	for id, tenant := range of {
		announce(t, minions, id, tenant)
	}
	return New(minions, slog.New(slog.DiscardHandler)), minions
}

func announce(t *testing.T, minions store.Minions, id, tenant string) {
	t.Helper()
	err := store.ChangeMinion(t.Context(), minions, id, func(x *store.Minion) bool { x.Tenant = tenant; return true })
	if err != nil {
		t.Fatal(err)
	}
}

// TestBorders: a minion sees those of its own tenant, and one without a tenant the others without one. A job of a
// tenant matches its own minions only.
func TestBorders(t *testing.T) {
	all := []string{"a", "b", "free", "r", "unknown"}
	alone, _ := newRegistry(t, map[string]string{"free": ""})
	if same, bounded, err := alone.Neighbours(t.Context(), "free", all); err != nil || bounded || !cmp.Equal(same, all) {
		t.Error("without tenants:", same, bounded, err)
	}
	if in, _, bounded, err := alone.Within(t.Context(), "", true, all, nil); err != nil || bounded || !cmp.Equal(in, all) {
		t.Error("without tenants:", in, bounded, err)
	}
	if alone.Any() || alone.Guesses(t.Context()) != nil {
		t.Error("there are tenants")
	}
	r, _ := newRegistry(t, map[string]string{"a": "blue", "b": "blue", "r": "red", "free": ""})
	for id, want := range map[string][]string{"a": {"a", "b"}, "r": {"r"}, "free": {"free", "unknown"}, "unknown": {"free", "unknown"}} {
		if same, bounded, err := r.Neighbours(t.Context(), id, all); err != nil || !bounded || !cmp.Equal(same, want) {
			t.Errorf("%s: %v %v %v", id, same, bounded, err)
		}
	}
	for _, c := range []struct {
		tenant      string
		listed      bool
		in, missing []string
	}{
		{"blue", false, []string{"a", "b"}, []string{"gone"}},
		{"blue", true, []string{"a", "b"}, []string{"gone", "free", "r", "unknown"}},
		{"", false, []string{"free", "unknown"}, []string{"gone"}},
		{"green", true, nil, []string{"gone", "a", "b", "free", "r", "unknown"}},
	} {
		in, missing, bounded, err := r.Within(t.Context(), c.tenant, c.listed, all, []string{"gone"})
		if d := cmp.Diff(c.in, in) + cmp.Diff(c.missing, missing); d != "" || !bounded || err != nil {
			t.Errorf("%+v: %v %s", c, err, d)
		}
	}
	if d := cmp.Diff([]string{"", "blue", "red"}, r.Guesses(t.Context())); d != "" || !r.Any() {
		t.Error(d)
	}
	none := New(nil, slog.New(slog.DiscardHandler))
	if tenant, announced, err := none.Of(t.Context(), "a"); tenant != "" || announced || err != nil {
		t.Error("a store that keeps none:", tenant, announced, err)
	}
}

// TestTenantsAreReadAgain: one minion's tenant is read each time; the tenants of all are read again after two
// seconds, or when this master has changed one.
func TestTenantsAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, minions := newRegistry(t, map[string]string{"a": "blue"})
		known := func(id string) string {
			t.Helper()
			tenant, err := r.KnownTenant(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return tenant
		}
		if got := known("a"); got != "blue" {
			t.Error(got)
		}
		announce(t, minions, "b", "red")
		if got := known("b"); got != "" {
			t.Error("read again at once:", got)
		}
		if tenant, err := r.TenantOf(t.Context(), "b"); tenant != "red" || err != nil {
			t.Error(tenant, err)
		}
		time.Sleep(tenantsFor)
		if got := known("b"); got != "red" {
			t.Error("not read again:", got)
		}
		announce(t, minions, "c", "green")
		r.SignedIn("192.0.2.1:1", "c", "green")
		if got := known("c"); got != "green" || r.LastAt("192.0.2.1:2") != "green" || r.LastAt("192.0.2.2:2") != "" {
			t.Error("not read again when a minion of another tenant signed in:", got)
		}
		announce(t, minions, "d", "blue")
		if r.Forget(); known("d") != "blue" {
			t.Error("not read again")
		}
	})
}

// fakeKeys are keys of tenants.
type fakeKeys map[string]*crypt.Key

func (f fakeKeys) KeyOf(tenant string) (*crypt.Key, error) {
	if f[tenant] == nil {
		key, err := crypt.NewKey()
		if err != nil {
			return nil, err
		}
		f[tenant] = key
	}
	return f[tenant], nil
}

// TestTriesAreBounded: the cost of a request whose sender is named only in the encrypted part does not grow with
// the number of tenants. For an unauthenticated peer a few keys are tried, and for a minion that signed in its own
// tenant's is tried first.
func TestTriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tenants = 300
		of := make(map[string]string)
		for i := range tenants {
			of[fmt.Sprintf("t%03d.m", i)] = fmt.Sprintf("t%03d", i)
		}
		r, _ := newRegistry(t, of)
		r.Add()
		keys := fakeKeys{}
		wrong := errors.New("not under this key")
		strange := func(peer string, size int) (tries int, err error) {
			err = r.UnderKey(t.Context(), peer, size, keys, func(*crypt.Key) (string, error) { tries++; return "", wrong })
			return tries, err
		}
		own := func(peer, tenant string) (tries int, err error) {
			want, err := keys.KeyOf(tenant)
			if err != nil {
				t.Fatal(err)
			}
			err = r.UnderKey(t.Context(), peer, 100, keys, func(k *crypt.Key) (string, error) {
				if tries++; k.Equal(want) {
					return tenant + ".m", nil
				}
				return "", wrong
			})
			return tries, err
		}
		const host = "192.0.2.1"
		total := 0
		for i := range 20 { // from other ports, as those who begin anew
			n, err := strange(fmt.Sprintf("%s:%d", host, 1000+i), 100)
			if total += n; !errors.Is(err, wrong) || !errors.Is(err, errGuesses) || protocol.ReplyText(err) != protocol.BadLoad {
				t.Fatal(err)
			}
		}
		if total != 20+triesBurst { // one for each request, and those of the burst
			t.Errorf("20 requests of an unauthenticated peer cost %d tries, of %d keys each", total, tenants)
		}
		if n, err := strange("192.0.2.2:1", maxGuessable+1); n != 1 || !errors.Is(err, errGuesses) {
			t.Errorf("a large request of an unauthenticated peer cost %d tries: %v", n, err)
		}
		// Where a peer has used up the tries, a minion that signs in is known: with the last few of its host at once.
		if n, err := own(host+":2000", "t299"); err == nil {
			t.Errorf("a minion that did not sign in was found after %d tries", n)
		}
		for i := range hostTenants {
			tenant := fmt.Sprintf("t%03d", 299-i)
			r.SignedIn(host+":2000", tenant+".m", tenant)
		}
		for i := range hostTenants {
			tenant := fmt.Sprintf("t%03d", 299-i)
			if n, err := own(host+":3000", tenant); err != nil || n > hostTenants {
				t.Errorf("a minion of %s: %d tries, %v", tenant, n, err)
			}
		}
		// A minion from elsewhere, as behind another gateway, is found as long as there are not many tenants.
		if n, err := own("192.0.2.3:1", "t010"); err != nil || n > 12 {
			t.Errorf("from a new host: %d tries, %v", n, err)
		}
		// A sender that uses the key of another tenant is unknown.
		err := r.UnderKey(t.Context(), host+":1", 1, keys, func(*crypt.Key) (string, error) { return "t001.m", nil })
		if !errors.Is(err, errForeignKey) {
			t.Error("with the key of another tenant:", err)
		}
	})
}
