package cron

import (
	"context"
	"maps"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytemp"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func file(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	name := c.Str("user")
	group, ok := primary(ctx, c)
	if !ok {
		return ret.As(states.False, "Could not identify group for user "+name)
	}
	raw, err := c.Exec(ctx, "cron.raw_cron", c.Value("user"))
	if err != nil {
		return nil, err
	}
	text := pytext.Str(raw)
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	tmp, err := write(text)
	if err != nil {
		return nil, modules.OSError(err)
	}
	defer os.Remove(tmp)
	if !c.Bool("replace") {
		return ret.As(states.True, "User "+name+" already has a crontab. No changes made")
	}
	common := maps.Clone(c.Keywords)
	if common == nil {
		common = map[string]any{}
	}
	own := map[string]any{"name": tmp, "group": group, "mode": "0600", "attrs": []any{}, "saltenv": c.Saltenv()}
	for _, k := range [...]string{"source_hash_name", "user", "template", "context", "defaults"} {
		own[k] = c.Value(k)
	}
	for k, v := range own {
		if _, twice := common[k]; twice {
			return nil, &modules.TypeError{Msg: "got multiple values for keyword argument '" + k + "'"}
		}
		common[k] = v
	}
	if c.Test() {
		common["source"], common["source_hash"] = c.Value("name"), c.Value("source_hash")
		v, err := c.ExecKw(ctx, "file.check_managed", nil, common)
		if err != nil {
			return nil, err
		}
		pair, _ := v.([]any)
		if len(pair) != 2 {
			return nil, &modules.PythonError{Type: "ValueError", Msg: "not enough values to unpack (expected 2, got " + pytext.Str(int64(len(pair))) + ")"}
		}
		res := states.ResultOf(map[string]any{"name": ret.Name, "result": pair[0], "comment": pair[1]})
		return res, nil
	}
	return install(ctx, c, ret, tmp, group, common)
}

// primary returns the user's first group. ok is false if the user does not exist.
func primary(ctx context.Context, c *states.Call) (any, bool) {
	v, err := c.Exec(ctx, "user.info", c.Value("user"))
	if err != nil {
		return nil, false
	}
	info, _ := v.(map[string]any)
	groups, _ := info["groups"].([]any)
	if len(groups) == 0 {
		return nil, false
	}
	return groups[0], true
}

// write writes the table to a temporary file.
func write(text string) (string, error) {
	f, err := os.CreateTemp(pytemp.Dir(), "__salt.tmp.")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// install fetches the file and makes it the table.
func install(ctx context.Context, c *states.Call, ret *states.Result, tmp string, group any, common map[string]any) (*states.Result, error) {
	v, err := c.Exec(ctx, "file.source_list", c.Value("name"), c.Value("source_hash"), c.Saltenv())
	if err != nil {
		return nil, err
	}
	found, _ := v.([]any)
	if len(found) != 2 {
		return nil, modules.Errorf("cannot find the source %s", ret.Name)
	}
	common["source"], common["source_hash"], common["skip_verify"] = found[0], found[1], false
	unable := func(err error) (*states.Result, error) {
		ret.Changes = map[string]any{}
		return ret.As(states.False, "Unable to manage file: "+states.ErrorText(err))
	}
	if v, err = c.ExecKw(ctx, "file.get_managed", nil, common); err != nil {
		return unable(err)
	}
	got, _ := v.([]any)
	if len(got) != 3 {
		return nil, modules.Errorf("cannot get the source %s", ret.Name)
	}
	if pytext.Truth(got[2]) {
		return ret.As(states.False, pytext.Str(got[2]))
	}
	ret.Result = states.True
	v, err = c.ExecKw(ctx, "file.manage_file", nil, map[string]any{"name": tmp, "sfn": got[0], "ret": ret.Map(), "source": found[0], "source_sum": got[1],
		"user": c.Value("user"), "group": group, "mode": "0600", "attrs": []any{}, "saltenv": c.Saltenv(), "backup": c.Value("backup")})
	if err != nil {
		return unable(err)
	}
	m, _ := v.(map[string]any)
	ret = states.ResultOf(m)
	if _, ok := ret.Changes["diff"]; !ok {
		if ret.Result == states.True {
			ret.Comment, ret.Changes = "Crontab for user "+c.Str("user")+" is in the correct state", map[string]any{}
		}
		return ret, nil
	}
	if v, err = c.Exec(ctx, "cron.write_cron_file_verbose", c.Value("user"), tmp); err != nil {
		return nil, err
	}
	out, _ := v.(map[string]any)
	if pytext.Truth(out["retcode"]) {
		ret.Changes = map[string]any{}
		return ret.As(states.False, "Unable to update user "+c.Str("user")+" crontab "+tmp+". Error: "+pytext.Str(out["stderr"]))
	}
	return ret.As(states.True, "Crontab for user "+c.Str("user")+" was updated")
}
