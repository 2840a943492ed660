//go:build interop && linux

package sealed

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/testserver"
)

// statements runs SQL.
func statements(t *testing.T, driver, dsn string, list ...string) {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	testserver.Until(t, driver, db.PingContext)
	for _, s := range list {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// TestSealedInPostgres searches the server's own files, too: tables, write-ahead log, and its log of all
// statements with parameters.
func TestSealedInPostgres(t *testing.T) {
	s := testserver.PostgresServer(t)
	dsn := "host=127.0.0.1 user=postgres sslmode=disable port=" + s.Port + " dbname="
	statements(t, "postgres", dsn+"postgres", "CREATE DATABASE brine", "ALTER SYSTEM SET logging_collector = on", "ALTER SYSTEM SET log_statement = 'all'",
		"ALTER SYSTEM SET log_parameter_max_length = -1", "ALTER SYSTEM SET log_directory = 'log'")
	s.Restart()
	statements(t, "postgres", dsn+"brine")
	data := filepath.Join(s.Socket, "data")
	r := newRig(t, "postgres "+dsn+"brine", data)
	r.all(true)
	wrote(t, filepath.Join(data, "log", "*"), "brine_piece")
	wrote(t, filepath.Join(data, "pg_wal", "*"), "publish") // of the messages between masters
	statements(t, "postgres", dsn+"brine", "CHECKPOINT", "VACUUM")
	r.clean("after a checkpoint", false)
}

// TestSealedInMariaDB searches tables, undo and redo logs, the binary log, and the log of all statements.
func TestSealedInMariaDB(t *testing.T) {
	s := testserver.MariaDBServer(t, "--log-bin=binlog", "--binlog-format=MIXED", "--server-id=1", "--general-log=1", "--general-log-file=general.log")
	dsn := "root@tcp(127.0.0.1:" + s.Port + ")/"
	statements(t, "mysql", dsn, "CREATE DATABASE brine")
	data := filepath.Join(filepath.Dir(s.Socket), "data")
	r := newRig(t, "mysql "+dsn+"brine", data)
	r.all(true)
	wrote(t, filepath.Join(data, "general.log"), "brine_piece")
	wrote(t, filepath.Join(data, "binlog.0*"), "brine_piece")
	statements(t, "mysql", dsn+"brine", "FLUSH LOGS")
	r.clean("after the logs were flushed", false)
}

// wrote proves that a log that must not have secrets has what it logs at all.
func wrote(t *testing.T, glob, want string) {
	t.Helper()
	list, err := filepath.Glob(glob)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range list {
		if bytes.Contains(readFile(t, name), []byte(want)) {
			return
		}
	}
	t.Errorf("none of %q has %q", list, want)
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
