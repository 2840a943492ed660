// Package useradd is Salt's execution module "user" where users are made with useradd, usermod and userdel. Salt's source:
// salt/modules/useradd.py.
package useradd

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/nss"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func available(e *modules.Env) (bool, string) {
	switch e.Grain("kernel") {
	case "Linux", "OpenBSD", "NetBSD", "AIX":
		return true, ""
	}
	return false, "useradd execution module not loaded: either pwd python library not available or system not one of Linux, OpenBSD, " +
		"NetBSD or AIX"
}

// elsewhere returns the argument root. ok is false if it is not set, or on AIX, which has no such option.
func elsewhere(c *modules.Call) (root any, ok bool) {
	root = c.Value("root")
	return root, root != nil && c.Grain("kernel") != "AIX"
}

func add(ctx context.Context, c *modules.Call) (any, error) {
	local := c.Bool("local")
	program := "useradd"
	if local {
		program = "luseradd"
	}
	path, err := saltcmd.Which(c, program)
	if err != nil {
		return nil, err
	}
	cmd := []any{path}
	if c.Bool("shell") {
		cmd = append(cmd, "-s", c.Value("shell"))
	}
	if v := c.Value("uid"); v != nil && v != "" {
		cmd = append(cmd, "-u", v)
	}
	group, err := primary(ctx, c)
	if err != nil {
		return nil, err
	}
	cmd = append(cmd, group...)
	cmd = append(cmd, flags(c, local)...)
	cmd = append(cmd, c.Value("name"))
	if root, ok := elsewhere(c); ok && !local {
		cmd = append(cmd, "-R", root)
	}
	r, err := saltcmd.All(ctx, c, cmd...)
	if err != nil {
		return nil, err
	}
	if r.Retcode != 0 {
		return false, nil
	}
	return true, describe(ctx, c)
}

// primary returns the options for the primary group.
func primary(ctx context.Context, c *modules.Call) ([]any, error) {
	if v := c.Value("gid"); v != nil && v != "" {
		return []any{"-g", v}, nil
	}
	if c.Bool("usergroup") {
		if c.Bool("local") {
			return nil, nil
		}
		return []any{"-U"}, nil
	}
	member, err := contains(c.Value("groups"), c.Value("name"))
	if err != nil || !member {
		return nil, err
	}
	if c.Grain("kernel") == "OpenBSD" {
		for _, line := range fileLines(c, "/etc/usermgmt.conf") {
			if words := strings.Fields(line); strings.Contains(line[:min(5, len(line))], "group") && len(words) > 0 {
				return []any{"-g", words[len(words)-1]}, nil
			}
		}
		return nil, nil
	}
	for _, line := range fileLines(c, "/etc/login.defs") {
		if !strings.Contains(line[:min(15, len(line))], "USERGROUPS_ENAB") {
			continue
		}
		if strings.Contains(line, "yes") {
			if g, ok := nss.GroupByName(ctx, c, c.Str("name")); ok {
				return []any{"-g", g.GID}, nil
			}
			return []any{"-g", ""}, nil
		}
		break
	}
	return nil, nil
}

// contains implements Python's "in" for groups, which may be a list or a text.
func contains(groups, name any) (bool, error) {
	switch v := groups.(type) {
	case nil:
		return false, nil
	case string:
		s, ok := name.(string)
		if !ok {
			return false, &modules.TypeError{Msg: "'in <string>' requires string as left operand, not " + modules.TypeName(name)}
		}
		return strings.Contains(v, s), nil
	case []any:
		return nested.Contains(v, name), nil
	case map[string]any:
		_, ok := v[pytext.Str(name)]
		return ok, nil
	}
	return false, &modules.TypeError{Msg: "argument of type '" + modules.TypeName(groups) + "' is not iterable"}
}

func fileLines(c *modules.Call, path string) []string {
	text, err := os.ReadFile(c.Path(path))
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\n")
}

func flags(c *modules.Call, local bool) []any {
	kernel := c.Grain("kernel")
	bsd := kernel == "NetBSD" || kernel == "OpenBSD"
	var cmd []any
	if c.Value("usergroup") == false {
		if local {
			cmd = append(cmd, "-n")
		} else {
			cmd = append(cmd, "-N")
		}
	}
	if c.Bool("createhome") {
		if !local {
			cmd = append(cmd, "-m")
		}
	} else if !bsd {
		cmd = append(cmd, "-M")
	}
	if c.Bool("nologinit") {
		cmd = append(cmd, "-l")
	}
	if c.Bool("selinux_user") && !local {
		cmd = append(cmd, "-Z", c.Value("selinux_user"))
	}
	if v := c.Value("home"); v != nil {
		cmd = append(cmd, "-d", v)
	}
	if !c.Bool("unique") && kernel != "AIX" {
		cmd = append(cmd, "-o")
	}
	if c.Bool("system") && !bsd {
		cmd = append(cmd, "-r")
	}
	if v := c.Value("loginclass"); v != nil && kernel == "OpenBSD" {
		cmd = append(cmd, "-L", v)
	}
	return cmd
}

// describe sets what useradd did not set. If that fails, the user exists nevertheless.
func describe(ctx context.Context, c *modules.Call) error {
	root := c.Value("root")
	if c.Bool("groups") {
		if _, err := setGroups(ctx, c, c.Value("name"), c.Value("groups"), false); err != nil {
			return err
		}
	}
	for _, key := range [...]string{"fullname", "roomnumber", "workphone", "homephone", "other"} {
		if c.Bool(key) {
			if _, err := updateGecos(ctx, c, c.Value("name"), key, c.Value(key), root); err != nil {
				return err
			}
		}
	}
	return nil
}

func deleteUser(ctx context.Context, c *modules.Call) (any, error) {
	local, kernel := c.Bool("local"), c.Grain("kernel")
	program := "userdel"
	if local {
		program = "luserdel"
	}
	path, err := saltcmd.Which(c, program)
	if err != nil {
		return nil, err
	}
	cmd := []any{path}
	if c.Bool("remove") {
		cmd = append(cmd, "-r")
	}
	if c.Bool("force") && kernel != "OpenBSD" && kernel != "AIX" && !local {
		cmd = append(cmd, "-f")
	}
	cmd = append(cmd, c.Value("name"))
	if root, ok := elsewhere(c); ok && !local {
		cmd = append(cmd, "-R", root)
	}
	r, err := saltcmd.All(ctx, c, cmd...)
	if err != nil {
		return nil, err
	}
	// Debian's userdel ends with 12 when only the mail spool was missing.
	spool := strings.Contains(r.Stderr, "var/mail") || strings.Contains(r.Stderr, "var/spool/mail")
	return r.Retcode == 0 || r.Retcode == 12 && c.Grain("os_family") == "Debian" && spool, nil
}

func chuid(ctx context.Context, c *modules.Call) (any, error)   { return field(ctx, c, "uid", "-u") }
func chgid(ctx context.Context, c *modules.Call) (any, error)   { return field(ctx, c, "gid", "-g") }
func chshell(ctx context.Context, c *modules.Call) (any, error) { return field(ctx, c, "shell", "-s") }
func chhome(ctx context.Context, c *modules.Call) (any, error)  { return field(ctx, c, "home", "-d") }

// field changes the field of the user that the argument is named after, with an option of usermod.
func field(ctx context.Context, c *modules.Call, key, option string) (any, error) {
	return change(ctx, c, key, c.Value(key), option, c.Bool("persist"))
}

func change(ctx context.Context, c *modules.Call, key string, value any, option string, persist bool) (any, error) {
	name, root := c.Value("name"), c.Value("root")
	before, err := lookup(ctx, c, name, root)
	if err != nil {
		return nil, err
	}
	if len(before) == 0 {
		return nil, modules.Errorf("User '%s' does not exist", pytext.Str(name))
	}
	if nested.Equal(value, before[key]) {
		return true, nil
	}
	path, err := saltcmd.Which(c, "usermod")
	if err != nil {
		return nil, err
	}
	cmd := []any{path}
	if root, ok := elsewhere(c); ok {
		cmd = append(cmd, "-R", root)
	}
	if persist && c.Grain("kernel") != "OpenBSD" {
		cmd = append(cmd, "-m")
	}
	if _, err := saltcmd.Text(ctx, c, append(cmd, option, value, name)...); err != nil {
		return nil, err
	}
	after, err := lookup(ctx, c, name, root)
	return err == nil && nested.Equal(after[key], value), err
}

func rename(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Value("new_name")
	taken, err := lookup(ctx, c, name, c.Value("root"))
	if err != nil {
		return nil, err
	}
	if len(taken) > 0 {
		return nil, modules.Errorf("User '%s' already exists", pytext.Str(name))
	}
	return change(ctx, c, "name", name, "-l", false) // the old name is then gone, for which Salt says False
}

func chgroups(ctx context.Context, c *modules.Call) (any, error) {
	return setGroups(ctx, c, c.Value("name"), c.Value("groups"), c.Bool("append"))
}

func setGroups(ctx context.Context, c *modules.Call, name, groups any, add bool) (any, error) {
	list, err := names(groups)
	if err != nil {
		return nil, err
	}
	now := nss.GroupNames(ctx, c, pytext.Str(name))
	want := slices.Clone(list)
	slices.Sort(want)
	if slices.Equal(now, slices.Compact(want)) {
		return true, nil
	}
	path, err := saltcmd.Which(c, "usermod")
	if err != nil {
		return nil, err
	}
	cmd, kernel := []any{path}, c.Grain("kernel")
	switch {
	case kernel == "OpenBSD" && add:
		cmd = append(cmd, "-G")
	case kernel == "OpenBSD":
		cmd = append(cmd, "-S")
	case add && kernel != "AIX":
		cmd = append(cmd, "-a", "-G")
	default:
		cmd = append(cmd, "-G")
	}
	if add && kernel == "AIX" {
		cmd = append(cmd, strings.Join(now, ",")+","+strings.Join(list, ","), name)
	} else {
		cmd = append(cmd, strings.Join(list, ","), name)
	}
	if root, ok := elsewhere(c); ok {
		cmd = append(cmd, "-R", root)
	}
	r, err := saltcmd.All(ctx, c, cmd...)
	if err != nil {
		return nil, err
	}
	if r.Retcode != 0 && kernel != "OpenBSD" && kernel != "AIX" && strings.Contains(r.Stderr, "not found in") {
		return gpasswd(ctx, c, name, list)
	}
	return r.Retcode == 0, nil
}

// names returns the names in a list of groups, or in a text with commas.
func names(groups any) ([]string, error) {
	switch v := groups.(type) {
	case string:
		return strings.Split(v, ","), nil
	case []any:
		list := make([]string, len(v))
		for i, x := range v {
			s, ok := x.(string)
			if !ok {
				return nil, &modules.TypeError{Msg: "sequence item " + pytext.Str(int64(i)) + ": expected str instance, " + modules.TypeName(x) + " found"}
			}
			list[i] = s
		}
		return list, nil
	case map[string]any:
		var list []string
		for k := range v {
			list = append(list, k)
		}
		slices.Sort(list)
		return list, nil
	}
	return nil, &modules.TypeError{Msg: "'" + modules.TypeName(groups) + "' object is not iterable"}
}

// gpasswd adds a user whom usermod does not see to local groups.
func gpasswd(ctx context.Context, c *modules.Call, name any, groups []string) (any, error) {
	all := true
	for _, g := range groups {
		code, err := saltcmd.Retcode(ctx, c, "gpasswd", "-a", name, g)
		if err != nil {
			return nil, err
		}
		all = all && code == 0
	}
	return all, nil
}

func getLoginclass(ctx context.Context, c *modules.Call) (any, error) { return loginclass(ctx, c) }

func loginclass(ctx context.Context, c *modules.Call) (any, error) {
	if c.Grain("kernel") != "OpenBSD" {
		return false, nil
	}
	r, err := saltcmd.All(ctx, c, "userinfo", c.Value("name"))
	if err != nil {
		return nil, err
	}
	for _, line := range r.Lines() {
		if words := strings.Fields(line); strings.HasPrefix(line, "class") && len(words) > 1 {
			return strings.TrimSpace(strings.TrimPrefix(line, words[0])), nil
		}
	}
	return "", nil
}

func chloginclass(ctx context.Context, c *modules.Call) (any, error) {
	now, err := loginclass(ctx, c)
	if err != nil || now == false {
		return false, err
	}
	want := c.Value("loginclass")
	if nested.Equal(now, want) {
		return true, nil
	}
	path, err := saltcmd.Which(c, "usermod")
	if err != nil {
		return nil, err
	}
	cmd := []any{path, "-L", want, c.Value("name")}
	if root, ok := elsewhere(c); ok {
		cmd = append(cmd, "-R", root)
	}
	if _, err := saltcmd.Text(ctx, c, cmd...); err != nil {
		return nil, err
	}
	now, err = loginclass(ctx, c)
	return err == nil && nested.Equal(now, want), err
}
