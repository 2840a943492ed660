// Package mysql contains Salt's state modules for MySQL and MariaDB: mysql_database, mysql_grants, mysql_query and
// mysql_user (salt/states/mysql_*.py). They call the execution module mysql, and exist only in builds that contain it.
package mysql

import (
	"context"
	"maps"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/states"
)

// The function that these states require, and the message if it is missing.
const needs, otherwise = "mysql.db_exists", "mysql module could not be loaded"

// ask calls a function of the module mysql with the connection that the state's further arguments describe.
func ask(ctx context.Context, c *states.Call, fun string, kw map[string]any, args ...any) (any, error) {
	all := map[string]any{}
	maps.Copy(all, c.Keywords)
	maps.Copy(all, kw)
	return c.ExecKw(ctx, "mysql."+fun, args, all)
}

func truth(ctx context.Context, c *states.Call, fun string, kw map[string]any, args ...any) (bool, error) {
	v, err := ask(ctx, c, fun, kw, args...)
	return pytext.Truth(v), err
}

// lastError returns the module's last error and clears it, or returns "" if there was no error.
func lastError(c *states.Call) string {
	v, _ := c.Context().Get("mysql.error")
	c.Context().Set("mysql.error", nil)
	if v == nil {
		return ""
	}
	return pytext.Str(v)
}

// reason returns a comment followed by the module's last error in brackets.
func reason(c *states.Call, comment string) string {
	if text := lastError(c); text != "" {
		return comment + " (" + text + ")"
	}
	return comment
}

func databasePresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	v, err := ask(ctx, c, "db_get", nil, name)
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(v) {
		if text := lastError(c); text != "" {
			return ret.As(states.False, text)
		}
		if c.Test() {
			return ret.As(states.None, "Database "+name+" is not present and needs to be created")
		}
		ok, err := truth(ctx, c, "db_create", map[string]any{"character_set": c.Value("character_set"), "collate": c.Value("collate")}, name)
		if err != nil {
			return nil, err
		}
		if !ok {
			return ret.As(states.False, reason(c, "Failed to create database "+name))
		}
		ret.Changes[name] = "Present"
		return ret.As(states.True, "The database "+name+" has been created")
	}
	have, _ := v.(map[string]any)
	ret.Result, ret.Comment = states.True, "Database "+name+" is already present"
	other := func(arg string) (string, bool) {
		is := pytext.Str(have[arg])
		return is, c.Bool(arg) && c.Value(arg) != is
	}
	charset, change := other("character_set")
	if change {
		ret.Comment = "Database character set " + c.Str("character_set") + " != " + charset + " needs to be updated"
		if c.Test() {
			ret.Result = states.None
		}
	}
	collate, changeCollate := other("collate")
	if changeCollate {
		ret.Comment += "\nDatabase collate " + c.Str("collate") + " != " + collate + " needs to be updated"
		if c.Test() {
			ret.Result = states.None
			return ret, nil
		}
	}
	if change && c.Test() {
		ret.Comment += "\nDatabase " + name + " is going to be updated"
	} else if change || changeCollate {
		if _, err := ask(ctx, c, "alter_db", map[string]any{"character_set": c.Value("character_set"), "collate": c.Value("collate")}, name); err != nil {
			return nil, err
		}
	}
	if v, err = ask(ctx, c, "db_get", nil, name); err != nil {
		return nil, err
	}
	now, _ := v.(map[string]any)
	for _, key := range [...]string{"collate", "character_set"} {
		if have[key] != now[key] {
			ret.Changes[key] = map[string]any{"before": have[key], "now": now[key]}
		}
	}
	return ret, nil
}

func databaseAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	there, err := truth(ctx, c, "db_exists", nil, name)
	if err != nil {
		return nil, err
	}
	if there {
		if c.Test() {
			return ret.As(states.None, "Database "+name+" is present and needs to be removed")
		}
		ok, err := truth(ctx, c, "db_remove", nil, name)
		if err != nil {
			return nil, err
		}
		if ok {
			ret.Changes[name] = "Absent"
			return ret.As(states.True, "Database "+name+" has been removed")
		}
		if text := lastError(c); text != "" {
			return ret.As(states.False, "Unable to remove database "+name+" ("+text+")")
		}
	} else if text := lastError(c); text != "" {
		return ret.As(states.False, text)
	}
	return ret.As(states.True, "Database "+name+" is not present, so it cannot be removed")
}

// grantTitle returns the description of a grant for comments.
func grantTitle(c *states.Call, between string) string {
	str := func(name string) string { return pytext.Str(c.Value(name)) }
	return str("grant") + " on " + str("database") + between + str("user") + "@" + str("host")
}

func grantsPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	args := []any{c.Value("grant"), c.Value("database"), c.Value("user"), c.Value("host"), c.Value("grant_option"), c.Value("escape")}
	there, err := truth(ctx, c, "grant_exists", nil, args...)
	if err != nil {
		return nil, err
	}
	if there {
		return ret.As(states.True, "Grant "+grantTitle(c, " to ")+" is already present")
	}
	if text := lastError(c); text != "" {
		return ret.As(states.False, text)
	}
	if c.Test() {
		return ret.As(states.None, "MySQL grant "+name+" is set to be created")
	}
	if c.Bool("revoke_first") {
		if err := revokeAll(ctx, c); err != nil {
			return nil, err
		}
	}
	ok, err := truth(ctx, c, "grant_add", nil, append(args, c.Value("ssl_option"))...)
	if err != nil {
		return nil, err
	}
	if !ok {
		text := "Failed to execute: \"GRANT " + pytext.Str(c.Value("grant")) + " ON " + pytext.Str(c.Value("database")) + " TO " +
			pytext.Str(c.Value("user")) + "@" + pytext.Str(c.Value("host")) + `"`
		return ret.As(states.False, reason(c, text))
	}
	ret.Changes[name] = "Present"
	return ret.As(states.True, "Grant "+grantTitle(c, " to ")+" has been added")
}

// revokeAll takes from the user what is granted on the whole of the database, where names are written as the server shows them.
func revokeAll(ctx context.Context, c *states.Call) error {
	v, err := ask(ctx, c, "user_grants", nil, c.Value("user"), c.Value("host"))
	if err != nil {
		return err
	}
	list, _ := v.([]any)
	db := c.Str("database")
	table := db[strings.LastIndexByte(db, '.')+1:]
	db = strings.TrimSuffix(strings.TrimSuffix(db, table), ".")
	for _, text := range list {
		v, err := c.Exec(ctx, "mysql.tokenize_grant", text)
		if err != nil {
			return err
		}
		g, _ := v.(map[string]any)
		quoted, err := c.Exec(ctx, "mysql.quote_identifier", db, table == "*")
		if err != nil {
			return err
		}
		if g["database"] != quoted {
			continue
		}
		var names []string
		have, _ := g["grant"].([]any)
		for _, x := range have {
			names = append(names, pytext.Str(x))
		}
		if _, err := ask(ctx, c, "grant_revoke", map[string]any{"grant": strings.TrimRight(strings.Join(names, ","), ","), "database": c.Value("database"),
			"user": c.Value("user"), "host": c.Value("host"), "grant_option": c.Value("grant_option"), "escape": c.Value("escape")}); err != nil {
			return err
		}
	}
	return nil
}

func grantsAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	args := []any{c.Value("grant"), c.Value("database"), c.Value("user"), c.Value("host"), c.Value("grant_option")}
	there, err := truth(ctx, c, "grant_exists", nil, append(args, c.Value("escape"))...)
	if err != nil {
		return nil, err
	}
	if there {
		if c.Test() {
			return ret.As(states.None, "MySQL grant "+name+" is set to be revoked")
		}
		ok, err := truth(ctx, c, "grant_revoke", nil, args...)
		if err != nil {
			return nil, err
		}
		if ok {
			ret.Changes[name] = "Absent"
			return ret.As(states.True, "Grant "+grantTitle(c, " for ")+" has been revoked")
		}
		if text := lastError(c); text != "" {
			return ret.As(states.False, "Unable to revoke grant "+grantTitle(c, " for ")+" ("+text+")")
		}
	} else if text := lastError(c); text != "" {
		return ret.As(states.False, "Unable to determine if grant "+grantTitle(c, " for ")+" exists ("+text+")")
	}
	return ret.As(states.True, "Grant "+grantTitle(c, " to ")+" is not present, so it cannot be revoked")
}
