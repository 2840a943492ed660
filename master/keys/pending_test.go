package keys_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/master/keys"
)

// TestPendingFlood: ids that sign in only once do not keep out new minions for ever; a minion that keeps signing in
// keeps its place.
func TestPendingFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, keys.Options{MaxPending: 100})
		ask := func(id string) error {
			v, err := s.SignIn(id, text(0), keys.Policy{}, nil)
			if v.State != keys.Pending {
				t.Fatalf("%s: %+v", id, v)
			}
			return err
		}
		if err := ask("patient"); err != nil {
			t.Fatal(err)
		}
		for i := range 99 {
			if err := ask(fmt.Sprint("flood", i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := ask("new"); !errors.Is(err, keys.ErrPendingFull) {
			t.Fatalf("beyond the bound: %v", err)
		}
		for range 31 {
			time.Sleep(10 * time.Second)
			if err := ask("patient"); err != nil {
				t.Fatal(err)
			}
		}
		if err := ask("new"); !errors.Is(err, keys.ErrPendingFull) {
			t.Fatalf("before the stale keys were removed: %v", err)
		}
		synctest.Wait()
		if err := ask("new"); err != nil {
			t.Fatalf("after the stale keys were removed: %v", err)
		}
		got, err := s.List(keys.Pending)
		if err != nil || fmt.Sprint(got) != "[new patient]" {
			t.Errorf("pending: %v, %v", got, err)
		}
	})
}

// TestPendingSweepKeepsDecisions: a key that is accepted during the sweep stays.
func TestPendingSweepKeepsDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, keys.Options{MaxPending: 2})
		for _, id := range []string{"a", "b"} {
			if _, err := s.SignIn(id, text(0), keys.Policy{}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Accept("a", false, false); err != nil {
			t.Fatal(err)
		}
		if _, err := s.SignIn("c", text(0), keys.Policy{}, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		_, _ = s.SignIn("d", text(0), keys.Policy{}, nil) // full
		synctest.Wait()
		if k, err := s.Accepted("a"); err != nil || k.Text() != text(0) {
			t.Errorf("accepted key: %v", err)
		}
		if got, _ := s.List(keys.Pending); len(got) != 0 {
			t.Errorf("pending: %v", got)
		}
	})
}
