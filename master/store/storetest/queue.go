package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/store"
)

// makeOrder returns the n-th order of the suite with deliveries to some minions, due at its creation.
func makeOrder(n int, ids ...string) (store.Order, []store.Delivery) {
	j := makeJob(n)
	o := store.Order{ID: fmt.Sprintf("order/%d é", n), JID: j.JID, Tenant: "blue",
		Created: j.Created, Spec: map[string]any{"fun": "cmd.run", "arg": []any{"x", []byte{0xff}}}}
	var list []store.Delivery
	for _, id := range ids {
		list = append(list, store.Delivery{JID: j.JID, Minion: id, State: store.Waiting,
			Due: j.Created, Version: 1, Expires: j.Created.Add(time.Hour)})
	}
	return o, list
}

// runQueue runs the part of the suite for stores with orders and minions.
func runQueue(t *testing.T, open func(t *testing.T) store.Store) {
	// with runs one test on a store of its own.
	with := func(name string, f func(t *testing.T, s store.Store, q store.Queue, m store.Minions)) {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			// A queue without minions is of no use to a master.
			q, ok := store.QueueOf(s)
			m, too := store.MinionsOf(s)
			if !ok || !too {
				t.Fatal("the store cannot keep orders or minions")
			}
			f(t, s, q, m)
		})
	}
	with("OrderComesBack", orderComesBack)
	with("OrderIDsAreTakenOnce", orderIDsAreTakenOnce)
	with("DeliveriesInOrder", deliveriesInOrder)
	with("OneOfManyTakesADelivery", oneOfManyTakesADelivery)
	with("ManyDeliveriesAtOnce", manyDeliveriesAtOnce)
	with("FinalDeliveriesStay", finalDeliveriesStay)
	with("OpenOfTenants", openOfTenants)
	with("PurgeKeepsOpenOrders", purgeKeepsOpenOrders)
	with("Minions", minions)
	with("ContentGoesWithTheLastDelivery", contentGoesWithTheLastDelivery)
	with("ContentOfTwoThatEndAtOnce", contentOfTwoThatEndAtOnce)
	with("ContentIsPurged", contentIsPurged)
	with("OrdersByLabel", ordersByLabel)
}

// saveOrder saves an order with its deliveries.
func saveOrder(t *testing.T, q store.Queue, o store.Order, list []store.Delivery) {
	t.Helper()
	if err := q.SaveOrder(t.Context(), o, list); err != nil {
		t.Fatal(err)
	}
}

// orderComesBack: an order is found by its id and by its job id, with every field.
func orderComesBack(t *testing.T, _ store.Store, q store.Queue, _ store.Minions) {
	ctx := t.Context()
	want, list := makeOrder(0, "web2", "web1")
	// Every field has a value, so that one that is not stored shows.
	x := &list[0]
	x.Priority, x.Parallel, x.Tries, x.Sent = -3, true, 2, want.Created
	x.Deadline, x.Ended = want.Created.Add(time.Minute), want.Created.Add(time.Second)
	x.Owner, x.Running, x.Reason, x.State = "me", true, "why", store.Sent
	saveOrder(t, q, want, list)
	// Both ways must find the same order.
	for name, get := range map[string]func() (store.Order, error){
		"by id":     func() (store.Order, error) { return q.Order(ctx, want.ID) },
		"by job id": func() (store.Order, error) { return q.OrderOf(ctx, want.JID) },
	} {
		got, err := get()
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %s %v", name, d, err)
		}
	}
	got, err := q.Deliveries(ctx, store.DeliveryFilter{JID: want.JID})
	// Deliveries come sorted by minion.
	if d := cmp.Diff([]store.Delivery{list[1], list[0]}, got); d != "" || err != nil {
		t.Error(d, err)
	}
	// An unknown id is ErrNotFound and not an empty order.
	if _, err := q.Order(ctx, "nope"); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	if _, err := q.OrderOf(ctx, "nope"); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
}

// orderIDsAreTakenOnce: a second order with the same id or job id is refused and leaves nothing behind.
func orderIDsAreTakenOnce(t *testing.T, _ store.Store, q store.Queue, _ store.Minions) {
	var won atomic.Int32
	var wg sync.WaitGroup
	// Eight goroutines try the same id.
	for i := range 8 {
		wg.Go(func() {
			o, list := makeOrder(i, "web1")
			o.ID = "the same"
			switch err := q.SaveOrder(context.Background(), o, list); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, store.ErrExists):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// The deliveries of the losers are gone with their orders.
	list, err := q.Deliveries(t.Context(), store.DeliveryFilter{Minion: "web1"})
	if won.Load() != 1 || len(list) != 1 || err != nil {
		t.Fatal(won.Load(), list, err)
	}
	// The same holds for the job id.
	o, none := makeOrder(9)
	o.JID = list[0].JID
	if err := q.SaveOrder(t.Context(), o, none); !errors.Is(err, store.ErrExists) {
		t.Fatal("a job id was taken twice:", err)
	}
	// A refused order leaves nothing.
	if _, err := q.Order(t.Context(), o.ID); !errors.Is(err, store.ErrNotFound) {
		t.Fatal("half an order is there:", err)
	}
}

// deliveriesInOrder: filters and their order, including the order in which deliveries are sent.
func deliveriesInOrder(t *testing.T, _ store.Store, q store.Queue, _ store.Minions) {
	ctx := t.Context()
	// Four orders with two priorities; one delivery is final.
	for n, priority := range []int{0, 5, 0, 5} {
		o, list := makeOrder(n, "web1", "web2")
		for i := range list {
			list[i].Priority = priority
		}
		if n == 2 {
			list[0].State, list[0].Due = store.Returned, time.Time{}
		}
		saveOrder(t, q, o, list)
	}
	for _, c := range []struct {
		name string
		f    store.DeliveryFilter
		want []string
	}{
		// A minion gets high priorities first, then the older order.
		{"of a minion", store.DeliveryFilter{Minion: "web1"},
			[]string{"web1 1", "web1 3", "web1 0", "web1 2"}},
		{"open", store.DeliveryFilter{Minion: "web1", Open: true},
			[]string{"web1 1", "web1 3", "web1 0"}},
		{"of a job", store.DeliveryFilter{JID: makeJob(2).JID}, []string{"web1 2", "web2 2"}},
		{"both", store.DeliveryFilter{JID: makeJob(2).JID, Minion: "web2"}, []string{"web2 2"}},
		// Due deliveries come by time, whatever their priority.
		{"due", store.DeliveryFilter{Due: makeJob(2).Created},
			[]string{"web1 0", "web2 0", "web1 1", "web2 1", "web2 2"}},
		{"due of one", store.DeliveryFilter{Due: makeJob(2).Created, Minion: "web2"},
			[]string{"web2 0", "web2 1", "web2 2"}},
		{"limit", store.DeliveryFilter{Open: true, Limit: 3},
			[]string{"web1 1", "web1 3", "web1 0"}},
		{"of two", store.DeliveryFilter{Minions: []string{"web2", "nobody", "web1"}, Open: true,
			JID: makeJob(1).JID}, []string{"web1 1", "web2 1"}},
		{"of a list of one", store.DeliveryFilter{Minions: []string{"web1"}, Open: true},
			[]string{"web1 1", "web1 3", "web1 0"}},
		{"of nobody", store.DeliveryFilter{Minions: []string{}, Open: true}, nil},
		{"limit of two", store.DeliveryFilter{Minions: []string{"web1", "web2"}, Open: true,
			Limit: 4}, []string{"web1 1", "web1 3", "web1 0", "web2 1"}},
	} {
		list, err := q.Deliveries(ctx, c.f)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range list {
			// Job ids are shown by their number.
			for n := range 4 {
				if makeJob(n).JID == d.JID {
					got = append(got, fmt.Sprint(d.Minion, " ", n))
				}
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// oneOfManyTakesADelivery: of many masters that swap the same version, one succeeds.
func oneOfManyTakesADelivery(t *testing.T, _ store.Store, q store.Queue, _ store.Minions) {
	o, list := makeOrder(0, "web1")
	saveOrder(t, q, o, list)
	// Eight masters hold the same version.
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			d := list[0]
			d.Owner, d.Due, d.Tries = fmt.Sprint(i), d.Due.Add(time.Minute), 1
			switch err := q.SwapDelivery(context.Background(), &d); {
			case err == nil:
				won.Add(1)
				// The winner's copy has the new version, so it can go on.
				if d.Version != 2 {
					t.Errorf("version %d", d.Version)
				}
			case !errors.Is(err, store.ErrChanged):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// What the winner wrote is stored, and nothing of the others.
	got, err := q.Deliveries(t.Context(), store.DeliveryFilter{Minion: "web1"})
	if won.Load() != 1 || err != nil || got[0].Version != 2 || got[0].Tries != 1 ||
		got[0].Owner == "" {
		t.Fatal(won.Load(), got, err)
	}
}

// manyDeliveriesAtOnce: of several masters that swap the same hundreds of deliveries together, one takes each, and an
// error says which were not taken.
func manyDeliveriesAtOnce(t *testing.T, _ store.Store, q store.Queue, _ store.Minions) {
	ids := make([]string, 250)
	for i := range ids {
		ids[i] = fmt.Sprintf("web%03d", i)
	}
	o, list := makeOrder(0, ids...)
	saveOrder(t, q, o, list)
	// One is ahead of the others, and one does not exist.
	first := list[7]
	first.Owner = "first"
	if err := q.SwapDelivery(t.Context(), &first); err != nil {
		t.Fatal(err)
	}
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			mine := make([]*store.Delivery, len(list), len(list)+1)
			for k := range list {
				d := list[k]
				d.State, d.Owner, d.Tries = store.Sent, fmt.Sprint(i), 1
				mine[k] = &d
			}
			none := *mine[0]
			none.Minion = "nobody"
			errs := q.SwapDeliveries(context.Background(), append(mine, &none))
			for k, err := range errs {
				switch {
				case err == nil:
					won.Add(1)
					if k == 7 || k == len(mine) || mine[k].Version != 2 {
						t.Errorf("%d was taken, version %d", k, mine[min(k, len(mine)-1)].Version)
					}
				case !errors.Is(err, store.ErrChanged):
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, err := q.Deliveries(t.Context(), store.DeliveryFilter{Minions: ids, Open: true})
	if int(won.Load()) != len(ids)-1 || err != nil || len(got) != len(ids) {
		t.Fatal(won.Load(), len(got), err)
	}
	for i, d := range got {
		if d.Minion != ids[i] || d.Version != 2 || (d.Owner == "first") != (i == 7) {
			t.Errorf("%d is %+v", i, d)
		}
	}
	// Some end; the others stay open. Those that end with different words are different changes.
	end := make([]*store.Delivery, 0, 120)
	for i := range 120 {
		got[i].State, got[i].Reason = store.Returned, fmt.Sprint("reason ", i%2)
		end = append(end, &got[i])
	}
	for i, err := range q.SwapDeliveries(t.Context(), end) {
		if err != nil || end[i].Version != 3 {
			t.Fatal(i, end[i].Version, err)
		}
	}
	if n, err := q.CountOpen(t.Context(), ""); n != len(ids)-120 || err != nil {
		t.Error(n, "are open", err)
	}
	again, err := q.Deliveries(t.Context(), store.DeliveryFilter{JID: o.JID, Minion: ids[1]})
	if err != nil || again[0].State != store.Returned || again[0].Reason != "reason 1" {
		t.Error(again, err)
	}
}

// openOfTenants: open deliveries are counted for all and for one tenant.
func openOfTenants(t *testing.T, _ store.Store, q store.Queue, ms store.Minions) {
	ctx := t.Context()
	// The tenants are those of the minions, not of the order.
	for id, tenant := range map[string]string{"web1": "blue", "web2": "red", "web3": ""} {
		if err := ms.SwapMinion(ctx, &store.Minion{ID: id, Tenant: tenant}); err != nil {
			t.Fatal(err)
		}
	}
	o, list := makeOrder(0, "web1", "web2", "web3", "nobody")
	saveOrder(t, q, o, list)
	o, list = makeOrder(1, "web1")
	saveOrder(t, q, o, list)
	// open checks the counts of all and of each tenant.
	open := func(all, blue, red int) {
		t.Helper()
		// An unknown tenant has none.
		for tenant, want := range map[string]int{"": all, "blue": blue, "red": red, "none": 0} {
			if n, err := q.CountOpen(ctx, tenant); err != nil || n != want {
				t.Fatalf("%q: %d are open instead of %d, %v", tenant, n, want, err)
			}
		}
	}
	open(5, 2, 1)
	d := list[0]
	d.State, d.Due = store.Returned, time.Time{}
	if err := q.SwapDelivery(ctx, &d); err != nil {
		t.Fatal(err)
	}
	open(4, 1, 1)
}

// finalDeliveriesStay: a final delivery cannot be changed, and is not open.
func finalDeliveriesStay(t *testing.T, _ store.Store, q store.Queue, _ store.Minions) {
	ctx := t.Context()
	o, list := makeOrder(0, "web1")
	saveOrder(t, q, o, list)
	// open checks how many deliveries are open.
	open := func(want int) {
		t.Helper()
		if n, err := q.CountOpen(ctx, ""); err != nil || n != want {
			t.Fatalf("%d are open instead of %d, %v", n, want, err)
		}
	}
	open(1)
	d := list[0]
	d.State, d.Reason, d.Due = store.Cancelled, "enough", time.Time{}
	if err := q.SwapDelivery(ctx, &d); err != nil {
		t.Fatal(err)
	}
	open(0)
	// A late return must not replace the final state.
	d.State = store.Returned
	if err := q.SwapDelivery(ctx, &d); !errors.Is(err, store.ErrChanged) {
		t.Fatal(err)
	}
	// The same error for a delivery that does not exist: the caller reads it again in either case.
	d.JID = makeJob(1).JID
	if err := q.SwapDelivery(ctx, &d); !errors.Is(err, store.ErrChanged) {
		t.Fatal("of an unknown job:", err)
	}
	got, err := q.Deliveries(ctx, store.DeliveryFilter{Minion: "web1"})
	if err != nil || len(got) != 1 || got[0].State != store.Cancelled || got[0].Reason != "enough" {
		t.Fatal(got, err)
	}
	// A final delivery is never due.
	if got, err := q.Deliveries(ctx, store.DeliveryFilter{Due: Made.Add(time.Hour)}); err != nil ||
		len(got) != 0 {
		t.Fatal(got, err)
	}
}

// purgeKeepsOpenOrders: an old job stays while one of its deliveries is open.
func purgeKeepsOpenOrders(t *testing.T, s store.Store, q store.Queue, _ store.Minions) {
	ctx := t.Context()
	// Order 1 has one open delivery.
	for n := range 3 {
		o, list := makeOrder(n, "web1", "web2")
		for i := range list {
			if n != 1 || i == 0 {
				list[i].State = store.Returned
			}
		}
		saveOrder(t, q, o, list)
		if err := s.SaveJob(ctx, makeJob(n)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.SaveReturn(ctx, makeReturn(makeJob(n), "web1", true)); err != nil {
			t.Fatal(err)
		}
	}
	// Orders 0 and 1 are old; only order 0 may go.
	if n, err := s.Purge(ctx, makeJob(2).Created); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	// Everything of an order goes together: deliveries, job and returns.
	for n, there := range []bool{false, true, true} {
		o, _ := makeOrder(n)
		_, err := q.Order(ctx, o.ID)
		list, err2 := q.Deliveries(ctx, store.DeliveryFilter{JID: o.JID})
		rets, err3 := s.Returns(ctx, o.JID)
		if there != (err == nil) || there != (len(list) == 2) || there != (len(rets) == 1) ||
			err2 != nil || err3 != nil {
			t.Errorf("order %d: %v %v %v", n, err, list, rets)
		}
	}
}

// minions: the records of minions known in advance, with their versions and filters.
func minions(t *testing.T, _ store.Store, _ store.Queue, s store.Minions) {
	ctx := t.Context()
	a := store.Minion{ID: "a", Tenant: "blue",
		Spec: map[string]any{"grains": map[string]any{"role": "db"}, "n": int64(3)}}
	if err := s.SwapMinion(ctx, &a); err != nil || a.Version != 1 {
		t.Fatal(a, err)
	}
	// All fields come back, nested values too.
	if got, err := s.Minion(ctx, "a"); cmp.Diff(a, got) != "" || err != nil {
		t.Fatal(cmp.Diff(a, got), err)
	}
	// Creating twice is refused.
	again := store.Minion{ID: "a"}
	if err := s.SwapMinion(ctx, &again); !errors.Is(err, store.ErrExists) {
		t.Fatal(err)
	}
	// Eight masters change the same version.
	var won atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			m := a
			m.Joined = true
			switch err := s.SwapMinion(context.Background(), &m); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, store.ErrChanged):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Fatal(won.Load(), "changed it")
	}
	// Sorted by id, whatever the order of creation.
	for _, m := range []store.Minion{{ID: "c", Tenant: "blue"}, {ID: "b", Tenant: "red"},
		{ID: "d", Tenant: "blue"}} {
		if err := s.SwapMinion(ctx, &m); err != nil {
			t.Fatal(err)
		}
	}
	// Filters combine; ids may repeat and be unknown.
	for _, c := range []struct {
		name string
		f    store.MinionFilter
		want string
	}{
		{"all", store.MinionFilter{}, "abcd"},
		{"tenant", store.MinionFilter{Tenant: "blue"}, "acd"},
		{"absent", store.MinionFilter{Absent: true}, "bcd"},
		{"both", store.MinionFilter{Tenant: "blue", Absent: true}, "cd"},
		{"page", store.MinionFilter{After: "a", Limit: 2}, "bc"},
		{"of ids", store.MinionFilter{IDs: []string{"d", "x", "a", "d"}}, "ad"},
		{"of one id", store.MinionFilter{IDs: []string{"b"}}, "b"},
		{"of ids, absent and of a tenant",
			store.MinionFilter{IDs: []string{"b", "c", "a"}, Absent: true, Tenant: "blue"}, "c"},
		// Many ids, which a store may have to split into several statements.
		{"of many ids",
			store.MinionFilter{IDs: append(strings.Split(strings.Repeat("yz", 200), ""), "c", "b")},
			"bc"},
		{"of no ids", store.MinionFilter{IDs: []string{}}, ""},
		{"without specs", store.MinionFilter{Absent: true, NoSpec: true}, "bcd"},
		{"of ids, without specs", store.MinionFilter{IDs: []string{"a"}, NoSpec: true}, "a"},
	} {
		list, err := s.Minions(ctx, c.f)
		got := ""
		for _, m := range list {
			got += m.ID
			if c.f.NoSpec && m.Spec != nil {
				t.Errorf("%s: %v", c.name, m.Spec)
			}
			if m.Size == 0 {
				t.Errorf("%s: %s has no size", c.name, m.ID)
			}
		}
		if got != c.want || err != nil {
			t.Errorf("%s: %q %v", c.name, got, err)
		}
	}
	// Deleting twice is an error, and a stale change does not bring the record back.
	if err := s.DeleteMinion(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteMinion(ctx, "a"); !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := s.Minion(ctx, "a"); !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	if err := s.SwapMinion(ctx, &a); !errors.Is(err, store.ErrChanged) {
		t.Fatal("a change brought it back:", err)
	}
}
