package master_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol/events"
)

// TestHooksDoNotSlowTheBus checks that a hook that hangs and a hook that panics do not delay other hooks, and that
// the master waits for its hooks when it ends.
func TestHooksDoNotSlowTheBus(t *testing.T) {
	o := orderOptions()
	release := make(chan struct{})
	heard := make(chan string, 100)
	ended := make(chan struct{})
	o.Events.Hooks = []master.Hook{
		{Buffer: 1, Func: func(ctx context.Context, _ events.Event) {
			<-release
			<-ctx.Done()
			select {
			case <-ended:
			default:
				close(ended)
			}
		}},
		{Tags: []string{"brine/order/*"}, Func: func(context.Context, events.Event) { panic("oh") }},
		{Tags: []string{"salt/job/*/ret/*", "brine/order/*"}, Func: func(_ context.Context, e events.Event) {
			if e.Missed == 0 {
				heard <- strings.Split(e.Tag, "/")[0]
			}
		}},
	}
	r := serve(t, o)
	m := r.accepted("m", 1).subscribe()
	m.started()
	cast(t, r, order("a", "job.a", "m"))
	waitFor(t, r, "a", "m")
	for want := range map[string]bool{"salt": true, "brine": true} {
		for got := ""; got != want; {
			select {
			case got = <-heard:
				heard <- got // the other iteration may wait for it
			case <-time.After(patience):
				t.Fatal("not heard:", want)
			}
		}
	}
	close(release)
	r.end()
	<-ended
}

func TestFollow(t *testing.T) {
	r := serve(t, orderOptions())
	cursor := r.FollowCursor()
	m := r.accepted("m", 1).subscribe()
	m.started()
	first := cast(t, r, order("a", "job.a", "m"))
	waitFor(t, r, "a", "m")
	for range 2 { // following again from the same cursor returns the same event
		at := cursor
		for e := range r.Follow(within(t), at, "brine/order/*") {
			if e.Missed > 0 || e.Tag != "brine/order/"+first.JID+"/m" {
				t.Fatal(e)
			}
			at = e.Cursor
			break
		}
		if at == cursor {
			t.Fatal("no event")
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range r.Follow(context.Background(), "") {
		}
	}()
	r.end()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("Follow does not end with the master")
	}
}
