// Package sqlite stores jobs and returns in an SQLite file. There is no server to operate, and what was
// acknowledged to a minion is on the disk. The driver is pure Go.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	sqlite "modernc.org/sqlite" // the driver named "sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/brine-salt/brine/master/store/sqlstore"
)

func dialect() sqlstore.Dialect {
	return sqlstore.Dialect{
		Types: []string{"{text}", "TEXT", "{mark}", "BLOB", "{blob}", "BLOB", "{int}", "INTEGER", "{end}", ")"},
		Lock:  "BEGIN IMMEDIATE", Unlock: "COMMIT", Abandon: "ROLLBACK",
		Schema: []string{
			`CREATE TABLE IF NOT EXISTS job (jid TEXT PRIMARY KEY, created INTEGER NOT NULL, body BLOB NOT NULL) WITHOUT ROWID`,
			`CREATE INDEX IF NOT EXISTS job_created ON job (created)`,
			`CREATE TABLE IF NOT EXISTS ret (jid TEXT NOT NULL, id TEXT NOT NULL, received INTEGER NOT NULL, body BLOB NOT NULL, UNIQUE (jid, id))`,
			`CREATE INDEX IF NOT EXISTS ret_received ON ret (received)`,
			`CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, jid TEXT NOT NULL UNIQUE, created INTEGER NOT NULL, body BLOB NOT NULL)`,
			`CREATE TABLE IF NOT EXISTS delivery (jid TEXT NOT NULL, minion TEXT NOT NULL, state INTEGER NOT NULL, priority INTEGER NOT NULL,
				due INTEGER NOT NULL, version INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (jid, minion)) WITHOUT ROWID`,
			`CREATE INDEX IF NOT EXISTS delivery_minion ON delivery (minion, state)`,
			`CREATE INDEX IF NOT EXISTS delivery_due ON delivery (state, due)`,
			`CREATE TABLE IF NOT EXISTS minion (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, joined INTEGER NOT NULL, version INTEGER NOT NULL,
				body BLOB NOT NULL) WITHOUT ROWID`,
			`CREATE INDEX IF NOT EXISTS minion_tenant ON minion (tenant, joined)`,
		},
		Version: func(ctx context.Context, db *sql.Conn) (n int, err error) {
			err = db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&n)
			return n, err
		},
		SetVersion: func(ctx context.Context, db *sql.Conn, n int) error {
			_, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", n))
			return err
		},
		Insert: "INSERT", Ignore: "ON CONFLICT DO NOTHING", Lines: "group_concat(%s, char(10))",
		Size: "SELECT (p.page_count - f.freelist_count) * s.page_size FROM pragma_page_count() p, pragma_freelist_count() f, pragma_page_size() s",
		// What it could not do because another connection reads or writes is done the next time; its errors are
		// those of the next write.
		Tidy: func(db *sql.DB) { _, _ = db.Exec("PRAGMA wal_checkpoint(PASSIVE)") },
	}
}

const (
	// pageSize is the page size of new files, in bytes. A return of some kilobytes fits in one page, and three
	// pages hold 10 KB, which are written at once. With smaller pages it would be a chain, each page of which is
	// written, and read and written again when the log becomes part of the file. A single return costs three pages
	// of the log.
	pageSize = 32 << 10
	// maxLog is the size in bytes from which that happens while writes wait. Otherwise it is done when the master
	// has nothing to write, not amid ten thousand returns. keepLog is how much of the log stays on the disk then.
	// Small disks have smaller logs.
	minLog, maxLog, keepLog = 2 << 20, 256 << 20, 16 << 20
)

// logShare is the part of its disk that the log may take.
const logShare = 32

// logSize returns the bytes of the log on a disk of this size; 0 means unknown.
func logSize(disk int64) int64 {
	if disk == 0 {
		return maxLog
	}
	return min(max(disk/logShare, minLog), maxLog)
}

// diskShare is the part of its disk that the file may take by default. Salt's job cache beside it takes about as
// much again.
const diskShare = 8

// busyFor is how long a connection that finds the file locked waits for the others.
const busyFor = 10 * time.Second

func isBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

// explain adds the system's error to an error of SQLite about its file. A quota, a read-only file system and a lost
// device are all a "disk I/O error" there, so it tries to write another file in dir.
func explain(dir string, err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		if cause := tryToWrite(dir); cause != nil {
			return fmt.Errorf("%w: %w", err, cause)
		}
	}
	return err
}

// tryToWrite returns why a file in dir cannot be written, nil if it can.
func tryToWrite(dir string) error {
	f, err := os.CreateTemp(dir, ".disk-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, pageSize))
	return errors.Join(err, f.Sync(), f.Close())
}

// Open opens the file at path and creates it (0600) if it is missing. Close the store after the master ended.
func Open(path string) (*sqlstore.Store, error) {
	return openSized(path, diskSize(filepath.Dir(path)))
}

// openSized is Open on a disk of this many bytes, 0 for unknown.
func openSized(path string, disk int64) (*sqlstore.Store, error) {
	// SQLite would create the file with the process's umask, but returns may hold secrets.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open job store: %w", err)
	}
	f.Close()
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open job store %q: %w", path, err)
	}
	log := logSize(disk)
	q := url.Values{"_pragma": {fmt.Sprintf("busy_timeout(%d)", busyFor.Milliseconds()), fmt.Sprintf("page_size(%d)", pageSize), "synchronous(FULL)",
		fmt.Sprintf("wal_autocheckpoint(%d)", log/pageSize), fmt.Sprintf("journal_size_limit(%d)", min(log, keepLog)), "cache_size(-1024)", "temp_store(MEMORY)"},
		"_journal_mode": {"WAL"}, // after the size of pages, which it fixes
		"_txlock":       {"immediate"}}
	dsn := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(abs)}).EscapedPath(), RawQuery: q.Encode()}).String()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("cannot open job store %q: %w", path, err)
	}
	db.SetMaxOpenConns(3) // the writer and two readers; each has a page cache of 1 MiB
	db.SetMaxIdleConns(3)
	db.SetConnMaxIdleTime(time.Minute)
	d := dialect()
	d.Room = func() int64 { return diskSize(filepath.Dir(abs)) / diskShare }
	d.Explain = func(err error) error { return explain(filepath.Dir(abs), err) }
	var s *sqlstore.Store
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		// If several processes create the file at the same moment, all but one are refused when they start its
		// journal, without any wait.
		if s, err = sqlstore.Open(db, d); !isBusy(err) || time.Since(begun) > busyFor {
			break
		}
	}
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("cannot open job store %q: %w", path, err)
	}
	return s, nil
}
