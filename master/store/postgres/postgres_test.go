//go:build interop && linux

package postgres_test

import (
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/brine-salt/brine/internal/testserver"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/postgres"
	"github.com/brine-salt/brine/master/store/storetest"
)

// TestServer runs the suite of all stores on a real server, and lets several masters write to one database at once.
func TestServer(t *testing.T) {
	port := testserver.Postgres(t)
	dsn := func(name string) string {
		return "host=127.0.0.1 user=postgres sslmode=disable port=" + port + " dbname=" + name
	}
	db, err := sql.Open("postgres", dsn("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	testserver.Until(t, "postgres", db.PingContext)
	var n atomic.Int64
	fresh := func(t *testing.T) string {
		t.Helper()
		name := fmt.Sprintf("brine%d", n.Add(1))
		if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
			t.Fatal(err)
		}
		return dsn(name)
	}
	t.Run("suite", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) store.Store {
			s, err := postgres.Open(fresh(t))
			if err != nil {
				t.Fatal(err)
			}
			return s
		})
	})
	t.Run("shared", func(t *testing.T) {
		storetest.RunShared(t, func(t *testing.T) (out [2]store.Shared) {
			dsn := fresh(t)
			for i := range out {
				s, err := postgres.Open(dsn)
				if err != nil {
					t.Fatal(err)
				}
				out[i] = s
			}
			return out
		})
	})
	t.Run("migration", func(t *testing.T) {
		name := fresh(t)
		own, err := sql.Open("postgres", name)
		if err != nil {
			t.Fatal(err)
		}
		defer own.Close()
		open := func(t *testing.T) store.Shared {
			s, err := postgres.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		exec := func(statement string) error {
			_, err := own.ExecContext(t.Context(), statement)
			return err
		}
		storetest.RunMigration(t, open, exec, "DELETE FROM brine_schema WHERE version > 1")
	})
	t.Run("several masters", func(t *testing.T) { storetest.Shared(t, several(t, fresh(t))) })
}

// several opens one database many times at once: each makes the tables if it is the first.
func several(t *testing.T, dsn string) []store.Store {
	t.Helper()
	out := make([]store.Store, 4)
	var wg sync.WaitGroup
	for i := range out {
		wg.Go(func() {
			s, err := postgres.Open(dsn)
			if err != nil {
				t.Error(err)
				return
			}
			out[i] = s
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return out
}

func BenchmarkKeys(b *testing.B) {
	dsn := "host=127.0.0.1 user=postgres sslmode=disable dbname=postgres port=" + testserver.Postgres(b)
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	testserver.Until(b, "postgres", db.PingContext)
	s, err := postgres.Open(dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	storetest.BenchKeys(b, s)
}
