package packed

import (
	"bytes"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/store"
)

// TestDeliveriesAlike: deliveries that differ in their minions alone are packed alike, so that one statement changes
// all of them.
func TestDeliveriesAlike(t *testing.T) {
	d := store.Delivery{State: store.Sent, Owner: "m", Sent: time.Unix(1, 0), Reason: "why", Carries: true}
	first, err := PackDelivery(d)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		d.Minion += "x"
		if b, err := PackDelivery(d); err != nil || !bytes.Equal(b, first) {
			t.Fatalf("%q and %q, %v", first, b, err)
		}
	}
}
