// Package postgres is Salt's state modules for PostgreSQL: postgres_cluster, postgres_database, postgres_extension, postgres_group,
// postgres_initdb, postgres_language, postgres_privileges, postgres_schema, postgres_tablespace, postgres_user
// (salt/states/postgres_*.py). They work through the execution module postgres.
package postgres

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// The function that these states require, and the message if it is missing.
const (
	needs     = "postgres.user_exists"
	otherwise = "Unable to load postgres module.  Make sure `postgres.bins_dir` is set."
)

// reach returns the connection arguments of most functions of the module postgres.
func reach(c *states.Call) map[string]any {
	return map[string]any{"maintenance_db": c.Value("maintenance_db"), "runas": c.Value("user"), "host": c.Value("db_host"), "user": c.Value("db_user"),
		"port": c.Value("db_port"), "password": c.Value("db_password")}
}

// withoutDB is like [reach] for functions that take the database as an argument.
func withoutDB(c *states.Call) map[string]any {
	kw := reach(c)
	delete(kw, "maintenance_db")
	return kw
}

// with adds arguments to keyword arguments.
func with(kw map[string]any, more map[string]any) map[string]any {
	kw = maps.Clone(kw)
	maps.Copy(kw, more)
	return kw
}

// pick returns some arguments of the state, by name.
func pick(c *states.Call, names ...string) map[string]any {
	m := map[string]any{}
	for _, name := range names {
		m[name] = c.Value(name)
	}
	return m
}

// ask calls a function of the module postgres and returns the truth of its result.
func ask(ctx context.Context, c *states.Call, fun string, kw map[string]any, args ...any) (bool, error) {
	v, err := c.ExecKw(ctx, "postgres."+fun, args, kw)
	return pytext.Truth(v), err
}

// gone implements the state absent of most of these modules: it removes an object that exists.
func gone(ctx context.Context, c *states.Call, what, exists, remove string, kw map[string]any, args ...any) (*states.Result, error) {
	ret := c.Result()
	title := what + " " + c.Name()
	there, err := ask(ctx, c, exists, kw, args...)
	if err != nil {
		return nil, err
	}
	if !there {
		return ret.As(states.True, title+" is not present, so it cannot be removed")
	}
	if c.Test() {
		return ret.As(states.None, title+" is set to be removed")
	}
	ok, err := ask(ctx, c, remove, kw, args...)
	if err != nil {
		return nil, err
	}
	if !ok {
		return ret.As(states.False, title+" failed to be removed")
	}
	ret.Changes[c.Name()] = "Absent"
	return ret.As(states.True, title+" has been removed")
}

func userAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	return gone(ctx, c, "User", "user_exists", "user_remove", reach(c), c.Value("name"))
}

func groupAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	return gone(ctx, c, "Group", "user_exists", "group_remove", reach(c), c.Value("name"))
}

func databaseAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	return gone(ctx, c, "Database", "db_exists", "db_remove", reach(c), c.Value("name"))
}

func databasePresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	v, err := c.ExecKw(ctx, "postgres.db_list", nil, reach(c))
	if err != nil {
		return nil, err
	}
	all, _ := v.(map[string]any)
	have, there := all[name].(map[string]any)
	other := func(column, arg string) bool {
		return c.Bool(arg) && have[column] != c.Value(arg)
	}
	encoding := c.Bool("encoding") && !strings.EqualFold(pytext.Str(have["Encoding"]), c.Str("encoding"))
	fixed := encoding || other("Collate", "lc_collate") || other("Ctype", "lc_ctype")
	switch {
	case there && !fixed && !other("Tablespace", "tablespace") && !other("Owner", "owner"):
		return ret.As(states.True, "Database "+name+" is already present")
	case there && fixed:
		return ret.As(states.False, "Database "+name+" has wrong parameters which couldn't be changed on fly.")
	case c.Test() && there:
		return ret.As(states.None, "Database "+name+" exists, but parameters need to be changed")
	case c.Test():
		return ret.As(states.None, "Database "+name+" is set to be created")
	case there:
		ok, err := ask(ctx, c, "db_alter", with(reach(c), pick(c, "tablespace", "owner", "owner_recurse")), name)
		if err != nil {
			return nil, err
		}
		if !ok {
			return ret.As(states.False, "Failed to change parameters for database "+name)
		}
		ret.Changes[name] = "Parameters changed"
		return ret.As(states.True, "Parameters for database "+name+" have been changed")
	}
	ok, err := ask(ctx, c, "db_create", with(reach(c), pick(c, "tablespace", "encoding", "lc_collate", "lc_ctype", "owner", "template")), name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return ret.As(states.False, "Failed to create database "+name)
	}
	ret.Changes[name] = "Present"
	return ret.As(states.True, "The database "+name+" has been created")
}

func extensionAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	there, err := ask(ctx, c, "is_installed_extension", reach(c), name)
	if err != nil {
		return nil, err
	}
	if !there {
		return ret.As(states.True, "Extension "+name+" is not present, so it cannot be removed")
	}
	if c.Test() {
		return ret.As(states.None, "Extension "+name+" is set to be removed")
	}
	ok, err := ask(ctx, c, "drop_extension", with(reach(c), pick(c, "if_exists", "restrict", "cascade")), name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return ret.As(states.False, "Extension "+name+" failed to be removed")
	}
	ret.Changes[name] = "Absent"
	return ret.As(states.True, "Extension "+name+" has been removed")
}

func extensionPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	v, err := c.ExecKw(ctx, "postgres.create_metadata", []any{name}, with(reach(c), pick(c, "schema", "ext_version")))
	if err != nil {
		return nil, err
	}
	has := func(s string) bool {
		list, _ := v.([]any)
		return slices.Contains(list, any("EXTENSION "+s))
	}
	mode, verb := "", ""
	switch {
	case has("NOT INSTALLED"):
		mode, verb = "install", "installed"
	case has("INSTALLED") && (has("TO MOVE") || has("TO UPGRADE")):
		mode, verb = "upgrade", "upgraded"
	default:
		return ret.As(states.True, "Extension "+name+" is already present")
	}
	if c.Test() {
		return ret.As(states.None, strings.ReplaceAll("Extension "+name+" is set to be "+mode+"ed", "eed", "ed"))
	}
	ok, err := ask(ctx, c, "create_extension", with(reach(c), pick(c, "name", "if_not_exists", "schema", "ext_version", "from_version")))
	if err != nil {
		return nil, err
	}
	if !ok {
		return ret.As(states.False, "Failed to "+mode+" extension "+name)
	}
	ret.Changes[name] = strings.ToUpper(verb[:1]) + verb[1:]
	return ret.As(states.True, "The extension "+name+" has been "+verb)
}

func languageAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	there, err := ask(ctx, c, "language_exists", withoutDB(c), name, c.Value("maintenance_db"))
	if err != nil {
		return nil, err
	}
	if there {
		if c.Test() {
			return ret.As(states.None, "Language "+name+" is set to be removed")
		}
		// Stock gives language_remove no database, which is an error.
		ok, err := ask(ctx, c, "language_remove", withoutDB(c), name)
		if err != nil {
			return nil, err
		}
		if ok {
			ret.Changes[name] = "Absent"
			return ret.As(states.True, "Language "+name+" has been removed")
		}
		return ret.As(states.False, "Language "+name+" is not present so it cannot be removed")
	}
	return ret.As(states.True, "Language "+name+" is not present so it cannot be removed")
}

func languagePresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	v, err := c.ExecKw(ctx, "postgres.language_list", []any{c.Value("maintenance_db")}, withoutDB(c))
	if err != nil {
		return nil, err
	}
	all, _ := v.(map[string]any)
	if _, there := all[name]; there {
		return ret.As(states.True, "Language "+name+" is already installed")
	}
	if c.Test() {
		return ret.As(states.None, "Language "+name+" is set to be installed")
	}
	ok, err := ask(ctx, c, "language_create", withoutDB(c), name, c.Value("maintenance_db"))
	if err != nil {
		return nil, err
	}
	if !ok {
		return ret.As(states.False, "Failed to install language "+name)
	}
	ret.Changes[name] = "Present"
	return ret.As(states.True, "Language "+name+" has been installed")
}

// privileges returns the arguments for the functions about privileges, and the words for the privileges in comments.
func privileges(c *states.Call) (args []any, kw map[string]any, title string, err error) {
	args = []any{c.Value("name"), c.Value("object_name"), c.Value("object_type")}
	kw = with(reach(c), map[string]any{"privileges": nil, "prepend": c.Value("prepend")})
	title = "None"
	if c.Bool("privileges") {
		switch v := c.Value("privileges").(type) {
		case []any:
			list := make([]string, len(v))
			for i, x := range v {
				s, ok := x.(string)
				if !ok {
					return nil, nil, "", &modules.TypeError{Msg: "sequence item " + pytext.Str(int64(i)) + ": expected str instance, " + modules.TypeName(x) + " found"}
				}
				list[i] = s
			}
			title = strings.Join(list, ",")
		case string:
			title = strings.Join(strings.Split(v, ""), ",") // as Python joins the letters of a text
		default:
			return nil, nil, "", &modules.TypeError{Msg: "can only join an iterable"}
		}
		kw["privileges"] = title
	}
	if c.Value("object_type") == "group" {
		title = c.Str("object_name")
	}
	return args, kw, title, nil
}

func privilegesPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	args, kw, title, err := privileges(c)
	if err != nil {
		return nil, err
	}
	kw["grant_option"] = c.Value("grant_option")
	has, err := ask(ctx, c, "has_privileges", kw, args...)
	if err != nil {
		return nil, err
	}
	if has {
		return ret.As(states.True, "The requested privilege(s) are already set")
	}
	if c.Test() {
		return ret.As(states.None, "The privilege(s): "+title+" are set to be granted to "+c.Name())
	}
	ok, err := ask(ctx, c, "privileges_grant", kw, args...)
	if err != nil {
		return nil, err
	}
	if !ok {
		return ret.As(states.False, "Failed to grant privilege(s): "+title+" to "+c.Name())
	}
	ret.Changes[c.Name()] = "Present"
	return ret.As(states.True, "The privilege(s): "+title+" have been granted to "+c.Name())
}

func privilegesAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	args, kw, title, err := privileges(c)
	if err != nil {
		return nil, err
	}
	has, err := ask(ctx, c, "has_privileges", kw, args...)
	if err != nil {
		return nil, err
	}
	if !has {
		return ret.As(states.True, "The requested privilege(s) are not set so cannot be revoked")
	}
	if c.Test() {
		return ret.As(states.None, "The privilege(s): "+title+" are set to be revoked from "+c.Name())
	}
	ok, err := ask(ctx, c, "privileges_revoke", kw, args...)
	if err != nil {
		return nil, err
	}
	if !ok {
		return ret.As(states.False, "Failed to revoke privilege(s): "+title+" from "+c.Name())
	}
	ret.Changes[c.Name()] = "Absent"
	return ret.As(states.True, "The privilege(s): "+title+" have been revoked from "+c.Name())
}
