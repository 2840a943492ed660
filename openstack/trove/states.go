package trove

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() {
	states.Register(DatabaseState)
	states.Register(UserState)
}

// DatabaseState is the state module "trove_database": databases of the instance, whatever its datastore is.
var DatabaseState = &states.Module{Name: "trove_database", Doc: "Databases of the datastore of an instance of OpenStack Trove.", Needs: "trove.list_databases", Otherwise: "this agent has no module trove", Funcs: []states.Def{
	{Name: "absent", Doc: `Have no such database.

name
    the database
`, Params: []modules.Param{{Name: "name"}}, Run: databaseAbsent},
	{Name: "present", Doc: `Have a database. Character set and collation are those of a new database; those of a database that exists must be the same.

name
    the database
character_set
    its character set
collate
    its collation
`, Params: []modules.Param{{Name: "name"}, {Name: "character_set", Optional: true}, {Name: "collate", Optional: true}}, Run: databasePresent},
}}

// UserState is the state module "trove_user": users of the instance, whatever its datastore is.
var UserState = &states.Module{Name: "trove_user", Doc: "Users of the datastore of an instance of OpenStack Trove.", Needs: "trove.list_users", Otherwise: "this agent has no module trove", Funcs: []states.Def{
	{Name: "absent", Doc: `Have no such user.

name
    the user
host
    the host that the user comes from; PostgreSQL does not have it
`, Params: []modules.Param{{Name: "name"}, {Name: "host", Default: "%"}}, Run: userAbsent},
	{Name: "present", Doc: `Have a user with privileges on databases.

name
    the user
host
    the host that the user comes from; PostgreSQL does not have it
password
    the password of a new user; that of a user who exists stays
databases
    the databases on which the user has all privileges, and on which no others are left; without it the privileges stay
`, Params: []modules.Param{{Name: "name"}, {Name: "host", Default: "%"}, {Name: "password", Optional: true, Secret: true}, {Name: "databases", Optional: true}}, Run: userPresent},
}}

// failed returns a state's result for a function of the module trove that has failed.
func failed(ret *states.Result, err error) (*states.Result, error) {
	return ret.As(states.False, err.Error())
}

// findDatabase returns a database of the instance, or nil if it is missing.
func findDatabase(ctx context.Context, c *states.Call, name string) (map[string]any, error) {
	v, err := c.ExecKw(ctx, "trove.list_databases", nil, nil)
	if err != nil {
		return nil, err
	}
	page, _ := v.([]any)
	if len(page) == 0 {
		return nil, modules.Errorf("cannot read the databases: trove.list_databases answers %s", pytext.Repr(v))
	}
	rows, _ := page[0].([]any)
	for _, row := range rows {
		if m, ok := row.(map[string]any); ok && m["_name"] == name {
			return m, nil
		}
	}
	return nil, nil
}

// sameSet returns the one spelling of a character set's or collation's names. Their case does not matter, and utf8 is the older name of
// utf8mb3.
func sameSet(name string) string {
	name = strings.ToLower(name)
	if rest, ok := strings.CutPrefix(name, "utf8"); ok && (rest == "" || rest[0] == '_') {
		return "utf8mb3" + rest
	}
	return name
}

func databasePresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	is, err := findDatabase(ctx, c, name)
	if err != nil {
		return failed(ret, err)
	}
	if is != nil {
		for _, key := range [...]string{"character_set", "collate"} {
			if want := c.Value(key); pytext.Truth(want) && sameSet(pytext.Str(is["_"+key])) != sameSet(pytext.Str(want)) {
				return ret.As(states.False, "The database "+name+" has the "+strings.ReplaceAll(key, "_", " ")+" "+pytext.Str(is["_"+key])+", not "+pytext.Str(want))
			}
		}
		return ret.As(states.True, "The database "+name+" is present")
	}
	if c.Test() {
		return ret.As(states.None, "The database "+name+" would be created")
	}
	database := map[string]any{"_name": name, "_character_set": c.Value("character_set"), "_collate": c.Value("collate")}
	if _, err := c.ExecKw(ctx, "trove.create_database", nil, map[string]any{"databases": []any{database}}); err != nil {
		return failed(ret, err)
	}
	ret.Changes[name] = "Present"
	return ret.As(states.True, "The database "+name+" has been created")
}

func databaseAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	is, err := findDatabase(ctx, c, name)
	if err != nil {
		return failed(ret, err)
	}
	if is == nil {
		return ret.As(states.True, "The database "+name+" is absent")
	}
	if c.Test() {
		return ret.As(states.None, "The database "+name+" would be removed")
	}
	if _, err := c.ExecKw(ctx, "trove.delete_database", nil, map[string]any{"database": is}); err != nil {
		return failed(ret, err)
	}
	ret.Changes[name] = "Absent"
	return ret.As(states.True, "The database "+name+" has been removed")
}

// findUser returns the user of a state, or nil if it is missing.
func findUser(ctx context.Context, c *states.Call) (map[string]any, error) {
	v, err := c.ExecKw(ctx, "trove.get_user", nil, map[string]any{"username": c.Name(), "hostname": c.Str("host")})
	m, _ := v.(map[string]any)
	return m, err
}

func userPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	wanted := c.Strings("databases")
	is, err := findUser(ctx, c)
	if err != nil {
		return failed(ret, err)
	}
	if is == nil {
		if c.Test() {
			return ret.As(states.None, "The user "+name+" would be created")
		}
		databases := make([]any, len(wanted))
		for i, d := range wanted {
			databases[i] = map[string]any{"_name": d}
		}
		user := map[string]any{"_name": name, "_host": c.Str("host"), "_password": c.Value("password"), "_databases": databases}
		if _, err := c.ExecKw(ctx, "trove.create_user", nil, map[string]any{"users": []any{user}}); err != nil {
			return failed(ret, err)
		}
		ret.Changes[name] = "Present"
		return ret.As(states.True, "The user "+name+" has been created")
	}
	if c.Value("databases") == nil {
		return ret.As(states.True, "The user "+name+" is present")
	}
	var has []string
	list, _ := is["_databases"].([]any)
	for _, d := range list {
		if m, ok := d.(map[string]any); ok {
			has = append(has, pytext.Str(m["_name"]))
		}
	}
	grant := without(wanted, has)
	revoke := without(has, wanted)
	if len(grant)+len(revoke) == 0 {
		return ret.As(states.True, "The user "+name+" is present")
	}
	if c.Test() {
		return ret.As(states.None, "The privileges of the user "+name+" would be changed")
	}
	who := map[string]any{"username": name, "hostname": c.Str("host")}
	if len(grant) > 0 {
		if _, err := c.ExecKw(ctx, "trove.grant_access", nil, map[string]any{"username": name, "hostname": c.Str("host"), "databases": grant}); err != nil {
			return failed(ret, err)
		}
		ret.Changes["granted"] = grant
	}
	var revoked []any
	for _, d := range revoke {
		who["database"] = d
		if _, err := c.ExecKw(ctx, "trove.revoke_access", nil, who); err != nil {
			return failed(ret, err)
		}
		revoked = append(revoked, d)
		ret.Changes["revoked"] = revoked
	}
	return ret.As(states.True, "The privileges of the user "+name+" have been changed")
}

// without returns the texts of list that are not in other.
func without(list, other []string) []any {
	var out []any
	for _, s := range list {
		if !slices.Contains(other, s) {
			out = append(out, s)
		}
	}
	return out
}

func userAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	is, err := findUser(ctx, c)
	if err != nil {
		return failed(ret, err)
	}
	if is == nil {
		return ret.As(states.True, "The user "+name+" is absent")
	}
	if c.Test() {
		return ret.As(states.None, "The user "+name+" would be removed")
	}
	if _, err := c.ExecKw(ctx, "trove.delete_user", nil, map[string]any{"user": map[string]any{"_name": name, "_host": c.Str("host")}}); err != nil {
		return failed(ret, err)
	}
	ret.Changes[name] = "Absent"
	return ret.As(states.True, "The user "+name+" has been removed")
}
