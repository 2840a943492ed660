package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/store"
)

// RunShared runs the suite of stores that several masters share. open opens one empty database twice.
func RunShared(t *testing.T, open func(t *testing.T) [2]store.Shared) {
	// with runs one test on two stores of one database.
	with := func(name string, f func(t *testing.T, a, b store.Shared)) {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			defer func() {
				for _, s := range s {
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				}
			}()
			f(t, s[0], s[1])
		})
	}
	with("Messages", messages)
	with("MessagesOfMany", messagesOfMany)
	with("LargeMessages", largeMessages)
	with("MessagesAreMissed", messagesAreMissed)
	with("ReturnsTell", returnsTell)
	with("OrdersTell", ordersTell)
	with("Batches", batches)
	with("Keys", keysAreSwapped)
	with("MessagesSince", messagesSince)
	with("KeysAmongMany", keysAmongMany)
	with("Secrets", secrets)
	with("Leases", leases)
	with("Once", onceForAll)
	with("Data", dataEpochs)
}

// A listener collects what Follow passes on.
type listener struct {
	// got receives the messages, missed a value for each time that some were missed.
	got    chan store.Message
	missed chan struct{}
}

// waitTime is for everything that happens sooner or later.
const waitTime = 2 * time.Minute

// listen follows, and returns when messages arrive.
func listen(t *testing.T, s, other store.Shared, self string) *listener {
	t.Helper()
	// Large enough that Follow never waits for the test.
	l := &listener{got: make(chan store.Message, 10000), missed: make(chan struct{}, 100)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	ready := make(chan struct{})
	// Further probes may arrive after the first.
	var once sync.Once
	go func() {
		done <- s.Follow(ctx, self, func(list []store.Message) {
			if list == nil {
				l.missed <- struct{}{}
			}
			for _, m := range list {
				if m.Kind == "ready" {
					once.Do(func() { close(ready) })
					continue
				}
				l.got <- m
			}
		})
	}()
	// Following ends with the test, before the store is closed.
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !strings.Contains(err.Error(), "closed") {
			t.Error(err)
		}
	})
	// Follow begins at some moment after its call, so the other store probes until a message arrives.
	for end := time.Now().Add(waitTime); ; {
		if err := other.Tell(context.Background(),
			store.Message{From: "other", To: self, Kind: "ready"}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ready:
			return l
		case <-time.After(50 * time.Millisecond):
			if time.Now().After(end) {
				t.Fatal("nothing arrives")
			}
		}
	}
}

// next returns the next message, or fails the test.
func (l *listener) next(t *testing.T) store.Message {
	t.Helper()
	select {
	case m := <-l.got:
		return m
	case <-time.After(waitTime):
		t.Fatal("no message")
	}
	return store.Message{}
}

// messages: a message reaches those it is for, with every byte, and never its sender.
func messages(t *testing.T, a, b store.Shared) {
	ctx := t.Context()
	at := listen(t, a, b, "a")
	if err := b.Tell(ctx, store.Message{From: "b", Kind: `'); "ö\'`, Body: []byte{1, 0, 255}},
		store.Message{From: "a", Kind: "own"},
		store.Message{From: "b", To: "c", Kind: "not for a"},
		store.Message{From: "b", To: "a", Kind: "two"}); err != nil {
		t.Fatal(err)
	}
	one, two := at.next(t), at.next(t)
	if one.Kind != `'); "ö\'` || string(one.Body) != "\x01\x00\xff" || one.From != "b" ||
		two.Kind != "two" || len(two.Body) != 0 || two.To != "a" {
		t.Errorf("%+v, %+v", one, two)
	}
	// Messages for others have numbers as well.
	if two.Seq != one.Seq+3 {
		t.Errorf("numbers %d and %d", one.Seq, two.Seq)
	}
}

// messagesOfMany: all masters see the same order, without gaps.
func messagesOfMany(t *testing.T, a, b store.Shared) {
	// Two masters follow, and both write.
	const writers, each = 6, 20
	at, bt := listen(t, a, b, "a"), listen(t, b, a, "b")
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				if err := []store.Shared{a, b}[w%2].Tell(context.Background(),
					store.Message{From: "x", Kind: fmt.Sprint(w),
						Body: []byte{byte(n)}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var ofA, ofB []int64
	last := map[string]int{}
	for range writers * each {
		m := at.next(t)
		ofA = append(ofA, m.Seq)
		ofB = append(ofB, bt.next(t).Seq)
		// The messages of one writer keep their order.
		if n, ok := last[m.Kind]; ok && n+1 != int(m.Body[0]) {
			t.Errorf("writer %s: %d after %d", m.Kind, m.Body[0], n)
		}
		last[m.Kind] = int(m.Body[0])
	}
	// Both masters see the same order.
	if !slices.Equal(ofA, ofB) || !slices.IsSorted(ofA) {
		t.Errorf("orders differ: %v, %v", ofA, ofB)
	}
}

// largeMessages arrive whole, and in order with small ones.
func largeMessages(t *testing.T, a, b store.Shared) {
	at := listen(t, a, b, "a")
	// More than one row of a database can hold.
	large := bytes.Repeat([]byte{0, 255, '\'', '\\'}, 400_000)
	if err := b.Tell(t.Context(), store.Message{From: "b", Kind: "1"},
		store.Message{From: "b", Kind: "2", Body: large},
		store.Message{From: "b", Kind: "3"}); err != nil {
		t.Fatal(err)
	}
	if err := b.Tell(t.Context(),
		store.Message{From: "b", Kind: "4", Body: []byte{4}}); err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]byte{nil, large, nil, {4}} {
		if m := at.next(t); m.Kind != fmt.Sprint(i+1) || !bytes.Equal(m.Body, want) {
			t.Fatalf("message %d is %q with %d bytes", i+1, m.Kind, len(m.Body))
		}
	}
}

// messagesAreMissed: a master that was away too long is told that it missed messages.
func messagesAreMissed(t *testing.T, a, b store.Shared) {
	ctx := t.Context()
	blocked, free := make(chan struct{}), make(chan struct{})
	var missed atomic.Bool
	got := make(chan string, 100)
	fctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	var once sync.Once
	// The reader is blocked inside of its function, like a master that is overloaded.
	go func() {
		done <- a.Follow(fctx, "a", func(list []store.Message) {
			if list == nil {
				missed.Store(true)
			}
			for _, m := range list {
				if m.Kind == "block" {
					once.Do(func() { close(blocked); <-free })
					continue
				}
				got <- m.Kind
			}
		})
	}()
	// Sent until the reader has begun.
	for waiting := true; waiting; {
		if err := b.Tell(ctx, store.Message{From: "b", Kind: "block"}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-blocked:
			waiting = false
		case <-time.After(20 * time.Millisecond):
		}
	}
	for range 20 {
		if err := b.Tell(ctx, store.Message{From: "b", Kind: "lost"}); err != nil {
			t.Fatal(err)
		}
	}
	// One message is kept, so the reader has missed the others.
	if err := b.PurgeShared(ctx, time.Time{}, time.Time{}, 1); err != nil {
		t.Fatal(err)
	}
	if err := b.Tell(ctx, store.Message{From: "b", Kind: "last"}); err != nil {
		t.Fatal(err)
	}
	// The reader goes on, and must find the gap.
	close(free)
	for end := time.After(waitTime); ; {
		select {
		case kind := <-got:
			if kind == "lost" {
				continue // the newest one is kept
			}
		case <-end:
			t.Fatal("the last message does not come")
		}
		break
	}
	if !missed.Load() {
		t.Error("the gap was not told")
	}
	// Follow ends without an error when its context ends.
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// returnsTell: the first return sends its message, later ones send none.
func returnsTell(t *testing.T, a, b store.Shared) {
	ctx := t.Context()
	at := listen(t, a, b, "a")
	// An unknown return is ErrNotFound.
	if _, err := a.Return(ctx, makeJob(0).JID, "web1"); !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	// The second return of the minion is not the first, so its message is not sent.
	for i, want := range []bool{true, false} {
		if first, err := b.SaveReturnTell(ctx, makeReturn(makeJob(0), "web1", int64(i)),
			store.Message{From: "b", Kind: "ret", Body: []byte{byte(i)}}); first != want ||
			err != nil {
			t.Fatal(first, err)
		}
	}
	// The last message shows that nothing else was sent between.
	if err := b.Tell(ctx, store.Message{From: "b", Kind: "end"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 2 {
		m := at.next(t)
		got = append(got, fmt.Sprint(m.Kind, m.Body))
	}
	if d := cmp.Diff([]string{"ret[0]", "end[]"}, got); d != "" {
		t.Error(d)
	}
	// The return of the first call is stored, with the message in the same transaction.
	if r, err := a.Return(ctx, makeJob(0).JID, "web1"); err != nil ||
		r.Load["return"] != int64(0) || r.ID != "web1" {
		t.Error(r, err)
	}
}

// ordersTell: an order sends its message, one that exists sends none.
func ordersTell(t *testing.T, a, b store.Shared) {
	ctx := t.Context()
	q, ok := store.QueueOf(b)
	if !ok {
		t.Skip("keeps no orders")
	}
	at := listen(t, a, b, "a")
	o := store.Order{ID: "o1", JID: makeJob(0).JID, Spec: map[string]any{"fun": "test.ping"},
		Created: Made}
	// The second order exists already.
	for i, want := range []error{nil, store.ErrExists} {
		err := b.SaveOrderTell(ctx, o,
			[]store.Delivery{{JID: o.JID, Minion: "web1", State: store.Waiting, Version: 1}},
			store.Message{From: "b", Kind: "expect", Body: []byte{byte(i)}})
		if !errors.Is(err, want) {
			t.Fatal(i, err)
		}
	}
	if err := b.Tell(ctx, store.Message{From: "b", Kind: "end"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 2 {
		m := at.next(t)
		got = append(got, fmt.Sprint(m.Kind, m.Body))
	}
	if d := cmp.Diff([]string{"expect[0]", "end[]"}, got); d != "" {
		t.Error(d)
	}
	// The deliveries are those of the first order.
	if list, err := q.Deliveries(ctx, store.DeliveryFilter{JID: o.JID}); err != nil ||
		len(list) != 1 || list[0].Minion != "web1" {
		t.Error(list, err)
	}
}

// batches: changes of one transaction do not make each other fail, whether they fail before they have changed
// anything or half-way. More messages than one statement writes arrive in order.
func batches(t *testing.T, a, b store.Shared) {
	ctx := t.Context()
	q, ok := store.QueueOf(b)
	if !ok {
		t.Skip("keeps no orders")
	}
	at := listen(t, a, b, "a")
	const n = 100
	var wg sync.WaitGroup
	var made, there atomic.Int64
	for i := range n {
		// Pairs of equal orders; every tenth is broken half-way.
		wg.Go(func() {
			o := store.Order{ID: fmt.Sprint("order", i/2), JID: fmt.Sprint("jid", i/2),
				Created: Made}
			ds := []store.Delivery{{Minion: "web1", State: store.Waiting, Version: 1}}
			if i%10 == 0 {
				// Its second delivery conflicts with its first one, after the order was written.
				o.ID, o.JID = fmt.Sprint("broken", i), fmt.Sprint("broken", i)
				ds = append(ds, ds[0])
			}
			switch err := q.SaveOrder(ctx, o, ds); {
			case err == nil:
				made.Add(1)
			case errors.Is(err, store.ErrExists):
				there.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// One of each pair is stored, and no broken one.
	if made.Load() != n/2 || there.Load() != n/2 {
		t.Errorf("%d orders were stored, %d were not; want %d", made.Load(), there.Load(), n/2)
	}
	// The transaction with the broken order kept the others.
	if _, err := q.Order(ctx, "broken0"); !errors.Is(err, store.ErrNotFound) {
		t.Error("half an order was stored:", err)
	}
	// More messages than one statement writes.
	list := make([]store.Message, n)
	for i := range list {
		list[i] = store.Message{From: "b", Kind: "many", Body: []byte{byte(i)}}
	}
	if err := b.Tell(ctx, list...); err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if m := at.next(t); m.Kind != "many" || m.Body[0] != byte(i) {
			t.Fatalf("message %d is %v", i, m)
		}
	}
}

// messagesSince: a master learns from the database which keys the others changed since a moment, and whether some of
// these changes may be missing.
func messagesSince(t *testing.T, a, b store.Shared) {
	ctx := t.Context()
	since := func(from int64, want []string, whole bool) int64 {
		t.Helper()
		bodies, newest, complete, err := a.MessagesSince(ctx, "a", "key", from)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range bodies {
			got = append(got, string(b))
		}
		if !slices.Equal(got, want) || complete != whole {
			t.Errorf("since %d: %q, complete %v; want %q, %v", from, got, complete, want, whole)
		}
		return newest
	}
	begin := since(-1, nil, false)
	since(begin, nil, true)
	r := store.KeyRecord{ID: "web1", Accepted: "one", Changed: Made}
	for _, id := range []string{"web1", "web2"} {
		r.ID = id
		m := store.Message{From: "b", Kind: "key", Body: []byte(id)}
		if ok, err := b.SwapKey(ctx, r, m); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if ok, err := b.SwapKey(ctx, r, m); ok || err != nil { // a stale epoch changes nothing
			t.Fatal(ok, err)
		}
	}
	// The own messages and those of other kinds are not among them.
	if err := b.Tell(ctx, store.Message{From: "a", Kind: "key", Body: []byte("own")},
		store.Message{From: "b", Kind: "event", Body: []byte("other")}); err != nil {
		t.Fatal(err)
	}
	end := since(begin, []string{"web1", "web2"}, true)
	if end != begin+4 {
		t.Errorf("the newest message is %d, want %d", end, begin+4)
	}
	since(begin+1, []string{"web2"}, true)
	since(end, nil, true)
	since(end+1, nil, false) // of another database
	if err := b.PurgeShared(ctx, time.Time{}, time.Time{}, 3); err != nil {
		t.Fatal(err)
	}
	since(begin, nil, false)
	since(begin+1, []string{"web2"}, true)
	since(end, nil, true)
}

// keysAreSwapped: a change with a stale epoch is refused; the lists and counts of each state follow the changes.
func keysAreSwapped(t *testing.T, a, b store.Shared) {
	ctx := t.Context()
	at := listen(t, a, b, "a")
	// A key that is not known is an empty record with epoch 0.
	r, err := b.Key(ctx, "web1")
	if err != nil || r.Epoch != 0 || r.ID != "web1" {
		t.Fatal(r, err)
	}
	before, err := a.KeyVersion(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r.Pending, r.Denied, r.Changed = "one", "two", Made
	// The second change has a stale epoch.
	for _, want := range []bool{true, false} {
		if ok, err := b.SwapKey(ctx, r, store.Message{From: "b", Kind: "key"}); ok != want ||
			err != nil {
			t.Fatal(ok, err)
		}
	}
	// One message for the one change.
	at.next(t)
	got, err := a.Key(ctx, "web1")
	if err != nil || got.Epoch != 1 || got.Pending != "one" || got.Denied != "two" ||
		got.Accepted != "" || !got.Changed.Equal(Made) {
		t.Fatal(got, err)
	}
	// The version tells masters that their copies are stale.
	if after, err := a.KeyVersion(ctx); err != nil || after == before {
		t.Error(after, before, err)
	}
	// A change of the other master makes this record stale.
	stale := got
	got.Accepted, got.Pending, got.Generation = "one", "", 7
	if ok, err := a.SwapKey(ctx, got, store.Message{From: "a"}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, err := b.SwapKey(ctx, stale, store.Message{From: "b"}); ok || err != nil {
		t.Fatal(ok, err)
	}
	// A key may be denied and accepted at once, as the new one of a known minion.
	for folder, want := range map[string][]string{"minions": {"web1"}, "minions_pre": nil,
		"minions_denied": {"web1"}, "minions_rejected": nil, "x": nil} {
		ids, err := b.KeyIDs(ctx, folder)
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("%s: %v %v", folder, ids, err)
		}
		if n, err := b.KeyCount(ctx, folder); n != len(want) || err != nil {
			t.Errorf("%s: %d %v", folder, n, err)
		}
	}
	if got, err = b.Key(ctx, "web1"); err != nil || got.Generation != 7 || got.Epoch != 2 {
		t.Error(got, err)
	}
}

// keysAmongMany: of several masters that create a key record at the same moment, one succeeds.
func keysAmongMany(t *testing.T, a, b store.Shared) {
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		// Both stores take part, four goroutines each.
		wg.Go(func() {
			ok, err := []store.Shared{a, b}[i%2].SwapKey(context.Background(),
				store.KeyRecord{ID: "web1", Pending: fmt.Sprint("key", i)},
				store.Message{From: "x"})
			if err != nil {
				t.Error(err)
			}
			if ok {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d were first", won.Load())
	}
}

// secrets: versions are added once, listed in order, and dropped.
func secrets(t *testing.T, a, b store.Shared) {
	ctx := t.Context()
	// Versions grow by one.
	for _, v := range []int64{1, 2, 3} {
		if ok, err := a.AddSecret(ctx,
			store.Secret{Name: "aes", Version: v, Created: Made, Body: []byte{byte(v)}},
			store.Message{From: "a"}); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	// A version that exists is not replaced: all masters must use one secret.
	if ok, err := b.AddSecret(ctx,
		store.Secret{Name: "aes", Version: 3, Created: Made, Body: []byte("other")},
		store.Message{From: "b"}); ok || err != nil {
		t.Fatal(ok, err)
	}
	// Older versions are dropped; those that may still be in use stay.
	if err := b.DropSecrets(ctx, "aes", 2); err != nil {
		t.Fatal(err)
	}
	got, err := b.Secrets(ctx, "aes")
	if err != nil || len(got) != 2 || got[0].Version != 2 || got[1].Version != 3 ||
		string(got[1].Body) != "\x03" || !got[1].Created.Equal(Made) {
		t.Fatal(got, err)
	}
}

// leases: one owner at a time, until the lease ends or is released.
func leases(t *testing.T, a, b store.Shared) {
	ctx := t.Context()
	// lease asks for the lease and checks the answer.
	lease := func(s store.Shared, owner string, life time.Duration, want bool) {
		t.Helper()
		if got, err := s.Lease(ctx, "x/1", owner, life); got != want || err != nil {
			t.Fatalf("%s: %v %v", owner, got, err)
		}
	}
	// The owner may renew it; no other master gets it.
	lease(a, "a", time.Hour, true)
	lease(b, "b", time.Hour, false)
	lease(a, "a", time.Hour, true)
	if got, err := b.Leases(ctx, "x/"); err != nil || len(got) != 1 || got["x/1"] != "a" {
		t.Fatal(got, err)
	}
	if err := b.Release(ctx, "x/1", "b"); err != nil { // not its own
		t.Fatal(err)
	}
	lease(b, "b", time.Hour, false)
	if err := a.Release(ctx, "x/1", "a"); err != nil {
		t.Fatal(err)
	}
	lease(b, "b", -time.Second, true) // ended already
	if got, err := b.Leases(ctx, "x/"); err != nil || len(got) != 0 {
		t.Fatal(got, err)
	}
	lease(a, "a", time.Hour, true)
	// Of many that ask at the same moment, one gets the lease.
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			ok, err := []store.Shared{a, b}[i%2].Lease(context.Background(), "many", fmt.Sprint(i),
				time.Hour)
			if err != nil {
				t.Error(err)
			}
			if ok {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d have the lease", won.Load())
	}
}

// onceForAll: a mark is new once for all masters.
func onceForAll(t *testing.T, a, b store.Shared) {
	ctx := t.Context()
	// Marks hold any bytes.
	mark := []byte("\x00123456789abcde\xff")
	// check marks, and reports whether it was new.
	check := func(s store.Shared, scope string, want bool) {
		t.Helper()
		if first, err := s.Once(ctx, scope, mark); first != want || err != nil {
			t.Fatal(first, err)
		}
	}
	// A scope is a minion: the same mark of another minion is new.
	check(a, "web1", true)
	check(b, "web1", false)
	check(b, "web2", true)
	// A purge forgets old marks.
	if err := a.PurgeShared(ctx, time.Time{}, time.Now().Add(time.Minute), 0); err != nil {
		t.Fatal(err)
	}
	check(b, "web1", true)
}

// dataEpochs: data with epochs; a stale epoch is refused.
func dataEpochs(t *testing.T, a, b store.Shared) {
	ctx := t.Context()
	// set changes a datum at an epoch; -1 means whatever it is now.
	set := func(s store.Shared, id, body string, epoch int64, want bool) {
		t.Helper()
		var text []byte
		if body != "" {
			text = []byte(body)
		}
		if ok, err := s.SetDatum(ctx, "mine", id, text, epoch); ok != want || err != nil {
			t.Fatal(ok, err)
		}
	}
	// get checks a datum and returns its epoch.
	get := func(s store.Shared, id, want string) int64 {
		t.Helper()
		body, epoch, err := s.Datum(ctx, "mine", id)
		if err != nil || string(body) != want {
			t.Fatalf("%q %v", body, err)
		}
		return epoch
	}
	if get(a, "web1", "") != 0 {
		t.Error("something is there")
	}
	// Epoch 0 creates; it fails if there is a datum.
	set(a, "web1", "one", 0, true)
	set(b, "web1", "two", 0, false)
	first := get(b, "web1", "one")
	set(b, "web1", "two", first, true)
	set(a, "web1", "three", first, false)
	set(a, "web1", "four", -1, true)
	set(b, "web2", "five", -1, true)
	get(a, "web2", "five")
	get(b, "web1", "four")
	if ids, err := b.DatumIDs(ctx, "mine"); err != nil ||
		!slices.Equal(ids, []string{"web1", "web2"}) {
		t.Fatal(ids, err)
	}
	// Many are read at once, more than a statement asks for.
	many := []string{"web2", "nobody"}
	for i := range 300 {
		id := fmt.Sprintf("many%03d", i)
		set(a, id, id, 0, true)
		many = append(many, id)
	}
	all, err := b.Data(ctx, "mine", append(many, "web1", "web1"))
	if err != nil || len(all) != 302 || string(all["web2"]) != "five" ||
		string(all["many299"]) != "many299" {
		t.Fatal(len(all), err)
	}
	if all, err := b.Data(ctx, "mine", nil); err != nil || len(all) != 0 {
		t.Fatal(all, err)
	}
	// Each content has an epoch of its own, also after a deletion.
	epochs, err := a.DataEpochs(ctx, "mine")
	if err != nil || len(epochs) != 302 || epochs["web1"] != get(b, "web1", "four") {
		t.Fatal(len(epochs), err)
	}
	// A nil body deletes.
	set(b, "web1", "", -1, true)
	get(a, "web1", "")
	set(b, "web1", "five", 0, true)
	if e := get(a, "web1", "five"); e == epochs["web1"] || e == first {
		t.Error("an epoch came again:", e)
	}
}

// BenchKeys lists the accepted keys among 100,000.
func BenchKeys(b *testing.B, s store.Shared) {
	const n, writers = 100_000, 256
	pem := strings.Repeat("x", 450)
	var wg sync.WaitGroup
	// Many writers, as one would take minutes.
	for w := range writers {
		wg.Go(func() {
			for i := w; i < n; i += writers {
				r := store.KeyRecord{ID: fmt.Sprintf("minion-%06d.example.org", i), Accepted: pem,
					Changed: Made}
				if _, err := s.SwapKey(context.Background(), r,
					store.Message{From: "x", Kind: "key"}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ResetTimer()
	for range b.N {
		ids, err := s.KeyIDs(b.Context(), "minions")
		if err != nil || len(ids) != n {
			b.Fatal(len(ids), err)
		}
	}
}
