// Package postgres is Salt's returners "postgres" and "pgjsonb", which keep returns in PostgreSQL, as text and as jsonb. Salt's
// sources: salt/returners/postgres.py, pgjsonb.py.
package postgres

import (
	"database/sql"
	"fmt"
	"strings"

	"github.com/lib/pq"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/returners"
	"github.com/brine-salt/brine/modules/returners/sqldb"
)

func init() { returners.Register(Module, JSONB) }

// Module returns the returner "postgres".
func Module() *modules.Module { return text().Module("postgres", "", "Keep returns in PostgreSQL.") }

// JSONB returns the returner "pgjsonb".
func JSONB() *modules.Module {
	return jsonb().Module("pgjsonb", "", "Keep returns in PostgreSQL as jsonb.")
}

const insert = "INSERT INTO salt_returns (fun, jid, return, id, success, full_ret) VALUES (?, ?, ?, ?, ?, ?)"

func text() *sqldb.Dialect {
	return &sqldb.Dialect{
		Open: open("returner.postgres", "passwd"), Numbered: true, Insert: insert, Values: sqldb.Columns("true", "false"),
		SaveLoad: "INSERT INTO jids (jid, load) VALUES (?, ?) ON CONFLICT DO NOTHING",
		// Salt's statement quotes a column as MySQL does, so that its get_fun always fails.
		LastOfFun: "SELECT s.id, s.full_ret FROM salt_returns s JOIN (SELECT MAX(jid) AS jid FROM salt_returns GROUP BY fun, id) last ON s.jid = last.jid " +
			"WHERE s.fun = ?",
	}
}

func jsonb() *sqldb.Dialect {
	return &sqldb.Dialect{
		Open: open("returner.pgjsonb", "pass"), Numbered: true, Insert: insert, Values: sqldb.Columns("true", "false"),
		SaveLoad:  "INSERT INTO jids (jid, load) VALUES (?, ?) ON CONFLICT (jid) DO UPDATE SET load = excluded.load",
		LastOfFun: "SELECT DISTINCT ON (id) id, full_ret FROM salt_returns WHERE fun = ? ORDER BY id, alter_time DESC",
	}
}

func open(prefix, password string) func(*modules.Call, map[string]any) (*sql.DB, error) {
	return func(c *modules.Call, ret map[string]any) (*sql.DB, error) {
		o := returners.Options(c, prefix, ret, returners.Attrs("host", "user", password, "db", "port", "connect_timeout", "sslmode", "sslcert", "sslkey", "sslrootcert"),
			map[string]any{"host": "localhost", "user": "salt", password: "salt", "db": "salt", "port": int64(5432)})
		var parts []string
		add := func(name, option string) {
			if v := sqldb.Text(o, option); v != "" {
				parts = append(parts, name+"='"+strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(v)+"'")
			}
		}
		for _, name := range [...]string{"host", "user", "port", "connect_timeout", "sslmode", "sslcert", "sslkey", "sslrootcert"} {
			add(name, name)
		}
		add("password", password)
		add("dbname", "db")
		if sqldb.Text(o, "sslmode") == "" {
			parts = append(parts, "sslmode=prefer") // as libpq
		}
		connector, err := pq.NewConnector(strings.Join(parts, " "))
		if err != nil {
			return nil, fmt.Errorf("cannot use database: %w", err)
		}
		return sql.OpenDB(connector), nil
	}
}
