package minion

import (
	"maps"
	"testing"

	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

// TestReturnsAreSigned: minion_sign_messages has the minion's key sign each return, and only then.
func TestReturnsAreSigned(t *testing.T) {
	for _, sign := range []bool{true, false} {
		bubble(t, func(t *testing.T, n *mem.Network) {
			f := newFake(t, n, "one:4506")
			connectedRig(t, n, f, map[string]any{"minion_sign_messages": sign})
			f.publish(jobMap(jidAt(1), "test.ping", nil))
			load := maps.Clone(f.await("return", isReturn(jidAt(1))))
			sig, signed := payload.Bytes(load["sig"])
			if signed != sign {
				t.Fatalf("minion_sign_messages %v: signed %v", sign, signed)
			}
			if !sign {
				return
			}
			delete(load, "sig")
			packed, err := payload.MarshalBin(load)
			if err != nil {
				t.Fatal(err)
			}
			if err := testKey(t, minionKey).Public().Verify(crypt.PKCS1v15SHA1, packed, sig); err != nil {
				t.Error(err)
			}
		})
	}
}
