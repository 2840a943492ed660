package git

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// place returns where the configuration is: the directory of the repository, or the option for the user's own
// configuration.
func place(ctx context.Context, c *modules.Call, global any) (dir any, args []any, err error) {
	if c.Value("cwd") == nil {
		if !pytext.Truth(global) {
			return nil, nil, modules.Usagef("'cwd' argument required unless global=True")
		}
		dir = ""
	} else {
		dir = directory(ctx, c)
	}
	if pytext.Truth(global) {
		return dir, []any{"--global"}, nil
	}
	return dir, []any{"--local"}, nil
}

// read reads git options. The result's code is 1 if the option is not set.
func read(ctx context.Context, c *modules.Call, kw map[string]any, option string, more ...any) (result, error) {
	dir, where, err := place(ctx, c, kw["global"])
	if err != nil {
		return result{}, err
	}
	args := append(append([]any{"git", "config"}, where...), option, c.Value("key"))
	return command{args: append(args, more...), dir: dir, soft: true}.run(ctx, c)
}

func configGet(ctx context.Context, c *modules.Call) (any, error) {
	kw, err := known(c, "all", "global")
	if err != nil {
		return nil, err
	}
	return values(ctx, c, kw)
}

// values returns the last value of a git option, or all of them. It returns None if the option is not set.
func values(ctx context.Context, c *modules.Call, kw map[string]any) (any, error) {
	r, err := read(ctx, c, kw, "--get-all")
	if err != nil || r.code == 1 {
		return nil, err
	}
	list := lines(r.stdout)
	switch {
	case pytext.Truth(kw["all"]):
		return list, nil
	case len(list) == 0:
		return "", nil
	}
	return list[len(list)-1], nil
}

func configGetRegexp(ctx context.Context, c *modules.Call) (any, error) {
	kw, err := known(c, "global")
	if err != nil {
		return nil, err
	}
	var more []any
	if v := c.Value("value_regex"); v != nil {
		more = []any{pytext.Str(v)}
	}
	r, err := read(ctx, c, kw, "--get-regexp", more...)
	ret := map[string]any{}
	if err != nil || r.code == 1 {
		return ret, err
	}
	for _, line := range pytext.SplitLines(r.stdout, false) {
		if name, value, ok := strings.Cut(line, " "); ok {
			list, _ := ret[name].([]any)
			ret[name] = append(list, value)
		}
	}
	return ret, nil
}

func configSet(ctx context.Context, c *modules.Call) (any, error) {
	kw, err := known(c, "add", "global")
	if err != nil {
		return nil, err
	}
	global := kw["global"]
	dir, _, err := place(ctx, c, global)
	if err != nil {
		return nil, err
	}
	value, multi := c.Value("value"), c.Value("multivar")
	if value != nil && multi != nil {
		return nil, modules.Usagef("Only one of 'value' and 'multivar' is permitted")
	}
	list := []any{value}
	if value == nil {
		if list = words(multi); multi == nil {
			return nil, &modules.TypeError{Msg: "'NoneType' object is not iterable"}
		}
		list = nested.Anys(strs(list))
	}
	for i, v := range list {
		args := []any{"git", "config"}
		if pytext.Truth(global) {
			args = append(args, "--global")
		}
		if i > 0 || value != nil && pytext.Truth(kw["add"]) {
			args = append(args, "--add")
		} else {
			args = append(args, "--replace-all")
		}
		if _, err := (command{args: append(args, c.Value("key"), v), dir: dir}).run(ctx, c); err != nil {
			return nil, err
		}
	}
	return values(ctx, c, map[string]any{"all": true, "global": global})
}

func strs(list []any) []string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = pytext.Str(x)
	}
	return out
}

func configUnset(ctx context.Context, c *modules.Call) (any, error) {
	kw, err := known(c, "all", "global")
	if err != nil {
		return nil, err
	}
	dir, where, err := place(ctx, c, kw["global"])
	if err != nil {
		return nil, err
	}
	option := "--unset"
	if pytext.Truth(kw["all"]) {
		option = "--unset-all"
	}
	args := append(append([]any{"git", "config", option}, where...), c.Value("key"))
	if c.Value("value_regex") != nil {
		args = append(args, c.Value("value_regex"))
	}
	r, err := command{args: args, dir: dir, soft: true}.run(ctx, c)
	if err != nil {
		return nil, err
	}
	key := c.Str("key")
	switch r.code {
	case 0:
		return true, nil
	case 1:
		return nil, modules.Errorf("Section or key is invalid")
	case 5:
		if c.Value("cwd") == nil {
			return nil, modules.Usagef("'cwd' argument required unless global=True") // Salt looks the key up in the repository
		}
		have, err := values(ctx, c, nil)
		if err != nil {
			return nil, err
		}
		if have == nil {
			return nil, modules.Errorf("Key '%s' does not exist", key)
		}
		text := "Multiple values exist for key '" + key + "'"
		if c.Value("value_regex") != nil {
			text += " and value_regex matches multiple values"
		}
		return nil, modules.Errorf("%s", text)
	case 6:
		return nil, modules.Errorf("The value_regex is invalid")
	}
	text := ""
	if r.stderr != "" {
		text = "; " + r.stderr
	}
	return nil, modules.Errorf("Failed to unset key '%s', git config returned exit code %d%s", key, r.code, text)
}

func remoteList(ctx context.Context, c *modules.Call, hide bool) (map[string]any, error) {
	r, err := command{args: []any{"git", "remote", "--verbose"}, dir: directory(ctx, c)}.run(ctx, c)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, line := range strings.Split(r.stdout, "\n") {
		cols := strings.Fields(line)
		if len(cols) < 3 {
			continue
		}
		action := strings.ToLower(strings.Trim(cols[len(cols)-1], "()"))
		if action != "fetch" && action != "push" {
			continue
		}
		link := strings.Join(cols[1:len(cols)-1], " ")
		if hide {
			link = modules.RedactAuth(link)
		}
		one, _ := ret[cols[0]].(map[string]any)
		if one == nil {
			one = map[string]any{}
			ret[cols[0]] = one
		}
		one[action] = link
	}
	return ret, nil
}

func remotes(ctx context.Context, c *modules.Call) (any, error) {
	return remoteList(ctx, c, c.Bool("redact_auth"))
}

func remoteGet(ctx context.Context, c *modules.Call) (any, error) {
	return oneRemote(ctx, c, c.Bool("redact_auth"))
}

func oneRemote(ctx context.Context, c *modules.Call, hide bool) (any, error) {
	all, err := remoteList(ctx, c, hide)
	if err != nil {
		return nil, err
	}
	if r, ok := all[c.Str("remote")]; ok {
		return r, nil
	}
	return nil, modules.Errorf("Remote '%s' not present in git checkout located at %s", c.Str("remote"), directory(ctx, c))
}

func remoteSet(ctx context.Context, c *modules.Call) (any, error) {
	have, err := remoteList(ctx, c, true)
	if err != nil {
		return nil, err
	}
	remote := c.Str("remote")
	run := func(args ...any) error {
		_, err := command{args: append([]any{"git", "remote"}, args...), dir: directory(ctx, c)}.run(ctx, c)
		return err
	}
	link, err := address(c.Value("url"), c.Value("https_user"), c.Value("https_pass"))
	if _, ok := have[remote]; ok {
		if err := run("rm", remote); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	if err := run("add", remote, link); err != nil {
		return nil, err
	}
	if c.Bool("push_url") {
		link, err := address(c.Value("push_url"), c.Value("push_https_user"), c.Value("push_https_pass"))
		if err != nil {
			return nil, err
		}
		if err := run("set-url", "--push", remote, link); err != nil {
			return nil, err
		}
	}
	return oneRemote(ctx, c, true)
}
