// Package postgres stores jobs and returns in a PostgreSQL database, which several masters may share. Ids and job
// ids are bytes: PostgreSQL's text cannot hold every string, and its order depends on the language of the database.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/lib/pq"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/sqlstore"
)

// Ids and job ids are bytes: texts of PostgreSQL cannot hold every text, and their order depends on the database's
// language.
func dialect(dsn string) sqlstore.Dialect {
	return sqlstore.Dialect{
		Types: []string{"{text}", "BYTEA", "{mark}", "BYTEA", "{blob}", "BYTEA", "{int}", "BIGINT", "{end}", ")"},
		Lock:  "BEGIN; SELECT pg_advisory_xact_lock(7090114101110)", Unlock: "COMMIT", Abandon: "ROLLBACK",
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
		Version: func(ctx context.Context, db *sql.Conn) (int, error) {
			var there bool
			if err := db.QueryRowContext(ctx, "SELECT to_regclass('brine_schema') IS NOT NULL").Scan(&there); err != nil || !there {
				return 0, err
			}
			var n sql.NullInt64
			err := db.QueryRowContext(ctx, "SELECT max(version) FROM brine_schema").Scan(&n)
			return int(n.Int64), err
		},
		SetVersion: func(ctx context.Context, db *sql.Conn, n int) error {
			_, err := db.ExecContext(ctx, "INSERT INTO brine_schema (version) VALUES ($1)", n)
			return err
		},
		Numbered: true, Text: func(s string) any { return []byte(s) }, Insert: "INSERT", Ignore: "ON CONFLICT DO NOTHING", ForUpdate: "FOR UPDATE", Returning: true,
		Retry: func(err error) bool {
			var e *pq.Error
			return errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01") // serialisation failure, deadlock
		},
		Lost: func(err error) bool {
			var e *pq.Error
			if errors.As(err, &e) {
				// Connection failures, and a server that shuts down, crashes or starts.
				return e.Code.Class() == "08" || e.Code == "57P01" || e.Code == "57P02" || e.Code == "57P03"
			}
			var n net.Error
			return errors.As(err, &n) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) ||
				errors.Is(err, syscall.ECONNRESET)
		},
		Listen: func(ctx context.Context, wake func()) { listen(ctx, dsn, wake) },
		Notify: "NOTIFY brine_relay",
		Told:   tellScript,
	}
}

// tellScript returns the statements that write messages and commit; the driver ends the transaction that it starts
// then.
func tellScript(list []store.Message, made int64) string {
	b := fmt.Appendf(nil, `NOTIFY brine_relay; WITH c AS (UPDATE brine_counter SET n = n + %d WHERE name = 'relay' RETURNING n)
INSERT INTO brine_relay (seq, made, sender, receiver, kind, body) SELECT c.n - %d + m.i, %d, m.f, m.t, m.k, m.b FROM c, (VALUES `, len(list), len(list), made)
	for i, m := range list {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = fmt.Appendf(b, `(%d, decode('%x', 'hex'), decode('%x', 'hex'), decode('%x', 'hex'), decode('%x', 'hex'))`, i+1, m.From, m.To, m.Kind, m.Body)
	}
	return string(append(b, ") AS m (i, f, t, k, b); COMMIT; BEGIN"...))
}

// maxConns limits the connections of one master.
const maxConns = 8

// Open connects to a database: a URL (postgres://user:password@host/name) or words (host=… dbname=…), as libpq
// accepts them. It creates missing tables. Close the store after the master ended.
func Open(dsn string) (*sqlstore.Store, error) {
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return nil, fmt.Errorf("cannot open job store: %w", err)
	}
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns) // opening one costs the server more than keeping it for a while
	db.SetConnMaxIdleTime(5 * time.Minute)
	s, err := sqlstore.Open(db, dialect(dsn))
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("cannot open job store: %w", err)
	}
	return s, nil
}

// Limits of the pause between attempts to listen.
const (
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// listen waits for notifications. It also calls wake when the connection is restored, because some may have
// been missed.
func listen(ctx context.Context, dsn string, wake func()) {
	l := pq.NewListener(dsn, minPause, maxPause, nil)
	defer l.Close()
	go l.Listen("brine_relay") // returns when it is connected
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.Notify:
			wake()
		}
	}
}
