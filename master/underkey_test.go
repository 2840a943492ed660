package master

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
)

// TestTriesAreBounded: what a request costs whose sender says only inside who it is does not grow with the tenants: a peer without a key has a few
// keys tried, and a minion that signed in has its own tried first.
func TestTriesAreBounded(t *testing.T) {
	const tenants = 300
	m, err := New(Options{Advertise: []string{"salt.example"}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	key, err := crypt.GenerateKey(2048)
	if err != nil {
		t.Fatal(err)
	}
	for i := range tenants {
		name := fmt.Sprintf("t%03d", i)
		if _, err := m.EnsureMinion(t.Context(), MinionSpec{ID: name + ".m", Tenant: name, PublicKey: key.Public().Text()}); err != nil {
			t.Fatal(err)
		}
	}
	wrong := errors.New("not under this key")
	strange := func(peer string, size int) (tries int, err error) {
		err = m.underKey(context.Background(), peer, size, func(*crypt.Key) (string, error) { tries++; return "", wrong })
		return tries, err
	}
	own := func(peer, tenant string) (tries int, err error) {
		want, err := m.keyOf(tenant)
		if err != nil {
			t.Fatal(err)
		}
		err = m.underKey(context.Background(), peer, 100, func(k *crypt.Key) (string, error) {
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
	// One for each request, those of the burst, and what comes back in the time that this takes.
	if total < triesBurst || total > 20*tenants/4 {
		t.Errorf("20 requests of a stranger cost %d tries, of %d keys each", total, tenants)
	}
	if n, err := strange("192.0.2.2:1", maxGuessable+1); n != 1 || !errors.Is(err, errGuesses) {
		t.Errorf("a large request of a stranger cost %d tries: %v", n, err)
	}
	// Where a stranger has used up the tries, a minion that signs in is known: with the last few of its host at once.
	if n, err := own(host+":2000", "t299"); err == nil {
		t.Errorf("a minion that did not sign in was found after %d tries", n)
	}
	for i := range hostTenants {
		if _, err := m.publishKey(context.Background(), host+":2000", fmt.Sprintf("t%03d.m", 299-i)); err != nil {
			t.Fatal(err)
		}
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
	// And whoever seals with the key of another tenant is nobody.
	err = m.underKey(context.Background(), host+":1", 1, func(*crypt.Key) (string, error) { return "t001.m", nil })
	if !errors.Is(err, errForeignKey) {
		t.Error("with the key of another tenant:", err)
	}
}
