package postgres

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytemp"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func (p conn) databases(ctx context.Context, c *modules.Call) (map[string]any, error) {
	rows, err := p.rows(ctx, c, `SELECT datname as "Name", pga.rolname as "Owner", pg_encoding_to_char(encoding) as "Encoding", `+
		`datcollate as "Collate", datctype as "Ctype", datacl as "Access privileges", spcname as "Tablespace" `+
		`FROM pg_database pgd, pg_roles pga, pg_tablespace pgts WHERE pga.oid = pgd.datdba AND pgts.oid = pgd.dattablespace`, false)
	return byName(rows, "Name", true), err
}

func dbList(ctx context.Context, c *modules.Call) (any, error) { return given(c).databases(ctx, c) }

func dbExists(ctx context.Context, c *modules.Call) (any, error) {
	all, err := given(c).databases(ctx, c)
	return has(all, c.Value("name")), err
}

// quoted returns a value in quotes for a statement, or "" for None.
func quoted(v any, quote string) (string, error) {
	if v == nil {
		return "", nil
	}
	s := pytext.Str(v)
	if strings.Contains(s, quote) {
		return "", modules.Usagef("Unsupported character %s in value: %s", quote, s)
	}
	return quote + s + quote, nil
}

func dbCreate(ctx context.Context, c *modules.Call) (any, error) {
	query, with := `CREATE DATABASE "`+c.Str("name")+`"`, ""
	for _, o := range [...]struct{ word, name, quote string }{
		{"TABLESPACE", "tablespace", `"`}, {"OWNER", "owner", `"`}, {"TEMPLATE", "template", ""}, {"ENCODING", "encoding", "'"},
		{"LC_COLLATE", "lc_collate", "'"}, {"LC_CTYPE", "lc_ctype", "'"},
	} {
		v := c.Value(o.name)
		if v == nil {
			continue
		}
		s := pytext.Str(v)
		if o.quote != "" {
			var err error
			if s, err = quoted(v, o.quote); err != nil {
				return nil, err
			}
		}
		with += " " + o.word + " = " + s
	}
	if with != "" {
		query += " WITH" + with
	}
	return given(c).statement(ctx, c, query)
}

func dbAlter(ctx context.Context, c *modules.Call) (any, error) {
	name, owner, tablespace := c.Str("name"), c.Value("owner"), c.Value("tablespace")
	if !pytext.Truth(owner) && !pytext.Truth(tablespace) {
		return true, nil
	}
	p := given(c)
	if pytext.Truth(owner) && c.Bool("owner_recurse") {
		p.db = nil
		ret, err := p.ownerTo(ctx, c, name, pytext.Str(owner))
		return retcode(ret) == 0, err
	}
	var queries []string
	if pytext.Truth(owner) {
		queries = append(queries, `ALTER DATABASE "`+name+`" OWNER TO "`+pytext.Str(owner)+`"`)
	}
	if pytext.Truth(tablespace) {
		queries = append(queries, `ALTER DATABASE "`+name+`" SET TABLESPACE "`+pytext.Str(tablespace)+`"`)
	}
	// As in stock, the last statement decides.
	ok := true
	for _, q := range queries {
		var err error
		if ok, err = p.statement(ctx, c, q); err != nil {
			return nil, err
		}
	}
	return ok, nil
}

func dbRemove(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	for _, q := range [...]string{
		`REVOKE CONNECT ON DATABASE "` + name + `" FROM public;`,
		"SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + name + "' AND pid <> pg_backend_pid();",
		`DROP DATABASE "` + name + `";`,
	} {
		ret, err := given(c).psql(ctx, c, "--command", q)
		if err != nil {
			return nil, err
		}
		if retcode(ret) != 0 {
			return nil, &modules.PythonError{Type: "Exception", Msg: "Failed: ret={'pid': " + pytext.Str(ret["pid"]) + ", 'retcode': " +
				pytext.Str(ret["retcode"]) + ", 'stdout': " + pytext.Repr(ret["stdout"]) + ", 'stderr': " + pytext.Repr(ret["stderr"]) + "}"}
		}
	}
	return true, nil
}

func ownerTo(ctx context.Context, c *modules.Call) (any, error) {
	p := given(c)
	p.db = nil
	return p.ownerTo(ctx, c, c.Str("dbname"), c.Str("ownername"))
}

// ownerTo makes a role the owner of a database and of everything in it, in one transaction.
func (p conn) ownerTo(ctx context.Context, c *modules.Call, db, owner string) (map[string]any, error) {
	p.db = db
	role := ident(owner)
	script := "begin;\nalter database " + ident(db) + " owner to " + role + ";\n"
	const outside = "not in ('pg_catalog', 'information_schema') and ns.nspname not like 'pg\\_%'"
	for _, o := range [...]struct{ what, query string }{
		{"schema", "select quote_ident(ns.nspname) as n from pg_namespace ns where ns.nspname " + outside},
		{"table", "select quote_ident(ns.nspname)||'.'||quote_ident(c.relname) as n from pg_class c join pg_namespace ns on c.relnamespace=ns.oid " +
			"where c.relkind in ('r', 'v', 'm', 'f', 'p') and ns.nspname " + outside},
		{"routine", "select p.oid::regprocedure::text as n from pg_proc p join pg_namespace ns on p.pronamespace=ns.oid where p.prokind <> 'a' and ns.nspname " + outside},
		{"aggregate", "select p.oid::regprocedure::text as n from pg_proc p join pg_namespace ns on p.pronamespace=ns.oid where p.prokind = 'a' and ns.nspname " + outside},
		{"sequence", "select quote_ident(ns.nspname)||'.'||quote_ident(c.relname) as n from pg_class c join pg_namespace ns on c.relnamespace=ns.oid " +
			"where c.relkind = 'S' and not exists (select 1 from pg_depend d where d.objid = c.oid and d.deptype in ('a', 'i')) and ns.nspname " + outside},
	} {
		rows, err := p.rows(ctx, c, o.query, false)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			script += "alter " + o.what + " " + text(row, "n") + " owner to " + role + ";\n"
		}
	}
	script += "commit;\n"
	dir := pytemp.Dir()
	f, err := os.CreateTemp(c.Path(dir), "brine-owner")
	if err != nil {
		return nil, modules.OSError(err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(script)
	if err == nil {
		err = f.Chmod(0o644) // psql may run as another user
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, modules.OSError(err)
	}
	return p.psql(ctx, c, "-v", "ON_ERROR_STOP=1", "-f", filepath.Join(dir, filepath.Base(f.Name())))
}

func ident(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func (p conn) tablespaces(ctx context.Context, c *modules.Call) (map[string]any, error) {
	rows, err := p.rows(ctx, c, `SELECT spcname as "Name", pga.rolname as "Owner", spcacl as "ACL", spcoptions as "Opts", `+
		`pg_tablespace_location(pgts.oid) as "Location" FROM pg_tablespace pgts, pg_roles pga WHERE pga.oid = pgts.spcowner`, false)
	return byName(rows, "Name", true), err
}

func tablespaceList(ctx context.Context, c *modules.Call) (any, error) {
	return given(c).tablespaces(ctx, c)
}

func tablespaceExists(ctx context.Context, c *modules.Call) (any, error) {
	all, err := given(c).tablespaces(ctx, c)
	return has(all, c.Value("name")), err
}

// settings returns "k = v" for each entry of a map.
func settings(v any) ([]string, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, modules.NoAttribute(v, "items")
	}
	var list []string
	for _, k := range sorted(m) {
		list = append(list, k+" = "+pytext.Str(m[k]))
	}
	return list, nil
}

func tablespaceCreate(ctx context.Context, c *modules.Call) (any, error) {
	owner, options := "", ""
	if c.Bool("owner") {
		owner = `OWNER "` + c.Str("owner") + `"`
	}
	if c.Bool("options") {
		list, err := settings(c.Value("options"))
		if err != nil {
			return nil, err
		}
		options = "WITH ( " + strings.Join(list, ", ") + " )"
	}
	return given(c).statement(ctx, c, `CREATE TABLESPACE "`+c.Str("name")+`" `+owner+" LOCATION '"+c.Str("location")+"' "+options)
}

func tablespaceAlter(ctx context.Context, c *modules.Call) (any, error) {
	name := `ALTER TABLESPACE "` + c.Str("name") + `" `
	var queries []string
	if c.Bool("new_name") {
		queries = append(queries, name+`RENAME TO "`+c.Str("new_name")+`"`)
	}
	if c.Bool("new_owner") {
		queries = append(queries, name+`OWNER TO "`+c.Str("new_owner")+`"`)
	}
	if c.Bool("set_option") {
		list, err := settings(c.Value("set_option"))
		if err != nil {
			return nil, err
		}
		queries = append(queries, name+"SET ("+list[0]+")")
	}
	if c.Bool("reset_option") {
		queries = append(queries, name+"RESET ("+c.Str("reset_option")+")")
	}
	for _, q := range queries {
		if ok, err := given(c).statement(ctx, c, q); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

func tablespaceRemove(ctx context.Context, c *modules.Call) (any, error) {
	return given(c).statement(ctx, c, `DROP TABLESPACE "`+c.Str("name")+`"`)
}

func (p conn) schemas(ctx context.Context, c *modules.Call) (map[string]any, error) {
	rows, err := p.rows(ctx, c, `SELECT pg_namespace.nspname as "name",pg_namespace.nspacl as "acl", pg_roles.rolname as "owner" `+
		`FROM pg_namespace LEFT JOIN pg_roles ON pg_roles.oid = pg_namespace.nspowner `, false)
	return byName(rows, "name", true), err
}

func schemaList(ctx context.Context, c *modules.Call) (any, error) {
	return ofSchema(c).schemas(ctx, c)
}

func schemaGet(ctx context.Context, c *modules.Call) (any, error) {
	all, err := ofSchema(c).schemas(ctx, c)
	if !has(all, c.Value("name")) {
		return nil, err
	}
	return all[c.Str("name")], err
}

func schemaExists(ctx context.Context, c *modules.Call) (any, error) {
	v, err := schemaGet(ctx, c)
	return v != nil, err
}

func schemaCreate(ctx context.Context, c *modules.Call) (any, error) {
	if v, err := schemaExists(ctx, c); err != nil || v == true {
		return false, err
	}
	sql := `CREATE SCHEMA "` + c.Str("name") + `"`
	if c.Value("owner") != nil {
		sql += ` AUTHORIZATION "` + c.Str("owner") + `"`
	}
	return ofSchema(c).statement(ctx, c, sql)
}

func schemaRemove(ctx context.Context, c *modules.Call) (any, error) {
	if v, err := schemaExists(ctx, c); err != nil || v == false {
		return false, err
	}
	if _, err := ofSchema(c).statement(ctx, c, `DROP SCHEMA "`+c.Str("name")+`"`); err != nil {
		return nil, err
	}
	v, err := schemaExists(ctx, c)
	return v == false, err
}

func (p conn) languages(ctx context.Context, c *modules.Call) (map[string]any, error) {
	rows, err := p.rows(ctx, c, `SELECT lanname AS "Name" FROM pg_language`, false)
	out := map[string]any{}
	for _, row := range rows {
		out[text(row, "Name")] = row["Name"]
	}
	return out, err
}

func languageList(ctx context.Context, c *modules.Call) (any, error) {
	return given(c).languages(ctx, c)
}

func languageExists(ctx context.Context, c *modules.Call) (any, error) {
	all, err := given(c).languages(ctx, c)
	return has(all, c.Value("name")), err
}

// changeLanguage makes or removes a language where that is to do. As stock does, it looks for it with the configured connection.
func changeLanguage(ctx context.Context, c *modules.Call, verb string, there bool) (any, error) {
	all, err := conn{db: c.Value("maintenance_db")}.languages(ctx, c)
	if err != nil || has(all, c.Value("name")) != there {
		return false, err
	}
	return given(c).statement(ctx, c, verb+" LANGUAGE "+c.Str("name"))
}

func languageCreate(ctx context.Context, c *modules.Call) (any, error) {
	return changeLanguage(ctx, c, "CREATE", false)
}

func languageRemove(ctx context.Context, c *modules.Call) (any, error) {
	return changeLanguage(ctx, c, "DROP", true)
}
