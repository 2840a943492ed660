// Package requesttest helps the tests of the master's packages: it has the key of all minions, accepted
// minions, and requests that have passed the check of an encrypted request.
package requesttest

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
)

// Key returns one private key for all minions and masters of a test program, because creating one takes longer
// than most tests.
var Key = sync.OnceValue(func() *crypt.PrivateKey {
	key, err := crypt.GenerateKey(2048)
	if err != nil {
		panic(err)
	}
	return key
})

// Keys returns a store of minions' keys, in memory, until the test ends. These minions are accepted with Key.
func Keys(t testing.TB, minions ...string) *keys.Store {
	t.Helper()
	ks, err := keys.Open(keys.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ks.Close() })
	for _, id := range minions {
		if err := ks.Preseed(id, Key().Public().Text()); err != nil {
			t.Fatal(err)
		}
	}
	return ks
}

// Told returns the accepted keys of minions and a cache with their data, in memory. A minion whose data is nil
// has none yet.
func Told(t testing.TB, minions map[string]*cache.Data) (*keys.Store, *cache.Cache) {
	t.Helper()
	c, err := cache.Open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	for id, data := range minions {
		if data == nil {
			continue
		}
		if err := c.Store(id, data.Ordered()); err != nil {
			t.Fatal(err)
		}
	}
	return Keys(t, slices.Collect(maps.Keys(minions))...), c
}

// Sender sends requests under any id.
type Sender struct {
	t       testing.TB
	session *crypt.Key
	token   []byte
}

// NewSender returns a Sender whose minions have the private key of Key.
func NewSender(t testing.TB) *Sender {
	t.Helper()
	token, err := protocol.RequestToken(Key())
	if err != nil {
		t.Fatal(err)
	}
	session, err := crypt.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return &Sender{t: t, session: session, token: token}
}

// Pack returns a minion's request, verified and as its envelope, and its nonce. Without cmd it is a mine
// request.
func (s *Sender) Pack(id string, load map[string]any) (v protocol.Verified, e protocol.Envelope,
	nonce string) {
	s.t.Helper()
	load = maps.Clone(load)
	if load["cmd"] == nil {
		load["cmd"] = "_mine"
	}
	e, nonce, err := protocol.Requester{ID: id, Session: s.session, Token: s.token}.Pack(load,
		time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	if v, err = protocol.OpenRequest(e, s.session, Key().Public()); err != nil {
		s.t.Fatal(err)
	}
	return v, e, nonce
}

// From is Pack without the envelope.
func (s *Sender) From(id string, load map[string]any) protocol.Verified {
	s.t.Helper()
	v, _, _ := s.Pack(id, load)
	return v
}
