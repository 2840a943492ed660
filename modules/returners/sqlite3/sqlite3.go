// Package sqlite3 is Salt's returner "sqlite3", which keeps returns in an SQLite file. Salt's source:
// salt/returners/sqlite3_return.py.
package sqlite3

import (
	"database/sql"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the driver

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/returners"
	"github.com/brine-salt/brine/modules/returners/sqldb"
)

func init() { returners.Register(Module) }

// Module returns the returner "sqlite3".
func Module() *modules.Module {
	return dialect().Module("sqlite3_return", "sqlite3", "Keep returns in an SQLite file.")
}

func dialect() *sqldb.Dialect {
	return &sqldb.Dialect{
		Open:     open,
		Insert:   "INSERT INTO salt_returns (fun, jid, id, fun_args, date, full_ret, success) VALUES (?, ?, ?, ?, ?, ?, ?)",
		Values:   values,
		SaveLoad: "INSERT INTO jids (jid, load) VALUES (?, ?)",
		// Salt's get_fun drops the last row and fails on the others.
		LastOfFun: "SELECT s.id, s.full_ret FROM salt_returns s JOIN (SELECT MAX(jid) AS jid FROM salt_returns GROUP BY fun, id) last ON s.jid = last.jid " +
			"WHERE s.fun = ?",
		// Salt's get_jid shows the first minion only.
		Wrap: func(v any) any { return map[string]any{"return": v} },
	}
}

func values(c *modules.Call, ret map[string]any) ([]any, error) {
	result, err := returners.JSON(ret["return"])
	var args any
	if pytext.Truth(ret["fun_args"]) {
		args = pytext.Str(ret["fun_args"])
	}
	success := any("")
	if v, ok := ret["success"]; ok {
		success = v
	}
	return []any{pytext.Str(ret["fun"]), pytext.Str(ret["jid"]), pytext.Str(ret["id"]), args, c.Now().Local().Format("2006-01-02 15:04:05.000000"), result, success}, err
}

func open(c *modules.Call, ret map[string]any) (*sql.DB, error) {
	o := returners.Options(c, "sqlite3", ret, returners.Attrs("database", "timeout"), nil)
	for _, k := range [...]string{"database", "timeout"} {
		if !pytext.Truth(o[k]) {
			return nil, modules.Errorf(`sqlite3 config option "sqlite3.%s" is missing`, k)
		}
	}
	seconds, err := modules.ToInt(o["timeout"])
	if err != nil {
		return nil, err
	}
	path := (&url.URL{Scheme: "file", Path: c.Path(pytext.Str(o["database"]))}).String()
	db, err := sql.Open("sqlite", path+fmt.Sprintf("?_pragma=busy_timeout(%d)", seconds*1000))
	if err != nil {
		return nil, fmt.Errorf("cannot use database: %w", err)
	}
	return db, nil
}
