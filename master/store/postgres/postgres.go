// Package postgres keeps jobs and returns in a PostgreSQL database, which several masters may share.
package postgres

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"

	"github.com/brine-salt/brine/master/store/sqlstore"
)

// Ids and job ids are bytes: texts of PostgreSQL cannot hold every text, and their order depends on the database's language.
func dialect() sqlstore.Dialect {
	return sqlstore.Dialect{
		Schema: []string{
			`CREATE TABLE IF NOT EXISTS brine_schema (version INTEGER NOT NULL)`,
			`CREATE TABLE IF NOT EXISTS job (jid BYTEA PRIMARY KEY, created BIGINT NOT NULL, body BYTEA NOT NULL)`,
			`CREATE INDEX IF NOT EXISTS job_created ON job (created)`,
			`CREATE TABLE IF NOT EXISTS ret (jid BYTEA NOT NULL, id BYTEA NOT NULL, received BIGINT NOT NULL, body BYTEA NOT NULL,
				PRIMARY KEY (jid, id))`,
			`CREATE INDEX IF NOT EXISTS ret_received ON ret (received)`,
			`CREATE TABLE IF NOT EXISTS orders (id BYTEA PRIMARY KEY, jid BYTEA NOT NULL UNIQUE, created BIGINT NOT NULL, body BYTEA NOT NULL)`,
			`CREATE TABLE IF NOT EXISTS delivery (jid BYTEA NOT NULL, minion BYTEA NOT NULL, state INTEGER NOT NULL, priority INTEGER NOT NULL,
				due BIGINT NOT NULL, version BIGINT NOT NULL, body BYTEA NOT NULL, PRIMARY KEY (jid, minion))`,
			`CREATE INDEX IF NOT EXISTS delivery_minion ON delivery (minion, state)`,
			`CREATE INDEX IF NOT EXISTS delivery_due ON delivery (state, due)`,
			`CREATE TABLE IF NOT EXISTS minion (id BYTEA PRIMARY KEY, tenant BYTEA NOT NULL, joined INTEGER NOT NULL, version BIGINT NOT NULL,
				body BYTEA NOT NULL)`,
			`CREATE INDEX IF NOT EXISTS minion_tenant ON minion (tenant, joined)`,
		},
		Version: func(db *sql.DB) (int, error) {
			var there bool
			if err := db.QueryRow("SELECT to_regclass('brine_schema') IS NOT NULL").Scan(&there); err != nil || !there {
				return 0, err
			}
			var n sql.NullInt64
			err := db.QueryRow("SELECT max(version) FROM brine_schema").Scan(&n)
			return int(n.Int64), err
		},
		SetVersion: func(db *sql.DB, n int) error {
			_, err := db.Exec("INSERT INTO brine_schema (version) VALUES ($1)", n)
			return err
		},
		Numbered: true, Text: func(s string) any { return []byte(s) }, Insert: "INSERT", Ignore: "ON CONFLICT DO NOTHING", ForUpdate: "FOR UPDATE",
		Retry: func(err error) bool {
			var e *pq.Error
			return errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01") // serialisation failure, deadlock
		},
	}
}

// Open connects to a database: a URL (postgres://user:password@host/name) or words (host=… dbname=…), as libpq takes them. The
// tables are made when they are missing. Close the store after the master ended.
func Open(dsn string) (*sqlstore.Store, error) {
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return nil, fmt.Errorf("cannot open job store: %w", err)
	}
	db.SetMaxOpenConns(8)
	db.SetConnMaxIdleTime(5 * time.Minute)
	s, err := open(db)
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("cannot open job store: %w", err)
	}
	return s, nil
}

// open makes the tables; another master may be making them at the same time.
func open(db *sql.DB) (*sqlstore.Store, error) {
	for try := 0; ; try++ {
		s, err := sqlstore.Open(db, dialect())
		var e *pq.Error
		twice := errors.As(err, &e) && (e.Code == "42P07" || e.Code == "42710" || e.Code == "23505") // made by somebody else just now
		if !twice || try == 5 {
			return s, err
		}
	}
}
