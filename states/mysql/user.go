package mysql

import (
	"context"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/states"
)

func userPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	name, host := c.Value("name"), c.Value("host")
	who := c.Name() + "@" + pytext.Str(host)
	passwordless := !c.Bool("password") && !c.Bool("password_hash")
	allowed := pytext.IsTrue(c.Value("allow_passwordless"))
	how := map[string]any{"unix_socket": c.Value("unix_socket"), "password_column": c.Value("password_column")}
	args := []any{name, host}
	if passwordless {
		if !allowed && !c.Bool("unix_socket") {
			return ret.As(states.False, "Either password or password_hash must be specified, unless allow_passwordless is True")
		}
		how["passwordless"] = true
	} else {
		args = append(args, c.Value("password"), c.Value("password_hash"))
	}
	there, err := truth(ctx, c, "user_exists", how, args...)
	if err != nil {
		return nil, err
	}
	if there {
		comment := "User " + who + " is already present"
		switch {
		case passwordless && c.Bool("allow_passwordless"):
			comment += " with passwordless login"
		case passwordless:
		case c.Value("auth_plugin") != "mysql_native_password":
			comment += ". Unable to verify password."
		default:
			comment += " with the desired password"
			if c.Bool("password_hash") && !c.Bool("password") {
				comment += " hash"
			}
		}
		return ret.As(states.True, comment)
	}
	if text := lastError(c); text != "" {
		return ret.As(states.False, text)
	}
	there, err = truth(ctx, c, "user_exists", map[string]any{"unix_socket": c.Value("unix_socket")}, name, host)
	if err != nil {
		return nil, err
	}
	if there {
		return changePassword(ctx, c, ret, who, passwordless, allowed)
	}
	if text := lastError(c); text != "" {
		return ret.As(states.False, text)
	}
	return create(ctx, c, ret, who, allowed)
}

func changePassword(ctx context.Context, c *states.Call, ret *states.Result, who string, passwordless, allowed bool) (*states.Result, error) {
	if c.Test() {
		comment := "Password for user " + who + " is set to be "
		switch {
		case passwordless && !allowed:
			return ret.As(states.False, comment+"cleared, but allow_passwordless != True")
		case passwordless:
			return ret.As(states.None, comment+"cleared")
		}
		return ret.As(states.None, comment+"changed")
	}
	ok, err := truth(ctx, c, "user_chpass", nil, c.Value("name"), c.Value("host"), c.Value("password"), c.Value("password_hash"), c.Value("allow_passwordless"),
		c.Value("unix_socket"))
	if err != nil {
		return nil, err
	}
	done, verb := "changed", "change"
	if passwordless {
		done, verb = "cleared", "clear"
	}
	if ok {
		ret.Changes[c.Name()] = "Updated"
		return ret.As(states.True, "Password for user "+who+" has been "+done)
	}
	comment := reason(c, "Failed to "+verb+" password for user "+who)
	if passwordless && !allowed {
		comment += ". Note: allow_passwordless must be True to permit passwordless login."
	}
	return ret.As(states.False, comment)
}

func create(ctx context.Context, c *states.Call, ret *states.Result, who string, allowed bool) (*states.Result, error) {
	how := ""
	if c.Bool("allow_passwordless") {
		how += " with passwordless login"
	}
	if c.Test() {
		result := states.None
		if c.Bool("allow_passwordless") && !allowed {
			how += ", but allow_passwordless != True"
			result = states.False
		}
		if c.Bool("unix_socket") {
			how += " using unix_socket"
		}
		return ret.As(result, "User "+who+" is set to be added"+how)
	}
	ok, err := truth(ctx, c, "user_create", map[string]any{"unix_socket": c.Value("unix_socket"), "password_column": c.Value("password_column"),
		"auth_plugin": c.Value("auth_plugin")}, c.Value("name"), c.Value("host"), c.Value("password"), c.Value("password_hash"), c.Value("allow_passwordless"))
	if err != nil {
		return nil, err
	}
	if !ok {
		return ret.As(states.False, reason(c, "Failed to create user "+who))
	}
	if c.Bool("unix_socket") {
		how += " using unix_socket"
	}
	ret.Changes[c.Name()] = "Present"
	return ret.As(states.True, "The user "+who+" has been added"+how)
}

func userAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	who := "User " + c.Name() + "@" + pytext.Str(c.Value("host"))
	there, err := truth(ctx, c, "user_exists", nil, c.Value("name"), c.Value("host"))
	if err != nil {
		return nil, err
	}
	if there {
		if c.Test() {
			return ret.As(states.None, who+" is set to be removed")
		}
		ok, err := truth(ctx, c, "user_remove", nil, c.Value("name"), c.Value("host"))
		if err != nil {
			return nil, err
		}
		if ok {
			ret.Changes[c.Name()] = "Absent"
			return ret.As(states.True, who+" has been removed")
		}
	}
	if text := lastError(c); text != "" {
		return ret.As(states.False, text)
	}
	return ret.As(states.True, who+" is not present, so it cannot be removed")
}
