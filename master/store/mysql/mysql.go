// Package mysql keeps jobs and returns in a MariaDB or MySQL database (InnoDB, also Galera), which several masters may share.
package mysql

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/brine-salt/brine/master/store/sqlstore"
)

// Ids and job ids are compared byte by byte.
func dialect() sqlstore.Dialect {
	const table = ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
	return sqlstore.Dialect{
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
		Version: func(db *sql.DB) (int, error) {
			var there int
			if err := db.QueryRow("SELECT count(*) FROM information_schema.tables WHERE table_schema = database() AND table_name = 'brine_schema'").Scan(&there); err != nil || there == 0 {
				return 0, err
			}
			var n sql.NullInt64
			err := db.QueryRow("SELECT max(version) FROM brine_schema").Scan(&n)
			return int(n.Int64), err
		},
		SetVersion: func(db *sql.DB, n int) error {
			_, err := db.Exec("INSERT IGNORE INTO brine_schema (version) VALUES (?)", n)
			return err
		},
		Insert: "INSERT IGNORE", ForUpdate: "FOR UPDATE",
		Retry: func(err error) bool {
			var e *mysql.MySQLError
			return errors.As(err, &e) && (e.Number == 1213 || e.Number == 1205) // deadlock, lock wait timeout
		},
	}
}

// Open connects to a database, given as user:password@tcp(host:3306)/name or user@unix(/run/mysqld/mysqld.sock)/name. The tables are
// made when they are missing. Close the store after the master ended.
func Open(dsn string) (*sqlstore.Store, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("cannot open job store: %w", err)
	}
	config.MaxAllowedPacket = 0 // as the server says
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("cannot open job store: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(8)
	db.SetConnMaxIdleTime(5 * time.Minute)
	s, err := sqlstore.Open(db, dialect())
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("cannot open job store: %w", err)
	}
	return s, nil
}
