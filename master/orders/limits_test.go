package orders

import (
	"context"
	"errors"
	"testing"

	"github.com/brine-salt/brine/master/store"
)

// slowCount is a queue whose counts block until the test sends their results.
type slowCount struct {
	store.Queue
	begun  chan struct{}
	result chan any // int or error
}

func (q slowCount) CountOpen(ctx context.Context, _ string) (int, error) {
	q.begun <- struct{}{}
	select {
	case x := <-q.result:
		if err, ok := x.(error); ok {
			return 0, err
		}
		return x.(int), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// TestRoomWhileCounting: Reserve waits for the database's count only if there is no count yet or it left no room,
// and no longer than its context.
func TestRoomWhileCounting(t *testing.T) {
	q := slowCount{begun: make(chan struct{}), result: make(chan any)}
	d := New(Options{Queue: q, Store: store.NewMemory(), ID: "m", MaxUnfinished: 10})
	ctx, cancel := context.WithCancel(t.Context())
	first, third := make(chan error, 1), make(chan error, 1)
	go func() { first <- d.Reserve(ctx, "", 1) }()
	<-q.begun
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := d.Reserve(gone, "", 1); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	go func() { third <- d.Reserve(t.Context(), "", 1) }()
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	<-q.begun // the third one counts itself
	q.result <- 5
	if err := <-third; err != nil {
		t.Fatal(err)
	}

	old := func() {
		d.backlog.mu.Lock()
		defer d.backlog.mu.Unlock()
		d.backlog.at = d.backlog.at.Add(-2 * countLife)
	}
	old()
	go func() { first <- d.Reserve(t.Context(), "", 1) }()
	<-q.begun
	if err := d.Reserve(t.Context(), "", 3); err != nil { // 5 there, and 1
		t.Fatal(err)
	}
	if err := d.Reserve(t.Context(), "", 4); err != nil { // 9
		t.Fatal(err)
	}
	if err := d.Reserve(gone, "", 1); !errors.Is(err, context.Canceled) { // the last count leaves no room: this one waits
		t.Fatal(err)
	}
	q.result <- 2
	if err := <-first; err != nil { // 2 there, and 7 since
		t.Fatal(err)
	}
	if b := &d.backlog; b.n != 10 {
		t.Fatalf("%d are open, want 10", b.n)
	}

	old()
	why := errors.New("no disk")
	go func() { first <- d.Reserve(t.Context(), "", 1) }()
	<-q.begun
	q.result <- why
	if err := <-first; !errors.Is(err, why) {
		t.Fatal(err)
	}
	go func() { first <- d.Reserve(t.Context(), "", 1) }()
	<-q.begun
	q.result <- 10
	if err := <-first; !errors.Is(err, ErrBusy) {
		t.Fatal(err)
	}
}
