// Package postgres is Salt's execution module "postgres": users, databases and privileges of PostgreSQL, through the program
// psql. Salt's sources: salt/modules/postgres.py and deb_postgres.py (clusters of Debian's tools).
package postgres

import (
	"context"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/python/pytemp"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// postgres.owner_to differs: it works. Stock fails with a TypeError.
// postgres.cluster_list differs: without verbose it is a list. Stock answers with a view of a dictionary.
// postgres.db_page, postgres.user_page are added: stock has no listings in pages.

func available(e *modules.Env) (bool, string) {
	if dir, _ := e.Opt("postgres.bins_dir").(string); dir != "" && e.Which(filepath.Join(dir, "psql")) != "" {
		return true, ""
	}
	return e.Which("psql") != "", "psql was not found"
}

// binary returns the path of one of PostgreSQL's programs, or "" if it is missing.
func binary(ctx context.Context, c *modules.Call, name string) (string, error) {
	dir, err := c.Exec(ctx, "config.option", "postgres.bins_dir")
	if err != nil {
		return "", err
	}
	if pytext.Truth(dir) {
		if path := c.Which(filepath.Join(pytext.Str(dir), name)); path != "" {
			return path, nil
		}
	}
	return c.Which(name), nil
}

// conn is how to reach a server, as the caller says.
type conn struct{ user, host, port, db, password, runas any }

// given returns the connection from the usual arguments of the call.
func given(c *modules.Call) conn {
	return conn{c.Value("user"), c.Value("host"), c.Value("port"), c.Value("maintenance_db"), c.Value("password"), c.Value("runas")}
}

// ofSchema returns the connection from the arguments that the functions for schemas have.
func ofSchema(c *modules.Call) conn {
	return conn{c.Value("db_user"), c.Value("db_host"), c.Value("db_port"), c.Value("dbname"), c.Value("db_password"), c.Value("user")}
}

// account returns the system user that owns the server.
func account(c *modules.Call) string {
	if strings.Contains(pytext.Str(c.Grain("os_family")), "OpenBSD") {
		return "_postgresql"
	}
	return "postgres"
}

// psql runs psql with some arguments and gives what cmd.run_all does.
func (p conn) psql(ctx context.Context, c *modules.Call, args ...any) (map[string]any, error) {
	option := func(v any, name string) (any, error) {
		if pytext.Truth(v) {
			return v, nil
		}
		return c.Exec(ctx, "config.option", "postgres."+name)
	}
	program, err := binary(ctx, c, "psql")
	if err != nil {
		return nil, err
	}
	cmd := []any{program, "--no-align", "--no-readline", "--no-psqlrc", "--no-password"}
	for _, o := range [...]struct {
		v          any
		name, flag string
	}{{p.user, "user", "--username"}, {p.host, "host", "--host"}, {p.port, "port", "--port"}, {p.db, "maintenance_db", "--dbname"}} {
		v, err := option(o.v, o.name)
		if err != nil {
			return nil, err
		}
		if o.name == "maintenance_db" && !pytext.Truth(v) {
			v = "postgres"
		}
		if pytext.Truth(v) {
			cmd = append(cmd, o.flag, pytext.Str(v))
		}
	}
	return p.run(ctx, c, append(cmd, args...))
}

// run runs a command as the user that owns the server, with the password in a separate file.
func (p conn) run(ctx context.Context, c *modules.Call, cmd []any) (map[string]any, error) {
	timeout, err := c.ExecKw(ctx, "config.option", []any{"postgres.timeout"}, map[string]any{"default": int64(0)})
	if err != nil {
		return nil, err
	}
	kwargs := map[string]any{"python_shell": false, "reset_system_locale": false, "clean_env": true, "timeout": timeout}
	host, runas := p.host, p.runas
	if runas == nil {
		if !pytext.Truth(host) {
			if host, err = c.Exec(ctx, "config.option", "postgres.host"); err != nil {
				return nil, err
			}
		}
		if s := pytext.Str(host); !pytext.Truth(host) || strings.HasPrefix(s, "/") {
			runas = account(c)
		}
	}
	user := p.user
	if user == nil {
		user = runas
	}
	if pytext.Truth(runas) {
		kwargs["runas"] = runas
	}
	password := p.password
	if password == nil {
		// An option that is not set is "", which stock writes into a file too.
		if password, err = c.Exec(ctx, "config.option", "postgres.pass"); err != nil {
			return nil, err
		}
	}
	if password != nil {
		or := func(v any, other string) string {
			if pytext.Truth(v) {
				return pytext.Str(v)
			}
			return other
		}
		server := "localhost"
		if s := or(host, ""); s != "" && !strings.HasPrefix(s, "/") {
			server = s
		}
		line := server + ":" + or(p.port, "*") + ":*:" + or(user, "*") + ":" + pytext.Str(password)
		path, err := secretFile(ctx, c, line, runas)
		if err != nil {
			return nil, err
		}
		defer os.Remove(c.Path(path))
		kwargs["env"] = map[string]any{"PGPASSFILE": path}
	}
	return runAll(ctx, c, cmd, kwargs)
}

// secretFile writes a file that only owner can read.
func secretFile(ctx context.Context, c *modules.Call, text string, owner any) (path string, err error) {
	dir := pytemp.Dir()
	f, err := os.CreateTemp(c.Path(dir), "__salt.tmp.") // with mode 0600
	if err != nil {
		return "", modules.OSError(err)
	}
	path = filepath.Join(dir, filepath.Base(f.Name()))
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil && pytext.Truth(owner) {
		_, err = c.Exec(ctx, "file.chown", path, owner, "")
	}
	if err != nil {
		os.Remove(f.Name())
		return "", modules.OSError(err)
	}
	return path, nil
}

func runAll(ctx context.Context, c *modules.Call, cmd any, kwargs map[string]any) (map[string]any, error) {
	v, err := c.ExecKw(ctx, "cmd.run_all", []any{cmd}, kwargs)
	if err != nil {
		return nil, err
	}
	ret, ok := v.(map[string]any)
	if !ok {
		return nil, modules.Errorf("cmd.run_all answers %s", pytext.Repr(v))
	}
	return ret, nil
}

func retcode(ret map[string]any) int64 {
	n, _ := modules.ToInt(ret["retcode"])
	return n
}

// statement runs a statement and reports whether it went well.
func (p conn) statement(ctx context.Context, c *modules.Call, sql string) (bool, error) {
	ret, err := p.psql(ctx, c, "--command", sql)
	return retcode(ret) == 0, err
}

// rows runs a query and gives its rows; none if it fails.
func (p conn) rows(ctx context.Context, c *modules.Call, query string, write bool) ([]map[string]any, error) {
	sql := copied(query)
	if write {
		sql = "START TRANSACTION READ WRITE; " + sql + "; COMMIT TRANSACTION;"
	}
	ret, err := p.psql(ctx, c, "-v", "datestyle=ISO,MDY", "--command", sql)
	if err != nil || retcode(ret) > 0 {
		return nil, err
	}
	out, err := rowsOf(ret)
	if write && len(out) > 0 {
		out = out[:len(out)-1]
	}
	return out, err
}

// copied returns the statement that prints the rows of a query in the form that rowsOf reads.
func copied(query string) string {
	return "COPY (" + strings.TrimRight(pytext.Strip(query), ";") + ") TO STDOUT WITH CSV HEADER"
}

// rowsOf returns the rows that psql printed, by the names of their columns.
func rowsOf(ret map[string]any) ([]map[string]any, error) {
	lines, err := readCSV(pytext.Str(ret["stdout"]))
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	var out []map[string]any
	for _, line := range lines[1:] {
		row := map[string]any{}
		for i, name := range lines[0] {
			if i < len(line) {
				row[name] = line[i]
			}
		}
		out = append(out, row)
	}
	return out, nil
}

func readCSV(text string) ([][]string, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	var out [][]string
	for {
		line, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, &modules.PythonError{Type: "Error", Msg: err.Error()}
		}
		out = append(out, line)
	}
}

func text(row map[string]any, key string) string {
	s, _ := row[key].(string)
	return s
}

// byName returns rows in a map by the value of a column. With drop that column is removed from the rows.
func byName(rows []map[string]any, key string, drop bool) map[string]any {
	out := map[string]any{}
	for _, row := range rows {
		name := text(row, key)
		if drop {
			delete(row, key)
		}
		out[name] = row
	}
	return out
}

func psqlQuery(ctx context.Context, c *modules.Call) (any, error) {
	rows, err := given(c).rows(ctx, c, c.Str("query"), c.Bool("write"))
	out := make([]any, len(rows))
	for i, row := range rows {
		out[i] = row
	}
	return out, err
}

func version(ctx context.Context, c *modules.Call) (any, error) {
	v, err := given(c).version(ctx, c)
	if v == "" {
		return nil, err
	}
	return v, err
}

func (p conn) version(ctx context.Context, c *modules.Call) (string, error) {
	ret, err := p.psql(ctx, c, "--command", "SELECT setting FROM pg_catalog.pg_settings WHERE name = 'server_version'", "-t")
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(pytext.Str(ret["stdout"]), "\n")
	return line, nil
}

// atLeast reports whether a version is not older than another.
func atLeast(version, least string) bool {
	n, ok := pkgversion.Loose(version, least)
	return !ok || n >= 0
}

// names reports whether a map has a name, as Python's "in" does.
func has(m map[string]any, name any) bool {
	s, ok := name.(string)
	_, in := m[s]
	return ok && in
}
