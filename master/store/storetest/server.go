package storetest

import (
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/store"
)

// RunServer runs all suites on a database server, and lets several masters write to one database at the same time.
// db may create databases; open opens one of them as a store, and raw opens it without one.
func RunServer(t *testing.T, db *sql.DB, open func(name string) (store.Shared, error),
	raw func(name string) (*sql.DB, error)) {
	var n atomic.Int64
	// fresh creates an empty database.
	fresh := func(t *testing.T) string {
		t.Helper()
		name := fmt.Sprintf("brine%d", n.Add(1))
		if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
			t.Fatal(err)
		}
		return name
	}
	// must opens a database as a store.
	must := func(t *testing.T, name string) store.Shared {
		t.Helper()
		s, err := open(name)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	t.Run("suite", func(t *testing.T) {
		Run(t, func(t *testing.T) store.Store { return must(t, fresh(t)) })
	})
	t.Run("shared", func(t *testing.T) {
		// Both stores use one database, like two masters.
		RunShared(t, func(t *testing.T) [2]store.Shared {
			name := fresh(t)
			return [2]store.Shared{must(t, name), must(t, name)}
		})
	})
	t.Run("migration", func(t *testing.T) {
		name := fresh(t)
		own, err := raw(name)
		if err != nil {
			t.Fatal(err)
		}
		defer own.Close()
		// exec changes the database without the store.
		exec := func(statement string) error {
			_, err := own.ExecContext(t.Context(), statement)
			return err
		}
		RunMigration(t, func(t *testing.T) store.Shared { return must(t, name) }, exec,
			"DELETE FROM brine_schema WHERE version > 1",
			"INSERT INTO brine_schema (version) VALUES (99)")
		if s, err := open(name); err == nil {
			s.Close()
			t.Error("a later version that forbids it was opened")
		}
	})
	t.Run("late commit", func(t *testing.T) {
		name := fresh(t)
		// Two stores, and a connection of the test's own for the transaction that is late.
		a, b := must(t, name), must(t, name)
		defer a.Close()
		defer b.Close()
		own, err := raw(name)
		if err != nil {
			t.Fatal(err)
		}
		defer own.Close()
		lateCommit(t, a, b, own)
	})
	t.Run("several masters", func(t *testing.T) {
		// All open the database at the same moment; the first one creates the tables.
		name := fresh(t)
		masters := make([]store.Store, 4)
		var wg sync.WaitGroup
		for i := range masters {
			wg.Go(func() {
				s, err := open(name)
				if err != nil {
					t.Error(err)
					return
				}
				masters[i] = s
			})
		}
		wg.Wait()
		// A store is missing after an error, so the test cannot go on.
		if t.Failed() {
			t.FailNow()
		}
		Shared(t, masters)
	})
}

// lateCommit: while the transaction that has a message's number has not ended, no other gets a later number. No
// reader thus sees the later one and skips the first. A transaction that is undone leaves no gap.
func lateCommit(t *testing.T, a, b store.Shared, own *sql.DB) {
	at := listen(t, a, b, "a")
	for _, undone := range []bool{false, true} {
		// The transaction takes the next number, and is left open.
		tx, err := own.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		for _, statement := range []string{
			"UPDATE brine_counter SET n = n + 1 WHERE name = 'relay'",
			"INSERT INTO brine_relay (seq, made, sender, receiver, kind, body) " +
				"SELECT n, 1, 'x', '', 'late', '' FROM brine_counter WHERE name = 'relay'",
		} {
			if _, err := tx.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		// The other master must wait for it.
		told := make(chan error, 1)
		go func() { told <- b.Tell(t.Context(), store.Message{From: "b", Kind: "next"}) }()
		select {
		case err := <-told:
			t.Fatalf("a message was written before one with a smaller number: %v", err)
		// A write that does not wait would be done by now.
		case <-time.After(200 * time.Millisecond):
		}
		// After a rollback the number is taken by the next message.
		want := []string{"late", "next"}
		if undone {
			want = want[1:]
			err = tx.Rollback()
		} else {
			err = tx.Commit()
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := <-told; err != nil {
			t.Fatal(err)
		}
		for _, kind := range want {
			if m := at.next(t); m.Kind != kind {
				t.Errorf("%q arrived, want %q", m.Kind, kind)
			}
		}
	}
	// A gap would make every master read its state again.
	select {
	case <-at.missed:
		t.Error("there was a gap")
	default:
	}
}
