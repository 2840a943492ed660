package requests

import (
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
)

// verifier makes requests that have passed the check.
type verifier struct {
	t      *testing.T
	minion *crypt.PrivateKey
	token  []byte
	key    *crypt.Key
}

// testKey is the key of all minions and of the master.
var testKey = sync.OnceValue(func() *crypt.PrivateKey {
	key, err := crypt.GenerateKey(2048)
	if err != nil {
		panic(err)
	}
	return key
})

func newVerifier(t *testing.T) *verifier {
	t.Helper()
	minion := testKey()
	token, err := protocol.RequestToken(minion)
	if err != nil {
		t.Fatal(err)
	}
	key, err := crypt.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return &verifier{t: t, minion: minion, token: token, key: key}
}

// from returns a request of a minion.
func (r *verifier) from(id string, load map[string]any) protocol.Verified {
	r.t.Helper()
	load = maps.Clone(load)
	if load["cmd"] == nil {
		load["cmd"] = "_mine"
	}
	e, _, err := protocol.Requester{ID: id, Session: r.key, Token: r.token}.Pack(load, time.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	v, err := protocol.OpenRequest(e, r.key, r.minion.Public())
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}
