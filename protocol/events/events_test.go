package events_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/events"
)

func next(t *testing.T, s *events.Subscription) events.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	e, err := s.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestOrderAndPrefix(t *testing.T) {
	b := events.New(func() time.Time { return time.Unix(1700000000, 0) })
	all := b.Subscribe(events.SubscribeOptions{})
	jobs := b.Subscribe(events.SubscribeOptions{Prefix: "salt/job/"})
	b.Publish("salt/auth", map[string]any{"id": "a"})
	b.Publish("salt/job/1/new", map[string]any{"jid": "1"})
	if e := next(t, all); e.Tag != "salt/auth" || e.Data["id"] != "a" || e.Data["_stamp"] == nil {
		t.Fatalf("%+v", e)
	}
	if e := next(t, all); e.Tag != "salt/job/1/new" {
		t.Fatalf("%+v", e)
	}
	if e := next(t, jobs); e.Text("jid") != "1" {
		t.Fatalf("%+v", e)
	}
}

func TestSlowListenerGetsAGapMarker(t *testing.T) {
	b := events.New(nil)
	s := b.Subscribe(events.SubscribeOptions{Buffer: 3})
	for i := range 10 {
		b.Publish(fmt.Sprint("t", i), nil)
	}
	var tags []string
	for range 3 {
		tags = append(tags, next(t, s).Tag)
	}
	if got := strings.Join(tags, " "); got != "t0 t1 t2" {
		t.Fatalf("kept %s", got)
	}
	if e := next(t, s); e.Missed != 7 {
		t.Fatalf("marker %+v", e)
	}
	b.Publish("after", nil)
	if e := next(t, s); e.Tag != "after" || s.Lost() != 7 {
		t.Fatalf("%+v lost %d", e, s.Lost())
	}
}

func TestMarkerComesBeforeLaterEvents(t *testing.T) {
	b := events.New(nil)
	s := b.Subscribe(events.SubscribeOptions{Buffer: 2})
	for _, tag := range []string{"a", "b", "lost"} {
		b.Publish(tag, nil)
	}
	next(t, s)
	b.Publish("c", nil)
	got := []string{next(t, s).Tag, fmt.Sprint(next(t, s).Missed), next(t, s).Tag}
	if strings.Join(got, " ") != "b 1 c" {
		t.Fatalf("got %v", got)
	}
}

func TestBytesAreBounded(t *testing.T) {
	b := events.New(nil)
	s := b.Subscribe(events.SubscribeOptions{Bytes: 10000})
	for range 5 {
		b.Publish("big", map[string]any{"x": strings.Repeat("y", 4000)})
	}
	next(t, s)
	next(t, s)
	if e := next(t, s); e.Missed != 3 {
		t.Fatalf("%+v", e)
	}
}

func TestCloseWakesListeners(t *testing.T) {
	b := events.New(nil)
	var wg sync.WaitGroup
	for _, closing := range []func(*events.Subscription){(*events.Subscription).Close, func(*events.Subscription) { b.Close() }} {
		s := b.Subscribe(events.SubscribeOptions{})
		errs := make(chan error, 3)
		for range 3 {
			wg.Go(func() {
				_, err := s.Next(context.Background())
				errs <- err
			})
		}
		closing(s)
		wg.Wait()
		for range 3 {
			if err := <-errs; !errors.Is(err, events.ErrClosed) {
				t.Fatal(err)
			}
		}
	}
	if b.Subscribers() != 0 {
		t.Fatal("subscriptions are left")
	}
	if _, err := b.Subscribe(events.SubscribeOptions{}).Next(t.Context()); !errors.Is(err, events.ErrClosed) {
		t.Fatal(err)
	}
	b.Publish("nobody", nil)
}

func TestPublishNeverBlocks(t *testing.T) {
	b := events.New(nil)
	for range 5 {
		b.Subscribe(events.SubscribeOptions{Buffer: 1})
	}
	done := make(chan struct{})
	go func() {
		for i := range 5000 {
			b.Publish(fmt.Sprint(i), nil)
		}
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("publishing blocks")
	}
}

func TestAllStops(t *testing.T) {
	b := events.New(nil)
	s := b.Subscribe(events.SubscribeOptions{})
	b.Publish("1", nil)
	b.Publish("2", nil)
	n := 0
	for range s.All(t.Context()) {
		if n++; n == 2 {
			s.Close()
		}
	}
	if n != 2 {
		t.Fatal(n)
	}
}
