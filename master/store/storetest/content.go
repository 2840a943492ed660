package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/store"
)

// contentsOf returns the store's Contents. Every queue must have them.
func contentsOf(t *testing.T, s store.Store) store.Contents {
	t.Helper()
	// Found through the wrappers that a store may have around it.
	c, ok := store.ContentsOf(s)
	if !ok {
		t.Fatal("the store keeps no contents")
	}
	return c
}

// pieceOf returns the n-th piece of the suite, which contains every byte.
func pieceOf(n int) []byte {
	b := make([]byte, 300<<10)
	for i := range b {
		b[i] = byte(i + n)
	}
	return b
}

// savePieces saves the first n pieces of a content.
func savePieces(t *testing.T, c store.Contents, key string, made time.Time, n int) {
	t.Helper()
	for i := range n {
		if err := c.SavePiece(t.Context(), key, i, made, pieceOf(i)); err != nil {
			t.Fatal(err)
		}
	}
}

// hasPieces returns how many of n pieces exist, and checks their content.
func hasPieces(t *testing.T, c store.Contents, key string, n int) (there int) {
	t.Helper()
	for i := range n {
		b, err := c.Piece(t.Context(), key, i)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			t.Fatal(err)
		case !bytes.Equal(b, pieceOf(i)):
			t.Fatalf("piece %d of %s is another one: %d bytes", i, key, len(b))
		default:
			there++
		}
	}
	return there
}

// endDelivery makes a delivery final.
func endDelivery(t *testing.T, q store.Queue, jid, minion string) {
	t.Helper()
	ds, err := q.Deliveries(t.Context(), store.DeliveryFilter{JID: jid, Minion: minion})
	if err != nil || len(ds) != 1 {
		t.Fatal(ds, err)
	}
	ds[0].State = store.Returned
	if err := q.SwapDelivery(t.Context(), &ds[0]); err != nil {
		t.Fatal(err)
	}
}

// contentGoesWithTheLastDelivery: the pieces of an order remain until the last delivery is final, and are removed
// then.
func contentGoesWithTheLastDelivery(t *testing.T, s store.Store, q store.Queue, _ store.Minions) {
	c := contentsOf(t, s)
	o, list := makeOrder(0, "web1", "web2")
	o.Content = "key"
	savePieces(t, c, "key", o.Created, 3)
	// Content without an order must not be touched.
	savePieces(t, c, "other", o.Created, 2)
	if n, err := c.ContentSize(t.Context(), ""); err != nil || n != 5*300<<10 {
		t.Fatal(n, err)
	}
	for prefix, want := range map[string]int64{
		"key": 3 * 300 << 10, "ke": 3 * 300 << 10, "KEY": 0, "keys": 0, "o": 2 * 300 << 10,
	} {
		if n, err := c.ContentSize(t.Context(), prefix); err != nil || n != want {
			t.Errorf("%q: %d bytes, not %d, %v", prefix, n, want, err)
		}
	}
	saveOrder(t, q, o, list)
	// The order names its content, which cannot be found otherwise.
	if got, err := q.Order(t.Context(), o.ID); err != nil || cmp.Diff(o, got) != "" {
		t.Fatal(cmp.Diff(o, got), err)
	}
	// A delivery says that its order has content, so that no look-up is needed for those without.
	ds, err := q.Deliveries(t.Context(), store.DeliveryFilter{JID: o.JID})
	if err != nil || !ds[0].Carries {
		t.Fatal(ds, err)
	}
	// A change that is not final keeps the content.
	ds[0].State = store.Sent
	if err := q.SwapDelivery(t.Context(), &ds[0]); err != nil {
		t.Fatal(err)
	}
	endDelivery(t, q, o.JID, "web1")
	if n := hasPieces(t, c, "key", 3); n != 3 {
		t.Fatalf("%d pieces are there while a delivery is open", n)
	}
	endDelivery(t, q, o.JID, "web2")
	if n := hasPieces(t, c, "key", 3); n != 0 {
		t.Fatalf("%d pieces are there after the end", n)
	}
	if n := hasPieces(t, c, "other", 2); n != 2 {
		t.Fatalf("of another order, %d pieces are there", n)
	}
	// Dropping twice is no error.
	for range 2 {
		if err := c.DropContent(t.Context(), "other"); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := c.ContentSize(t.Context(), ""); err != nil || n != 0 {
		t.Fatal(n, err)
	}
}

// contentOfTwoThatEndAtOnce: if the last deliveries of an order end at the same moment, its content is removed.
func contentOfTwoThatEndAtOnce(t *testing.T, s store.Store, q store.Queue, _ store.Minions) {
	c := contentsOf(t, s)
	// Ten rounds, as the race is rare.
	for n := range 10 {
		o, list := makeOrder(n, "web1", "web2", "web3", "web4")
		o.Content = fmt.Sprint("key", n)
		savePieces(t, c, o.Content, o.Created, 1)
		saveOrder(t, q, o, list)
		var wg sync.WaitGroup
		// All deliveries end in goroutines of their own; each sees others that are still open.
		for _, d := range list {
			wg.Go(func() {
				d.Carries, d.State = true, store.Lost
				if err := q.SwapDelivery(t.Context(), &d); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := hasPieces(t, c, o.Content, 1); n != 0 {
			t.Fatal("the content is there after the end")
		}
	}
}

// contentIsPurged: pieces without an order are removed once they are old.
func contentIsPurged(t *testing.T, s store.Store, q store.Queue, _ store.Minions) {
	c := contentsOf(t, s)
	// One content has an order, one was broken off, and one is still being uploaded.
	o, list := makeOrder(0, "web1")
	o.Content = "owned"
	for _, key := range []string{"owned", "broken off"} {
		savePieces(t, c, key, o.Created, 2)
	}
	savePieces(t, c, "under way", o.Created.Add(time.Hour), 2)
	saveOrder(t, q, o, list)
	if n, err := c.PurgeContents(t.Context(), o.Created.Add(time.Minute)); err != nil || n != 2 {
		t.Fatal(n, err)
	}
	for key, want := range map[string]int{"owned": 2, "broken off": 0, "under way": 2} {
		if n := hasPieces(t, c, key, 2); n != want {
			t.Errorf("%s: %d pieces", key, n)
		}
	}
}

// ordersByLabel: filters select by several labels, by tenant, and in pages.
func ordersByLabel(t *testing.T, s store.Store, q store.Queue, _ store.Minions) {
	l, ok := store.LabelsOf(s)
	if !ok {
		t.Fatal("the store cannot find orders")
	}
	// Labels may be long and hold any character.
	long := string(pieceOf(0)[:2000])
	for n := range 6 {
		o, list := makeOrder(n, "web1")
		o.Labels = map[string]string{"stack": fmt.Sprint(n % 2), "é\x00": long, "n": fmt.Sprint(n)}
		// An order without labels must not match any.
		if n == 5 {
			o.Labels, o.Tenant = nil, "green"
		}
		saveOrder(t, q, o, list)
		if err := s.SaveJob(t.Context(), makeJob(n)); err != nil {
			t.Fatal(err)
		}
	}
	// ids returns the orders that a filter selects.
	ids := func(f store.OrderFilter) (out []string) {
		t.Helper()
		list, err := l.Orders(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			out = append(out, o.ID)
		}
		return out
	}
	// id returns the ids of the suite's orders.
	id := func(list ...int) (out []string) {
		for _, n := range list {
			o, _ := makeOrder(n)
			out = append(out, o.ID)
		}
		return out
	}
	// Filters combine, and pages follow the order of creation.
	for _, c := range []struct {
		f    store.OrderFilter
		want []string
	}{
		{store.OrderFilter{}, id(0, 1, 2, 3, 4, 5)},
		{store.OrderFilter{Limit: 2}, id(0, 1)},
		{store.OrderFilter{Limit: 2, After: makeJob(1).JID}, id(2, 3)},
		{store.OrderFilter{Tenant: "green"}, id(5)},
		{store.OrderFilter{Labels: map[string]string{"stack": "0"}}, id(0, 2, 4)},
		{store.OrderFilter{Labels: map[string]string{"stack": "0"}, Limit: 1,
			After: makeJob(0).JID}, id(2)},
		{store.OrderFilter{Labels: map[string]string{"stack": "0"}, Tenant: "green"}, nil},
		{store.OrderFilter{Labels: map[string]string{"stack": "1", "é\x00": long, "n": "3"}},
			id(3)},
		{store.OrderFilter{Labels: map[string]string{"stack": "1", "n": "2"}}, nil},
		{store.OrderFilter{Labels: map[string]string{"é\x00": long[1:]}}, nil},
		{store.OrderFilter{Labels: map[string]string{"": ""}}, nil},
	} {
		if d := cmp.Diff(c.want, ids(c.f)); d != "" {
			t.Errorf("%+v: %s", c.f, d)
		}
	}
	// Purging must not take what is open, and must remove the labels of what it takes.
	if _, err := s.Purge(t.Context(), makeJob(3).Created); err != nil {
		t.Fatal(err)
	}
	if got := ids(store.OrderFilter{Labels: map[string]string{"stack": "0"}}); len(got) != 3 {
		t.Errorf("open orders were purged: %v", got)
	}
	for n := range 3 {
		endDelivery(t, q, makeJob(n).JID, "web1")
	}
	if _, err := s.Purge(t.Context(), makeJob(3).Created); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(id(4),
		ids(store.OrderFilter{Labels: map[string]string{"stack": "0"}})); d != "" {
		t.Error(d)
	}
}
