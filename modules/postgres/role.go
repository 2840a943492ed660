package postgres

import (
	"context"
	"encoding/csv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/modkit/pgpassword"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func sorted(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// flag returns a column as a bool if its value is one of psql's texts for true and false.
func flag(row map[string]any, key string) any {
	switch row[key] {
	case "t":
		return true
	case "f":
		return false
	}
	return nil
}

// roles returns the users and groups of a server. ok is false if the server's version is unknown.
func (p conn) roles(ctx context.Context, c *modules.Call, passwords bool) (roles map[string]any, ok bool, err error) {
	version, err := p.version(ctx, c)
	if err != nil || version == "" {
		return nil, false, err
	}
	replication, catalogs := "NULL", "NULL"
	if atLeast(version, "9.1") {
		replication = "pg_roles.rolreplication"
	}
	if !atLeast(version, "9.5") {
		catalogs = "pg_roles.rolcatupdate"
	}
	query := `SELECT pg_roles.rolname as "name", pg_roles.rolsuper as "superuser", pg_roles.rolinherit as "inherits privileges", ` +
		`pg_roles.rolcreaterole as "can create roles", pg_roles.rolcreatedb as "can create databases", ` + catalogs + ` as "can update system catalogs", ` +
		`pg_roles.rolcanlogin as "can login", ` + replication + ` as "replication", pg_roles.rolconnlimit as "connections", ` +
		`(SELECT array_agg(pg_roles2.rolname) FROM pg_catalog.pg_auth_members JOIN pg_catalog.pg_roles pg_roles2 ` +
		`ON (pg_auth_members.roleid = pg_roles2.oid) WHERE pg_auth_members.member = pg_roles.oid) as "groups", ` +
		`pg_roles.rolvaliduntil::timestamp(0) as "expiry time", pg_roles.rolconfig as "defaults variables" `
	if passwords {
		query += `, COALESCE(pg_shadow.passwd, pg_authid.rolpassword) as "password" FROM pg_roles ` +
			`LEFT JOIN pg_authid ON pg_roles.oid = pg_authid.oid LEFT JOIN pg_shadow ON pg_roles.oid = pg_shadow.usesysid`
	} else {
		query += "FROM pg_roles"
	}
	rows, err := p.rows(ctx, c, query, false)
	out := map[string]any{}
	for _, row := range rows {
		r := map[string]any{"defaults variables": row["defaults variables"], "expiry time": nil}
		for _, key := range [...]string{"superuser", "inherits privileges", "can create roles", "can create databases", "can update system catalogs", "can login",
			"replication", "connections"} {
			r[key] = flag(row, key)
		}
		if t, err := time.Parse("2006-01-02 15:04:05", text(row, "expiry time")); err == nil {
			r["expiry time"] = t
		}
		if passwords {
			r["password"] = row["password"]
		}
		groups := []any{}
		if list, err := csv.NewReader(strings.NewReader(strings.Trim(text(row, "groups"), "{}"))).Read(); err == nil {
			for _, g := range list {
				groups = append(groups, g)
			}
		}
		r["groups"] = groups
		out[text(row, "name")] = r
	}
	return out, true, err
}

func userList(ctx context.Context, c *modules.Call) (any, error) {
	all, ok, err := given(c).roles(ctx, c, c.Bool("return_password"))
	if err != nil || !ok {
		return false, err
	}
	return all, nil
}

// role returns the properties of a role, or nil if the role does not exist.
func (p conn) role(ctx context.Context, c *modules.Call, name string, passwords bool) (map[string]any, error) {
	all, _, err := p.roles(ctx, c, passwords)
	r, _ := all[name].(map[string]any)
	return r, err
}

func roleGet(ctx context.Context, c *modules.Call) (any, error) {
	r, err := given(c).role(ctx, c, c.Str("name"), c.Bool("return_password"))
	if r == nil {
		return nil, err
	}
	return r, err
}

func userExists(ctx context.Context, c *modules.Call) (any, error) {
	r, err := given(c).role(ctx, c, c.Str("name"), false)
	return r != nil, err
}

// word is one option of CREATE ROLE and ALTER ROLE.
type word struct {
	name string
	// test is None, or whether the option is set.
	test   any
	cond   any // decides between the option and its contrary; nil is test
	prefix string
	text   string
	skip   bool
}

func (w word) add(to string) string {
	if w.skip {
		return to
	}
	cond := w.cond
	if cond == nil {
		cond = w.test
	}
	if w.test != nil {
		if pytext.Truth(cond) {
			to += " " + w.name
		} else {
			to += " " + w.prefix + w.name
		}
	}
	if w.text != "" {
		to += " " + w.text
	}
	return to
}

// options returns the options of CREATE ROLE or ALTER ROLE, followed by the statements about its groups.
func options(c *modules.Call, sql, name string, user bool, kind string, have map[string]any) (string, error) {
	get := func(key string) any { return c.Value(key) }
	inherit, login := get("inherit"), get("login")
	if inherit == nil && (kind == "user" || kind == "group") {
		inherit = true
	}
	if login == nil && kind != "" {
		login = kind == "user"
	}
	encrypted := get("encrypted")
	if encrypted == nil {
		encrypted = pgpassword.Default
	}
	password, isText := get("rolepassword").(string)
	_, isBool := get("rolepassword").(bool)
	truth := pytext.Truth(get("rolepassword"))
	escaped := ""
	if isText && password != "" {
		p, err := pgpassword.Encrypt(name, strings.ReplaceAll(password, "'", "''"), encrypted)
		if err != nil {
			return "", &modules.PythonError{Type: "ValueError", Msg: err.Error()}
		}
		escaped = "'" + p + "'"
	}
	noPassword := !isBool && (!isText || password == "")
	var connlimit, valid any
	limit, until := "", ""
	if user {
		connlimit, valid = get("connlimit"), get("valid_until")
		limit = pytext.Str(connlimit)
		if s, ok := valid.(string); ok && s != "" {
			until = "'" + strings.ReplaceAll(s, "'", "''") + "'"
		}
	}
	for _, w := range [...]word{
		{name: "INHERIT", test: inherit},
		{name: "CREATEDB", test: get("createdb")},
		{name: "CREATEROLE", test: get("createroles")},
		{name: "SUPERUSER", test: get("superuser"), skip: len(have) > 0 && pytext.Truth(get("superuser")) == pytext.Truth(have["superuser"])},
		{name: "REPLICATION", test: get("replication")},
		{name: "LOGIN", test: login},
		{name: "CONNECTION LIMIT", test: pytext.Truth(connlimit), text: limit, skip: connlimit == nil},
		{name: "ENCRYPTED", test: truth, skip: noPassword || isBool, cond: pytext.Truth(encrypted), prefix: "UN"},
		{name: "PASSWORD", test: truth, skip: noPassword, text: escaped},
		{name: "VALID UNTIL", test: pytext.Truth(valid), skip: valid == nil, text: until},
	} {
		if w.prefix == "" {
			w.prefix = "NO"
		}
		sql = w.add(sql)
	}
	if strings.HasSuffix(sql, "WITH") {
		sql = strings.ReplaceAll(sql, " WITH", "")
	}
	return sql + memberships(get("groups"), name), nil
}

func memberships(groups any, name string) (sql string) {
	var list []string
	switch g := groups.(type) {
	case nil:
	case []any:
		for _, x := range g {
			list = append(list, strings.Split(pytext.Str(x), ",")...)
		}
	default:
		if pytext.Truth(groups) {
			list = strings.Split(pytext.Str(groups), ",")
		}
	}
	for _, g := range list {
		sql += `; GRANT "` + g + `" TO "` + name + `"`
	}
	return sql
}

// create creates a role that does not exist.
func create(ctx context.Context, c *modules.Call, name, kind string) (any, error) {
	p := given(c)
	r, err := p.role(ctx, c, name, false)
	if err != nil || r != nil {
		return false, err
	}
	sql, err := options(c, "", name, kind == "user", kind, nil)
	if err != nil {
		return nil, err
	}
	return p.statement(ctx, c, `CREATE ROLE "`+name+`" WITH `+sql)
}

// update changes a role. Stock's defaults for users and groups do not hold here.
func update(ctx context.Context, c *modules.Call, name string, user bool) (any, error) {
	p := given(c)
	r, err := p.role(ctx, c, name, false)
	if err != nil || r == nil {
		return false, err
	}
	sql, err := options(c, "", name, user, "", r)
	if err != nil {
		return nil, err
	}
	return p.statement(ctx, c, `ALTER ROLE "`+name+`" WITH `+sql)
}

// remove drops an existing role.
func remove(ctx context.Context, c *modules.Call, name string) (any, error) {
	p := given(c)
	r, err := p.role(ctx, c, name, false)
	if err != nil || r == nil {
		return false, err
	}
	if _, err := p.statement(ctx, c, `DROP ROLE "`+name+`"`); err != nil {
		return nil, err
	}
	r, err = p.role(ctx, c, name, false)
	return r == nil, err
}

func userCreate(ctx context.Context, c *modules.Call) (any, error) {
	return create(ctx, c, c.Str("username"), "user")
}
func userUpdate(ctx context.Context, c *modules.Call) (any, error) {
	return update(ctx, c, c.Str("username"), true)
}
func userRemove(ctx context.Context, c *modules.Call) (any, error) {
	return remove(ctx, c, c.Str("username"))
}
func groupCreate(ctx context.Context, c *modules.Call) (any, error) {
	return create(ctx, c, c.Str("groupname"), "group")
}
func groupUpdate(ctx context.Context, c *modules.Call) (any, error) {
	return update(ctx, c, c.Str("groupname"), false)
}
func groupRemove(ctx context.Context, c *modules.Call) (any, error) {
	return remove(ctx, c, c.Str("groupname"))
}
