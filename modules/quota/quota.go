// Package quota is Salt's execution module "quota". Salt's source: salt/modules/quota.py.
package quota

import (
	"context"
	"runtime"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func available(e *modules.Env) (bool, string) {
	return runtime.GOOS != "windows" && e.Which("setquota") != "", "The quota execution module cannot be loaded: the module is only available " +
		"on POSIX-like systems with the setquota binary available."
}

func report(ctx context.Context, c *modules.Call) (any, error) {
	users, err := read(ctx, c, c.Value("mount"), "-u", "Users")
	if err != nil {
		return nil, err
	}
	groups, err := read(ctx, c, c.Value("mount"), "-g", "Groups")
	if err != nil {
		return nil, err
	}
	return map[string]any{pytext.Str(c.Value("mount")): map[string]any{"User Quotas": users, "Group Quotas": groups}}, nil
}

// read returns the quotas of users or groups as repquota prints them.
func read(ctx context.Context, c *modules.Call, mount any, option, kind string) (map[string]any, error) {
	text, err := saltcmd.Text(ctx, c, "repquota", "-vp", option, mount)
	if err != nil {
		return nil, err
	}
	quotas := map[string]any{}
	out := map[string]any{kind: quotas}
	header := true
	for _, line := range pytext.SplitLines(text, false) {
		f := strings.Fields(line)
		switch {
		case header && strings.Contains(line, "Block grace time"):
			parts := strings.Split(line, ";")
			if len(parts) != 2 {
				return nil, &modules.PythonError{Type: "ValueError", Msg: "not enough values to unpack (expected 2, got 1)"}
			}
			out["Block Grace Time"], out["Inode Grace Time"] = []any{last(parts[0])}, []any{last(parts[1])}
		case header:
			header = !strings.HasPrefix(line, "-")
		case len(f) < 8:
		case len(f) < 10:
			return nil, modules.IndexError()
		default:
			quotas[f[0]] = map[string]any{
				"block-used": f[2], "block-soft-limit": f[3], "block-hard-limit": f[4], "block-grace": f[5],
				"file-used": f[6], "file-soft-limit": f[7], "file-hard-limit": f[8], "file-grace": f[9],
			}
		}
	}
	return out, nil
}

func last(s string) string {
	parts := strings.Split(s, ": ")
	return parts[len(parts)-1]
}

// set starts from no limits at all, since stock does not find those that are in force.
func set(ctx context.Context, c *modules.Call) (any, error) {
	limits := [...]string{"block-soft-limit", "block-hard-limit", "file-soft-limit", "file-hard-limit"}
	user, isUser := c.Keywords["user"]
	group, isGroup := c.Keywords["group"]
	if isUser {
		if _, err := read(ctx, c, c.Value("device"), "-u", "Users"); err != nil {
			return nil, err
		}
	}
	var cmd []any
	name := ""
	switch {
	case isUser && isGroup:
		return nil, modules.Usagef("Please specify a user or group, not both.")
	case isUser:
		cmd, name = []any{"setquota", "-u", user}, "User: "+pytext.Str(user)
	case isGroup:
		if _, err := read(ctx, c, c.Value("device"), "-g", "Groups"); err != nil {
			return nil, err
		}
		cmd, name = []any{"setquota", "-g", group}, "Group: "+pytext.Str(group)
	default:
		return nil, modules.Errorf("A valid user or group was not found")
	}
	current := map[string]any{}
	for _, l := range limits {
		current[l] = int64(0)
		if v, ok := c.Keywords[l]; ok {
			current[l] = v
		}
		cmd = append(cmd, current[l])
	}
	r, err := saltcmd.All(ctx, c, append(cmd, c.Value("device"))...)
	if err != nil {
		return nil, err
	}
	if r.Retcode != 0 {
		return nil, modules.Errorf("Unable to set desired quota. Error follows: \n%s", r.Stderr)
	}
	return map[string]any{name: current}, nil
}

func warn(ctx context.Context, c *modules.Call) (any, error) {
	_, err := saltcmd.Text(ctx, c, "quotawarn")
	return nil, err
}

func stats(ctx context.Context, c *modules.Call) (any, error) {
	text, err := saltcmd.Text(ctx, c, "quotastats")
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, line := range pytext.SplitLines(text, false) {
		if line == "" {
			continue
		}
		parts := strings.Split(line, ": ")
		if len(parts) < 2 {
			return nil, modules.IndexError()
		}
		out[parts[0]] = parts[1]
	}
	return out, nil
}

func on(ctx context.Context, c *modules.Call) (any, error) {
	_, err := saltcmd.Text(ctx, c, "quotaon", c.Value("device"))
	return err == nil, err
}

func off(ctx context.Context, c *modules.Call) (any, error) {
	_, err := saltcmd.Text(ctx, c, "quotaoff", c.Value("device"))
	return err == nil, err
}

func getMode(ctx context.Context, c *modules.Call) (any, error) {
	text, err := saltcmd.Text(ctx, c, "quotaon", "-p", c.Value("device"))
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, line := range pytext.SplitLines(text, false) {
		f := strings.Fields(line)
		if len(f) < 4 {
			return nil, modules.IndexError()
		}
		if out[f[3]] == nil {
			switch ours := strings.HasPrefix(f[0], "quotaon"); {
			case ours && strings.HasPrefix(f[1], "Mountpoint") && len(f) > 4:
				out[f[4]] = "disabled"
				continue
			case ours && strings.HasPrefix(f[1], "Cannot"):
				out[pytext.Str(c.Value("device"))] = "Not found"
				return out, nil
			case ours:
				continue
			case len(f) < 5:
				return nil, modules.IndexError()
			}
			out[f[3]] = map[string]any{"device": strings.NewReplacer("(", "", ")", "").Replace(f[4])}
		}
		m, ok := out[f[3]].(map[string]any)
		if len(f) < 7 || !ok {
			return nil, modules.IndexError()
		}
		m[f[0]] = f[6]
	}
	return out, nil
}
