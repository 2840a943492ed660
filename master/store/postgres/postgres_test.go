//go:build interop && linux

package postgres_test

import (
	"database/sql"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/postgres"
	"github.com/brine-salt/brine/master/store/storetest"
)

// server starts a real one; dsn names a database there.
func server(t testing.TB) (db *sql.DB, dsn func(name string) string) {
	t.Helper()
	port := testserver.Postgres(t)
	dsn = func(name string) string {
		return "host=127.0.0.1 user=postgres sslmode=disable port=" + port + " dbname=" + name
	}
	db, err := sql.Open("postgres", dsn("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	testserver.Until(t, "postgres", db.PingContext)
	return db, dsn
}

func TestServer(t *testing.T) {
	db, dsn := server(t)
	storetest.RunServer(t, db, func(name string) (store.Shared, error) { return postgres.Open(dsn(name)) },
		func(name string) (*sql.DB, error) { return sql.Open("postgres", dsn(name)) })
}

func BenchmarkKeys(b *testing.B) {
	_, dsn := server(b)
	s, err := postgres.Open(dsn("postgres"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	storetest.BenchKeys(b, s)
}
