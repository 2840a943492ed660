package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/modkit/pgpassword"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func userPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	return role(ctx, c, "user", "default_password", "valid_until")
}

func groupPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	return role(ctx, c, "group", "", "")
}

// secret returns the password to set, or nil if it is missing or the role has it already.
func secret(c *states.Call, have map[string]any, encrypted, password any) (any, error) {
	if password == nil {
		return nil, nil
	}
	if have != nil && !c.Bool("refresh_password") {
		s, ok := password.(string)
		if !ok && encrypted != false {
			return nil, modules.NoAttribute(password, "startswith")
		}
		if ok && pgpassword.Verify(c.Name(), s, pytext.Str(have["password"]), encrypted) {
			return nil, nil
		}
	}
	kept, err := pgpassword.Encrypt(c.Name(), pytext.Str(password), encrypted)
	if err != nil {
		return nil, &modules.PythonError{Type: "ValueError", Msg: err.Error()}
	}
	return kept, nil
}

// role implements the state present for users and groups. The parameters name arguments that only users have.
func role(ctx context.Context, c *states.Call, kind, defaultPassword, validUntil string) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	title := strings.ToUpper(kind[:1]) + kind[1:] + " " + name
	encrypted := c.Value("encrypted")
	if encrypted == nil {
		encrypted = pgpassword.Default
	}
	v, err := c.ExecKw(ctx, "postgres.role_get", []any{name}, with(reach(c), map[string]any{"return_password": !c.Bool("refresh_password")}))
	if err != nil {
		return nil, err
	}
	have, _ := v.(map[string]any)
	mode, password := "update", c.Value("password")
	if have == nil {
		mode = "create"
		if password == nil && defaultPassword != "" {
			password = c.Value(defaultPassword)
		}
	}
	if password, err = secret(c, have, encrypted, password); err != nil {
		return nil, err
	}
	update := map[string]any{}
	if have != nil {
		for _, o := range [...]struct{ arg, key string }{{"createdb", "can create databases"}, {"inherit", "inherits privileges"}, {"login", "can login"},
			{"createroles", "can create roles"}, {"replication", "replication"}, {"superuser", "superuser"}} {
			if v := c.Value(o.arg); v != nil && !nested.Equal(v, have[o.key]) {
				update[o.arg] = v
			}
		}
		if password != nil {
			update["password"] = true
		}
		if validUntil != "" && c.Value(validUntil) != nil {
			other, err := otherEnd(ctx, c, have)
			if err != nil {
				return nil, err
			}
			if other {
				update["valid_until"] = c.Value(validUntil)
			}
		}
		if missing := missingGroups(c.Value("groups"), have["groups"]); len(missing) > 0 {
			update["groups"] = missing
		}
		if len(update) == 0 {
			return ret.As(states.True, title+" is already present")
		}
	}
	if c.Test() {
		if len(update) > 0 {
			ret.Changes[name] = update
		}
		return ret.As(states.None, title+" is set to be "+mode+"d")
	}
	kw := with(reach(c), pick(c, "createdb", "createroles", "superuser", "login", "inherit", "replication", "groups"))
	kw[kind+"name"], kw["encrypted"], kw["rolepassword"] = name, encrypted, password
	if validUntil != "" {
		kw["valid_until"] = c.Value(validUntil)
	}
	ok, err := ask(ctx, c, kind+"_"+mode, kw)
	if err != nil {
		return nil, err
	}
	if !ok {
		return ret.As(states.False, "Failed to "+mode+" "+kind+" "+name)
	}
	ret.Changes[name] = "Present"
	if len(update) > 0 {
		ret.Changes[name] = update
	}
	return ret.As(states.True, "The "+kind+" "+name+" has been "+mode+"d")
}

// otherEnd reports whether the password of a user ends at another time than wanted. The server reads the time.
func otherEnd(ctx context.Context, c *states.Call, have map[string]any) (bool, error) {
	query := "SELECT '" + strings.ReplaceAll(c.Str("valid_until"), "'", "''") + "'::timestamp(0) as dt;"
	v, err := c.ExecKw(ctx, "postgres.psql_query", []any{query}, reach(c))
	if err != nil {
		return false, err
	}
	rows, _ := v.([]any)
	if len(rows) == 0 {
		return false, modules.IndexError()
	}
	row, _ := rows[0].(map[string]any)
	var want any
	if t, err := time.Parse("2006-01-02 15:04:05", pytext.Str(row["dt"])); err == nil {
		want = t
	}
	return want != have["expiry time"], nil
}

// missingGroups returns the wanted groups that a role is not in.
func missingGroups(want, have any) []any {
	if s, ok := want.(string); ok {
		list := []any{}
		for g := range strings.SplitSeq(s, ",") {
			list = append(list, g)
		}
		want = list
	}
	list, _ := want.([]any)
	in, _ := have.([]any)
	var missing []any
	for _, g := range list {
		if !nested.Contains(in, g) {
			missing = append(missing, g)
		}
	}
	return missing
}
