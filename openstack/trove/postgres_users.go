package trove

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/dbpage"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// The rest of this file is PgSqlAdmin of trove.guestagent.datastore.postgres.service. It reserves no names; the
// server refuses those that it needs.

func (p *postgresServer) createDatabases(ctx context.Context, v any) error {
	list, err := maps1(v, "databases")
	if err != nil {
		return err
	}
	for _, x := range list {
		s, err := postgresNames.readSchema(x)
		if err != nil {
			return err
		}
		statement := "CREATE DATABASE " + pgName(s.name)
		if x["_character_set"] != nil {
			statement += " ENCODING = " + pgText(s.charset)
		}
		if x["_collate"] != nil {
			statement += " LC_COLLATE = " + pgText(s.collate)
		}
		if err := p.exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (p *postgresServer) deleteDatabase(ctx context.Context, v any) error {
	x, ok := v.(map[string]any)
	if !ok {
		return modules.Usagef("database must be a dictionary, not %s", modules.TypeName(v))
	}
	s, err := postgresNames.readSchema(x)
	if err != nil {
		return err
	}
	return p.exec(ctx, "DROP DATABASE IF EXISTS "+pgName(s.name))
}

// cutPage removes the row after the page. A missing limit and 0 mean the same. The last page has no marker.
func cutPage[T any](p page, rows []T, name func(T) string) ([]T, any) {
	rows, more := dbpage.Cut(p.Page, rows)
	if !more {
		return rows, nil
	}
	return rows, name(rows[len(rows)-1])
}

func (p *postgresServer) listDatabases(ctx context.Context) (any, error) {
	page, err := p.readPage()
	if err != nil {
		return nil, err
	}
	rows, err := p.query(ctx, dbpage.PostgresDatabases(page.Page, p.ignoreDB))
	if err != nil {
		return nil, err
	}
	rows, next := cutPage(page, rows, func(r row) string { return r.text(0) })
	list := []any{}
	for _, r := range rows {
		list = append(list, schema{r.text(0), r.text(2), r.text(1)}.serialize())
	}
	return []any{list, next}, nil
}

func (p *postgresServer) createUsers(ctx context.Context, v any) error {
	list, err := maps1(v, "users")
	if err != nil {
		return err
	}
	for _, x := range list {
		u, databases, err := postgresNames.readUser(x)
		if err == nil {
			err = p.createUser(ctx, u)
		}
		if err != nil {
			return err
		}
		for _, s := range databases {
			if err := p.grant(ctx, u.name, s.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// createUser creates a user with options such as "SUPERUSER".
func (p *postgresServer) createUser(ctx context.Context, u dbUser, options ...string) error {
	return p.exec(ctx, "CREATE USER "+pgName(u.name)+withClause(u.password, options))
}

// alterUser changes the options, and the password if there is one.
func (p *postgresServer) alterUser(ctx context.Context, u dbUser, options ...string) error {
	return p.exec(ctx, "ALTER USER "+pgName(u.name)+withClause(u.password, options))
}

func withClause(password any, options []string) string {
	if pytext.Truth(password) {
		options = append([]string{"PASSWORD " + pgText(pytext.Str(password))}, options...)
	}
	if len(options) == 0 {
		return ""
	}
	return " WITH " + strings.Join(options, " ")
}

func (p *postgresServer) grant(ctx context.Context, user, database string) error {
	return p.exec(ctx, "GRANT ALL ON DATABASE "+pgName(database)+" TO "+pgName(user))
}

func (p *postgresServer) revoke(ctx context.Context, user, database string) error {
	return p.exec(ctx, "REVOKE ALL ON DATABASE "+pgName(database)+" FROM "+pgName(user))
}

// usersOf makes users from the rows of [dbpage.PostgresGrants], which are sorted by user.
func usersOf(rows []row) []*dbUser {
	var list []*dbUser
	for _, r := range rows {
		if n := len(list); n == 0 || list[n-1].name != r.text(0) {
			list = append(list, &dbUser{name: r.text(0), host: "%"})
		}
		if r[1] != nil {
			u := list[len(list)-1]
			u.databases = append(u.databases, schema{r.text(1), r.text(3), r.text(2)}.serialize())
		}
	}
	return list
}

// findUser returns a user by name, or nil if it is missing.
func (p *postgresServer) findUser(ctx context.Context, name string) (*dbUser, error) {
	rows, err := p.query(ctx, dbpage.PostgresGrants+"WHERE u.usename = "+pgText(name)+" ORDER BY d.datname")
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return usersOf(rows)[0], nil
}

func (p *postgresServer) getUser(ctx context.Context) (any, error) {
	u, err := p.findUser(ctx, p.c.Str("username"))
	if err != nil || u == nil {
		return nil, err
	}
	return u.serialize(), nil
}

func (p *postgresServer) listUsers(ctx context.Context) (any, error) {
	page, err := p.readPage()
	if err != nil {
		return nil, err
	}
	rows, err := p.query(ctx, dbpage.PostgresUsers(page.Page, p.ignoreUsers))
	if err != nil {
		return nil, err
	}
	users, next := cutPage(page, usersOf(rows), func(u *dbUser) string { return u.name })
	list := []any{}
	for _, u := range users {
		list = append(list, u.serialize())
	}
	return []any{list, next}, nil
}

// deleteUser revokes grants before it drops the user, because PostgreSQL does not drop a user that has grants.
func (p *postgresServer) deleteUser(ctx context.Context, v any) error {
	x, ok := v.(map[string]any)
	if !ok {
		return modules.Usagef("user must be a dictionary, not %s", modules.TypeName(v))
	}
	u, _, err := postgresNames.readUser(x)
	if err != nil {
		return err
	}
	return p.dropUser(ctx, u.name)
}

func (p *postgresServer) dropUser(ctx context.Context, name string) error {
	found, err := p.findUser(ctx, name)
	if err != nil {
		return err
	}
	if found != nil {
		for _, d := range found.databases {
			if err := p.revoke(ctx, name, textOf(d.(map[string]any), "_name")); err != nil {
				return err
			}
		}
	}
	return p.exec(ctx, "DROP USER IF EXISTS "+pgName(name))
}

// changePasswords accepts users as Trove's API sends them, which Trove's own manager cannot read, and in the form
// that this manager expects.
func (p *postgresServer) changePasswords(ctx context.Context, v any) error {
	list, err := maps1(v, "users")
	if err != nil {
		return err
	}
	for _, x := range list {
		if _, ok := x["_name"]; !ok {
			x = map[string]any{"_name": x["name"], "_host": x["host"], "_password": x["password"]}
		}
		u, _, err := postgresNames.readUser(x)
		if err == nil {
			err = p.alterUser(ctx, u)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *postgresServer) updateAttributes(ctx context.Context) error {
	attrs, err := p.c.Map("user_attrs")
	if err != nil {
		return err
	}
	if err := postgresNames.checkUserName(p.c.Value("username")); err != nil {
		return err
	}
	u := dbUser{name: p.c.Str("username")}
	if v := attrs["name"]; v != nil {
		renamed := pytext.Str(v)
		if err := p.exec(ctx, "ALTER USER "+pgName(u.name)+" RENAME TO "+pgName(renamed)); err != nil {
			return err
		}
		u.name = renamed
	}
	v := attrs["password"]
	if v == nil {
		return nil
	}
	if err := postgresNames.checkPassword(v); err != nil {
		return err
	}
	u.password = v
	return p.alterUser(ctx, u)
}

func (p *postgresServer) listAccess(ctx context.Context) (any, error) {
	u, err := p.findUser(ctx, p.c.Str("username"))
	if err != nil || u == nil {
		return []any{}, err
	}
	return u.serialize()["_databases"], nil
}

func (p *postgresServer) grantAccess(ctx context.Context) error {
	databases, ok := p.c.Value("databases").([]any)
	if !ok {
		return modules.Usagef("databases must be a list, not %s", modules.TypeName(p.c.Value("databases")))
	}
	for _, v := range databases {
		if err := p.grant(ctx, p.c.Str("username"), pytext.Str(v)); err != nil {
			return err
		}
	}
	return nil
}

func (p *postgresServer) revokeAccess(ctx context.Context) error {
	return p.revoke(ctx, p.c.Str("username"), p.c.Str("database"))
}

// rootUser is the superuser that the instance's owner gets.
const rootUser = "root"

// isRootEnabled reports whether root is a superuser. Trove's manager lacks this for PostgreSQL.
func (p *postgresServer) isRootEnabled(ctx context.Context) (bool, error) {
	rows, err := p.query(ctx, "SELECT 1 FROM pg_catalog.pg_user WHERE usesuper AND usename = "+pgText(rootUser))
	return len(rows) > 0, err
}

func (p *postgresServer) enableRoot(ctx context.Context, password any) (any, error) {
	u := dbUser{name: rootUser, host: "%", password: password, isRoot: true}
	if !pytext.Truth(password) {
		word, err := randomPassword(passwordLength)
		if err != nil {
			return nil, err
		}
		u.password = word
	} else if err := postgresNames.checkPassword(password); err != nil {
		return nil, err
	}
	enabled, err := p.isRootEnabled(ctx)
	if err != nil {
		return nil, err
	}
	if !enabled {
		if err := p.createUser(ctx, u); err != nil {
			return nil, err
		}
	}
	err = p.alterUser(ctx, u, "SUPERUSER", "CREATEDB", "CREATEROLE", "INHERIT", "REPLICATION", "BYPASSRLS", "LOGIN")
	if err != nil {
		return nil, err
	}
	return u.serialize(), nil
}
