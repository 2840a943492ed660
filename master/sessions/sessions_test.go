package sessions

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/crypt"
)

// TestSweepSessions: a session goes with its key, and not because its minion signed in while the keys were listed.
func TestSweepSessions(t *testing.T) {
	s, err := Open(t.TempDir(), time.Hour, time.Minute, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	key, err := crypt.GenerateKey(2048)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(id string) {
		t.Helper()
		if _, err := s.Issue(id, key.Public()); err != nil {
			t.Fatal(err)
		}
	}
	want := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			if s.Get(id) == nil {
				t.Errorf("%s has no session", id)
			}
		}
		if len(s.all) != len(ids) {
			t.Errorf("%d sessions, want those of %q", len(s.all), ids)
		}
	}
	issue("gone")
	issue("there")
	s.Sweep(func() ([]string, error) { return nil, errors.New("cannot list") }, time.Now())
	want("gone", "there")
	s.Sweep(func() ([]string, error) {
		list := []string{"there"}
		issue("new") // its key was accepted after the list was made
		return list, nil
	}, time.Now())
	want("new", "there")
}
