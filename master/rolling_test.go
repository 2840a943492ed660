package master_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol"
)

// TestBatch checks that Split returns one order for each minion of a target, and that Batch sends these in batches,
// stops at a failure, and can be resumed there.
func TestBatch(t *testing.T) {
	r := serve(t, orderOptions())
	var mu sync.Mutex
	under, most := 0, 0
	for i := range 5 {
		m := r.accepted(fmt.Sprint("m", i), i%3+1)
		m.run = func(j protocol.Job) (any, error) {
			if j.Fun[0] != "job.deploy" {
				return true, nil
			}
			mu.Lock()
			under++
			most = max(most, under)
			failing := m.id == "m2"
			mu.Unlock()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				under--
			}()
			if failing {
				return "no", errFailed
			}
			return true, nil
		}
		m.subscribe()
	}
	all := master.Order{ID: "deploy", Job: master.Job{Fun: "job.deploy", Tgt: "m*"}}
	orders, err := r.Split(within(t), all)
	if err != nil || len(orders) != 5 || orders[4].ID != "deploy/m4" {
		t.Fatal(orders, err)
	}
	done, err := r.Batch(within(t), orders, master.Rolling{Size: 2})
	if !errors.Is(err, master.ErrStopped) || len(done) != 4 || done[2].Success() || !done[3].Success() {
		t.Fatal(done, err)
	}
	if _, err := r.OrderOutcome(within(t), "deploy/m4"); err == nil {
		t.Fatal("an order was placed after the failure")
	}
	done, err = r.Batch(within(t), orders, master.Rolling{Size: 2, Stop: func([]master.Outcome) bool { return false }})
	if err != nil || len(done) != 5 || !done[4].Success() || done[2].Success() {
		t.Fatal(done, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if most > 2 {
		t.Errorf("%d at once", most)
	}
	if _, err := r.Batch(within(t), orders, master.Rolling{Size: -1}); err == nil {
		t.Error("batches of -1")
	}
	if got := slices.IndexFunc(done, func(o master.Outcome) bool { return o.ID == "deploy/m4" }); got != 4 {
		t.Error(got)
	}
}
