//go:build interop && linux

package ha

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/master/store"
)

// TestFailover: minions that are connected to one master at a time (master_type: failover), ours and in the large run stock's, move to another
// one when theirs is killed; before and after that, what is ordered from any master reaches them, once.
func TestFailover(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	c := &cluster{t: t, env: "sqlite " + filepath.Join(t.TempDir(), "db")}
	c.pub, c.ret = freeport.Port(t), freeport.Port(t)
	c.startAll(failoverMasters)
	minions := []real{{"ours-failover", failover}}
	if os.Getenv("BRINE_HA") != "" { // on a machine with much else to do, stock takes minutes to notice and to move
		minions = append(minions, real{"stock-3007", failover})
	}
	for _, r := range minions {
		r.start(t, c)
	}
	db := reopen(ctx, t, c.env)
	defer db.Close()
	for _, r := range minions {
		r.await(ctx, t, db)
	}
	var placed []string
	order := func(from int) {
		t.Helper()
		for i := from; i < failoverMasters; i++ {
			for _, r := range minions {
				id := fmt.Sprint("order-", len(placed))
				if why := c.procs[i].cast(id, r.name, len(placed), r.ledger()); why != "" {
					t.Fatalf("master %d: %s", i, why)
				}
				placed = append(placed, r.name)
			}
		}
		awaitOrders(ctx, t, db, len(placed))
	}
	order(0)
	if err := c.procs[0].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.procs[0].done
	order(1)
	for _, r := range minions {
		var want []string
		for n, name := range placed {
			if name == r.name {
				want = append(want, fmt.Sprint(n))
			}
		}
		times := make(map[string]int)
		for _, n := range strings.Fields(readFile(t, r.ledger())) {
			times[n]++
		}
		for _, n := range want {
			if times[n] != 1 {
				t.Errorf("%s did order %s %d times", r.name, n, times[n])
			}
		}
	}
}

// awaitOrders waits until so many orders have returned.
func awaitOrders(ctx context.Context, t *testing.T, db store.Store, n int) {
	t.Helper()
	q, _ := store.QueueOf(db)
	for i := 0; i < n; {
		rec, err := q.Order(ctx, fmt.Sprint("order-", i))
		if err != nil {
			t.Fatal(err)
		}
		list, err := q.Deliveries(ctx, store.DeliveryFilter{JID: rec.JID})
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		switch {
		case list[0].State == store.Returned:
			i++
			continue
		case !list[0].State.Open():
			t.Fatalf("%s ended: %+v", rec.ID, list[0])
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s has no end: %+v", rec.ID, list[0])
		}
	}
}
