package events_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/events"
)

// take reads n events after a cursor. It returns their tags, with "!" for a gap, and the last cursor.
func take(t *testing.T, g *events.Log, cursor string, n int) (string, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var tags []string
	for e := range g.Follow(ctx, cursor, func(tag string) bool { return !strings.HasPrefix(tag, "other") }) {
		tag := e.Tag
		if e.Missed > 0 {
			tag = "!"
		}
		tags, cursor = append(tags, tag), e.Cursor
		if len(tags) == n {
			break
		}
	}
	return strings.Join(tags, " "), cursor
}

func TestLogGoesOnWhereAListenerWas(t *testing.T) {
	b := events.New(nil)
	g := events.NewLog(b, events.LogLimits{Events: 4})
	defer g.Close()
	start := g.Cursor()
	for i := range 3 {
		b.Publish(fmt.Sprint("t", i), nil)
		b.Publish("other", nil)
	}
	// With the next one seven were published, and the log keeps the last four.
	b.Publish("t3", nil)
	if c := g.Cursor(); !strings.HasSuffix(c, "-7") {
		t.Fatalf("%s: an event that was published is not behind the cursor", c)
	}
	got, cursor := take(t, g, start, 3)
	if got != "! t2 t3" {
		t.Fatal(got)
	}
	b.Publish("t4", nil)
	b.Publish("t5", nil)
	if got, cursor = take(t, g, cursor, 1); got != "t4" {
		t.Fatal(got)
	}
	if got, _ = take(t, g, cursor, 1); got != "t5" {
		t.Fatal(got)
	}
	for _, strange := range []string{"x", "another-1", strings.Split(start, "-")[0] + "-99", "-"} {
		if got, _ := take(t, g, strange, 2); !strings.HasPrefix(got, "! t") {
			t.Errorf("%q: %s", strange, got)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for e := range g.Follow(ctx, "", nil) {
		t.Error(e)
	}
	g.Close()
	for e := range g.Follow(t.Context(), g.Cursor(), nil) {
		t.Error(e)
	}
}
