// Package sqldb holds the common part of Salt's returners for SQL databases: the tables salt_returns and jids, which
// an administrator has created as Salt's documentation says, and the statements that write and read them. Salt's
// sources: salt/returners/mysql.py, postgres.py, pgjsonb.py, sqlite3_return.py.
//
// clean_old_jobs and event_return are missing, since only a master calls them.
package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/returners"
)

// Dialect holds the differences between databases.
type Dialect struct {
	// Open opens the database that the options name. ret is the return whose options count, or nil.
	Open func(c *modules.Call, ret map[string]any) (*sql.DB, error)
	// Numbered is for databases that count placeholders ($1) rather than mark them (?).
	Numbered bool
	// Insert writes a return, of the values that Values gives.
	Insert string
	Values func(c *modules.Call, ret map[string]any) ([]any, error)
	// SaveLoad inserts a job unless it is in the table already.
	SaveLoad string
	// LastOfFun selects id and return of the last run of a function on each minion.
	LastOfFun string
	// GetLoad, GetJID, GetJIDs and GetMinions select; "" is the usual statement.
	GetLoad, GetJID, GetJIDs string
	// Wrap makes what get_jid and get_fun show of a stored return; nil shows it as it is.
	Wrap func(v any) any
	// StandAlone gives returns without a job id one, and keeps the return as the job (Salt's MySQL returner).
	StandAlone bool
}

// timeout bounds one use of a database.
const timeout = time.Minute

// Module makes the declaration of a returner.
func (d *Dialect) Module(name, virtual, doc string) *modules.Module {
	return &modules.Module{Name: name, Virtual: virtual, Doc: doc, Funcs: []modules.Def{
		returners.Def("get_fun", "Show the last return of a function for each minion.", d.getFun, "fun"),
		returners.Def("get_jid", "Show the returns of a job.", d.getJID, "jid"),
		returners.Def("get_jids", "List the jobs.", d.getJIDs),
		returners.Def("get_load", "Show what a job was.", d.getLoad, "jid"),
		returners.Def("get_minions", "List the minions that have returned something.", d.getMinions),
		returners.Prep(),
		returners.Def("returner", "Keep a return.", d.returner, "ret"),
		returners.Def("save_load", "Keep what a job is.", d.saveLoad, "jid", "load", "=minions"),
	}}
}

// bind numbers the placeholders of a statement where the database wants that.
func (d *Dialect) bind(statement string) string {
	if !d.Numbered {
		return statement
	}
	n := 0
	var b strings.Builder
	for _, r := range statement {
		if r == '?' {
			n++
			b.WriteString("$" + strconv.Itoa(n))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (d *Dialect) with(ctx context.Context, c *modules.Call, ret map[string]any, use func(ctx context.Context, db *sql.DB) error) error {
	db, err := d.Open(c, ret)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return use(ctx, db)
}

func (d *Dialect) returner(ctx context.Context, c *modules.Call) (any, error) {
	ret, err := returners.Return(c)
	if err != nil {
		return nil, err
	}
	return nil, d.with(ctx, c, ret, func(ctx context.Context, db *sql.DB) error {
		if d.StandAlone && ret["jid"] == "req" {
			ret["jid"] = returners.NewJID(c.Now())
			if err := d.save(ctx, db, pytext.Str(ret["jid"]), ret); err != nil {
				return err
			}
		}
		values, err := d.Values(c, ret)
		if err == nil {
			_, err = db.ExecContext(ctx, d.bind(d.Insert), values...)
		}
		return failed("store return", err)
	})
}

func failed(what string, err error) error {
	if err != nil {
		return fmt.Errorf("cannot %s: %w", what, err)
	}
	return nil
}

func (d *Dialect) save(ctx context.Context, db *sql.DB, jid string, load any) error {
	text, err := returners.JSON(load)
	if err == nil {
		_, err = db.ExecContext(ctx, d.bind(d.SaveLoad), jid, text)
	}
	return failed("store job", err)
}

func (d *Dialect) saveLoad(ctx context.Context, c *modules.Call) (any, error) {
	return nil, d.with(ctx, c, nil, func(ctx context.Context, db *sql.DB) error { return d.save(ctx, db, c.Str("jid"), c.Value("load")) })
}

// maxRows bounds what is read back.
const maxRows = 1 << 20

// query calls a function with the two texts of every row.
func (d *Dialect) query(ctx context.Context, c *modules.Call, row func(a, b string) error, statement string, args ...any) error {
	return d.with(ctx, c, nil, func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, d.bind(statement), args...)
		if err != nil {
			return failed("read returns", err)
		}
		defer rows.Close()
		for n := 0; rows.Next() && n < maxRows; n++ {
			var a, b sql.NullString
			if err := rows.Scan(&a, &b); err != nil {
				return failed("read returns", err)
			}
			if err := row(a.String, b.String); err != nil {
				return err
			}
		}
		return failed("read returns", rows.Err())
	})
}

func or(statement, usual string) string {
	if statement != "" {
		return statement
	}
	return usual
}

func (d *Dialect) getLoad(ctx context.Context, c *modules.Call) (any, error) {
	var load any = map[string]any{}
	err := d.query(ctx, c, func(_, text string) (err error) {
		load, err = returners.Parse(text)
		return err
	}, or(d.GetLoad, "SELECT jid, load FROM jids WHERE jid = ?"), c.Str("jid"))
	return load, err
}

// returns reads rows of minion and return.
func (d *Dialect) returns(ctx context.Context, c *modules.Call, statement string, arg string) (any, error) {
	out := map[string]any{}
	err := d.query(ctx, c, func(minion, text string) error {
		v, err := returners.Parse(text)
		if d.Wrap != nil {
			v = d.Wrap(v)
		}
		out[minion] = v
		return err
	}, statement, arg)
	return out, err
}

func (d *Dialect) getJID(ctx context.Context, c *modules.Call) (any, error) {
	return d.returns(ctx, c, or(d.GetJID, "SELECT id, full_ret FROM salt_returns WHERE jid = ?"), c.Str("jid"))
}

func (d *Dialect) getFun(ctx context.Context, c *modules.Call) (any, error) {
	return d.returns(ctx, c, d.LastOfFun, c.Str("fun"))
}

func (d *Dialect) getJIDs(ctx context.Context, c *modules.Call) (any, error) {
	out := map[string]any{}
	err := d.query(ctx, c, func(jid, text string) error {
		v, err := returners.Parse(text)
		load, _ := v.(map[string]any)
		out[jid] = returners.JobInstance(jid, load)
		return err
	}, or(d.GetJIDs, "SELECT jid, load FROM jids"))
	return out, err
}

func (d *Dialect) getMinions(ctx context.Context, c *modules.Call) (any, error) {
	out := []any{}
	err := d.query(ctx, c, func(minion, _ string) error {
		out = append(out, minion)
		return nil
	}, "SELECT DISTINCT id, '' FROM salt_returns")
	return out, err
}

// Columns returns a function that makes the values of the statement that MySQL and PostgreSQL share: fun, jid,
// return, id, success, full_ret. yes and no are the values of success.
func Columns(yes, no string) func(*modules.Call, map[string]any) ([]any, error) {
	return func(_ *modules.Call, ret map[string]any) ([]any, error) {
		result, err := returners.JSON(ret["return"])
		if err != nil {
			return nil, err
		}
		full, err := returners.JSON(ret)
		success := no
		if pytext.Truth(ret["success"]) {
			success = yes
		}
		return []any{pytext.Str(ret["fun"]), pytext.Str(ret["jid"]), result, pytext.Str(ret["id"]), success, full}, err
	}
}

// Text returns an option as text, and "" for None and the word "none".
func Text(o map[string]any, key string) string {
	if v := o[key]; v != nil {
		if s := pytext.Str(v); !strings.EqualFold(s, "none") {
			return s
		}
	}
	return ""
}
