// Package mysql stores jobs and returns in a MariaDB or MySQL database (InnoDB, also Galera), which several masters
// may share. Ids and job ids are compared byte by byte, because the collations of MySQL would take some different
// ids for equal.
package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/sqlstore"
)

// Ids and job ids are compared byte by byte.
func dialect() sqlstore.Dialect {
	const table = ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
	return sqlstore.Dialect{
		Types: []string{"{text}", "VARCHAR(255)", "{mark}", "BINARY(16)", "{blob}", "LONGBLOB", "{int}", "BIGINT", "{end}", table},
		Lock:  "DO GET_LOCK('brine_schema', 120)", Unlock: "DO RELEASE_LOCK('brine_schema')",
		There: func(err error) bool {
			var e *mysql.MySQLError
			return errors.As(err, &e) && (e.Number == 1060 || e.Number == 1061) // column, index
		},
		Schema: []string{
			`CREATE TABLE IF NOT EXISTS brine_schema (version INTEGER NOT NULL PRIMARY KEY` + table,
			`CREATE TABLE IF NOT EXISTS job (jid VARCHAR(64) NOT NULL PRIMARY KEY, created BIGINT NOT NULL, body LONGBLOB NOT NULL, INDEX job_created (created)` + table,
			`CREATE TABLE IF NOT EXISTS ret (jid VARCHAR(64) NOT NULL, id VARCHAR(255) NOT NULL, received BIGINT NOT NULL, body LONGBLOB NOT NULL,
				PRIMARY KEY (jid, id), INDEX ret_received (received)` + table,
			`CREATE TABLE IF NOT EXISTS orders (id VARCHAR(255) NOT NULL PRIMARY KEY, jid VARCHAR(64) NOT NULL UNIQUE, created BIGINT NOT NULL,
				body LONGBLOB NOT NULL` + table,
			`CREATE TABLE IF NOT EXISTS delivery (jid VARCHAR(64) NOT NULL, minion VARCHAR(255) NOT NULL, state INTEGER NOT NULL, priority INTEGER NOT NULL,
				due BIGINT NOT NULL, version BIGINT NOT NULL, body LONGBLOB NOT NULL, PRIMARY KEY (jid, minion), INDEX delivery_minion (minion, state),
				INDEX delivery_due (state, due)` + table,
			`CREATE TABLE IF NOT EXISTS minion (id VARCHAR(255) NOT NULL PRIMARY KEY, tenant VARCHAR(255) NOT NULL, joined INTEGER NOT NULL,
				version BIGINT NOT NULL, body LONGBLOB NOT NULL, INDEX minion_tenant (tenant, joined)` + table,
		},
		Version: func(ctx context.Context, db *sql.Conn) (int, error) {
			var there int
			if err := db.QueryRowContext(ctx, "SELECT count(*) FROM information_schema.tables WHERE table_schema = database() AND table_name = 'brine_schema'").Scan(&there); err != nil || there == 0 {
				return 0, err
			}
			var n sql.NullInt64
			err := db.QueryRowContext(ctx, "SELECT max(version) FROM brine_schema").Scan(&n)
			return int(n.Int64), err
		},
		SetVersion: func(ctx context.Context, db *sql.Conn, n int) error {
			_, err := db.ExecContext(ctx, "INSERT IGNORE INTO brine_schema (version) VALUES (?)", n)
			return err
		},
		Insert: "INSERT IGNORE", ForUpdate: "FOR UPDATE", Told: tellScript,
		Retry: func(err error) bool {
			var e *mysql.MySQLError
			return errors.As(err, &e) && (e.Number == 1213 || e.Number == 1205) // deadlock, lock wait timeout
		},
		// The value is sent in pieces of one packet each, but their total is limited to one packet too.
		MaxValue: "SELECT @@max_allowed_packet",
		Lost: func(err error) bool {
			var e *mysql.MySQLError
			if errors.As(err, &e) {
				// A server that shuts down, too many connections while it starts, a Galera node that is not ready,
				// or a killed connection.
				return e.Number == 1053 || e.Number == 1040 || e.Number == 1047 || e.Number == 1927
			}
			var n net.Error
			return errors.Is(err, mysql.ErrInvalidConn) || errors.As(err, &n) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		},
	}
}

// tellScript returns the statements that write messages and commit.
func tellScript(list []store.Message, made int64) string {
	b := fmt.Appendf(nil, "UPDATE brine_counter SET n = LAST_INSERT_ID(n + %d) WHERE name = 'relay'; "+
		"INSERT INTO brine_relay (seq, made, sender, receiver, kind, body) VALUES ", len(list))
	for i, m := range list {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = fmt.Appendf(b, "(LAST_INSERT_ID() - %d, %d, _utf8mb4 x'%x', _utf8mb4 x'%x', _utf8mb4 x'%x', x'%x')", len(list)-1-i, made, m.From, m.To, m.Kind, m.Body)
	}
	return string(append(b, "; COMMIT"...))
}

// maxConns limits the connections of one master.
const maxConns = 8

// Open connects to a database, given as user:password@tcp(host:3306)/name or
// user@unix(/run/mysqld/mysqld.sock)/name. It creates missing tables. Close the store after the master ended.
func Open(dsn string) (*sqlstore.Store, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("cannot open job store: %w", err)
	}
	config.MaxAllowedPacket = 0   // use the server's limit
	config.MultiStatements = true // for tellScript
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("cannot open job store: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns) // opening one costs the server more than keeping it for a while
	db.SetConnMaxIdleTime(5 * time.Minute)
	s, err := sqlstore.Open(db, dialect())
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("cannot open job store: %w", err)
	}
	return s, nil
}
