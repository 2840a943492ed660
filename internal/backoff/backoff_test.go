package backoff

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestWindowDoublesToTheLimit(t *testing.T) {
	b := Backoff{Base: time.Second, Max: 5 * time.Second}
	for i, want := range []time.Duration{1, 2, 4, 5, 5, 5} {
		if got := b.Window(); got != want*time.Second {
			t.Errorf("window %d = %v, want %v", i, got, want*time.Second)
		}
		if d := b.Next(); d < 0 || d > want*time.Second {
			t.Errorf("delay %d = %v, outside of its window", i, d)
		}
	}
	if b.Failures() != 6 {
		t.Errorf("failures = %d, want 6", b.Failures())
	}
	b.Reset()
	if got := b.Window(); got != time.Second {
		t.Errorf("window after Reset = %v", got)
	}
	b = Backoff{Base: time.Hour, Max: time.Second}
	if got := b.Window(); got != time.Hour {
		t.Errorf("window with a limit below the base = %v", got)
	}
}

func TestEndlessFailuresDoNotOverflow(t *testing.T) {
	b := Backoff{}
	for range 10_000 {
		if d := b.Next(); d < 0 || d > time.Minute {
			t.Fatalf("delay %v", d)
		}
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if !Sleep(t.Context(), time.Hour) || time.Since(begin) != time.Hour {
			t.Errorf("slept %v", time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if Sleep(ctx, time.Hour) {
			t.Error("Sleep did not notice the end of its context")
		}
		if Sleep(ctx, 0) {
			t.Error("Sleep said true after the end of its context")
		}
	})
}
