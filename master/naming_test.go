package master

import (
	"testing"
	"time"
)

// TestStorm: many sign-ins within a second are a storm, which ends when they do.
func TestStorm(t *testing.T) {
	n := newNamer(&Master{counts: newCounters()})
	now := time.Unix(1_000_000_000, 0)
	for _, step := range []struct {
		after time.Duration
		count int
		want  bool
	}{{0, 0, false}, {time.Second, 10, false}, {time.Second, 200, true}, {500 * time.Millisecond, 0, true}, {time.Second, 0, false}, {time.Hour, 1000, false}} {
		now = now.Add(step.after)
		for range step.count {
			n.m.counts.signIn("accept")
		}
		if got := n.storm(now); got != step.want {
			t.Errorf("%d sign-ins in %v: storm %v", step.count, step.after, got)
		}
	}
}
