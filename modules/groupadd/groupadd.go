// Package groupadd is Salt's execution module "group" where groups are made with groupadd, groupmod and gpasswd. Salt's source:
// salt/modules/groupadd.py.
package groupadd

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/nss"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func available(e *modules.Env) (bool, string) {
	switch e.Grain("kernel") {
	case "Linux", "OpenBSD", "NetBSD":
		return true, ""
	}
	return false, "The groupadd execution module cannot be loaded:  only available on Linux, OpenBSD and NetBSD"
}

func add(ctx context.Context, c *modules.Call) (any, error) {
	local := c.Bool("local")
	program := "groupadd"
	if local {
		program = "lgroupadd"
	}
	path, err := saltcmd.Which(c, program)
	if err != nil {
		return nil, err
	}
	cmd := []any{path}
	if c.Bool("gid") {
		cmd = append(cmd, "-g "+c.Str("gid")) // one word, which groupadd takes
		if c.Bool("non_unique") && !local {
			cmd = append(cmd, "-o")
		}
	}
	if c.Bool("system") && c.Grain("kernel") != "OpenBSD" {
		cmd = append(cmd, "-r")
	}
	if root := c.Value("root"); root != nil && !local {
		cmd = append(cmd, "-R", root)
	}
	r, err := saltcmd.All(ctx, c, append(cmd, c.Value("name"))...)
	return err == nil && r.Retcode == 0, err
}

func deleteGroup(ctx context.Context, c *modules.Call) (any, error) {
	local := c.Bool("local")
	program := "groupdel"
	if local {
		program = "lgroupdel"
	}
	path, err := saltcmd.Which(c, program)
	if err != nil {
		return nil, err
	}
	cmd := []any{path}
	if root := c.Value("root"); root != nil && !local {
		cmd = append(cmd, "-R", root)
	}
	r, err := saltcmd.All(ctx, c, append(cmd, c.Value("name"))...)
	return err == nil && r.Retcode == 0, err
}

func info(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(lookup(ctx, c, c.Value("name"), c.Value("root")))
}

// lookup implements group.info.
func lookup(ctx context.Context, c *modules.Call, name, root any) (map[string]any, error) {
	if root == nil {
		s, ok := name.(string)
		if !ok {
			return nil, &modules.TypeError{Msg: "getgrnam() argument 'name' must be str, not " + modules.TypeName(name)}
		}
		g, ok := nss.GroupByName(ctx, c, s)
		if !ok {
			return map[string]any{}, nil
		}
		return describe(g), nil
	}
	lines, err := file(c, root)
	if err != nil {
		return nil, err
	}
	for _, f := range lines {
		if name == f[0] {
			g, err := entry(f)
			return describe(g), err
		}
	}
	return map[string]any{}, nil
}

func describe(g nss.Group) map[string]any {
	members := make([]any, len(g.Members))
	for i, m := range g.Members {
		members[i] = m
	}
	return map[string]any{"name": g.Name, "passwd": g.Passwd, "gid": g.GID, "members": members}
}

// file returns the fields of the complete lines in the group file below root.
func file(c *modules.Call, root any) ([][]string, error) {
	dir := "/"
	if pytext.Truth(root) {
		s, ok := root.(string)
		if !ok {
			return nil, &modules.TypeError{Msg: "expected str, bytes or os.PathLike object, not " + modules.TypeName(root)}
		}
		dir = s
	}
	text, err := os.ReadFile(c.Path(strings.TrimSuffix(dir, "/") + "/etc/group"))
	if err != nil {
		return nil, modules.OSError(err)
	}
	var out [][]string
	for _, line := range strings.Split(string(text), "\n") {
		if f := strings.Split(pytext.Strip(line), ":"); len(f) >= 4 {
			out = append(out, f)
		}
	}
	return out, nil
}

func entry(f []string) (nss.Group, error) {
	gid, err := modules.ToInt(f[2])
	if err != nil {
		return nss.Group{}, err
	}
	if len(f) != 4 {
		return nss.Group{}, &modules.TypeError{Msg: "grp.struct_group() takes a 4-sequence (" + strconv.Itoa(len(f)) + "-sequence given)"}
	}
	g := nss.Group{Name: f[0], Passwd: f[1], GID: gid}
	if f[3] != "" {
		g.Members = strings.Split(f[3], ",")
	}
	return g, nil
}

func getent(ctx context.Context, c *modules.Call) (any, error) {
	if v, _ := c.Context().Get("group.getent"); v != nil && !c.Bool("refresh") {
		return v, nil
	}
	var groups []nss.Group
	if root := c.Value("root"); root == nil {
		groups = nss.Groups(ctx, c)
	} else {
		lines, err := file(c, root)
		if err != nil {
			return nil, err
		}
		for _, f := range lines {
			g, err := entry(f)
			if err != nil {
				return nil, err
			}
			groups = append(groups, g)
		}
	}
	out := make([]any, len(groups))
	for i, g := range groups {
		out[i] = describe(g)
	}
	c.Context().Set("group.getent", out)
	return out, nil
}

func chgid(ctx context.Context, c *modules.Call) (any, error) {
	name, gid, root := c.Value("name"), c.Value("gid"), c.Value("root")
	before, err := lookup(ctx, c, name, root)
	if err != nil || len(before) == 0 {
		return false, err
	}
	if nested.Equal(gid, before["gid"]) {
		return true, nil
	}
	path, err := saltcmd.Which(c, "groupmod")
	if err != nil {
		return nil, err
	}
	cmd, option := []any{path}, "-g"
	if c.Bool("non_unique") {
		option = "-og"
	}
	if root != nil {
		cmd = append(cmd, "-R", root)
	}
	if _, err := saltcmd.Text(ctx, c, append(cmd, option, gid, name)...); err != nil {
		return nil, err
	}
	after, err := lookup(ctx, c, name, root)
	return err == nil && nested.Equal(after["gid"], gid), err
}

// suse11 reports whether the host is SLES 11, whose tools are their own.
func suse11(c *modules.Call) bool {
	return c.Grain("os_family") == "Suse" && c.Grain("osmajorrelease") == "11"
}

func adduser(ctx context.Context, c *modules.Call) (any, error) {
	name, user := c.Value("name"), c.Value("username")
	program, option := "usermod", "-R"
	args := []any{"-G", name, user}
	if c.Grain("kernel") == "Linux" {
		option = "--root"
		if suse11(c) {
			args = []any{"-A", name, user}
		} else {
			program, args = "gpasswd", []any{"--add", user, name}
		}
	}
	return succeeds(ctx, c, program, option, args)
}

// succeeds runs a program, with the root argument behind an option, and reports whether it worked.
func succeeds(ctx context.Context, c *modules.Call, program, option string, args []any) (any, error) {
	path, err := saltcmd.Which(c, program)
	if err != nil {
		return nil, err
	}
	cmd := append([]any{path}, args...)
	if root := c.Value("root"); root != nil && option != "" {
		cmd = append(cmd, option, root)
	}
	code, err := saltcmd.Retcode(ctx, c, cmd...)
	return err == nil && code == 0, err
}

func deluser(ctx context.Context, c *modules.Call) (any, error) {
	g, err := lookup(ctx, c, c.Value("name"), nil)
	if err != nil {
		return nil, err
	}
	v, err := expel(ctx, c, g)
	if err != nil && !modules.IsExecError(err) {
		return true, nil // Salt takes every other failure for a user who is not in the group
	}
	return v, err
}

func expel(ctx context.Context, c *modules.Call, g map[string]any) (any, error) {
	name, user := c.Value("name"), c.Value("username")
	if list, _ := g["members"].([]any); !nested.Contains(list, user) {
		return true, nil
	}
	switch c.Grain("kernel") {
	case "Linux":
		if suse11(c) {
			return succeeds(ctx, c, "usermod", "--root", []any{"-R", name, user})
		}
		return succeeds(ctx, c, "gpasswd", "--root", []any{"--del", user, name})
	case "OpenBSD":
		r, err := saltcmd.All(ctx, c, "id", "-Gn", user)
		if err != nil {
			return nil, err
		}
		rest := slices.DeleteFunc(strings.Fields(r.Stdout), func(g string) bool { return g == pytext.Str(name) })
		return succeeds(ctx, c, "usermod", "", []any{"-S", strings.Join(rest, ","), user})
	}
	c.Logger().Error("group.deluser is not yet supported on this platform")
	return false, nil
}

func members(ctx context.Context, c *modules.Call) (any, error) {
	name, list := c.Value("name"), c.Value("members_list")
	switch c.Grain("kernel") {
	case "Linux":
		if !suse11(c) {
			return succeeds(ctx, c, "gpasswd", "--root", []any{"--members", list, name})
		}
		g, err := lookup(ctx, c, name, nil)
		if err != nil {
			return nil, err
		}
		old, _ := g["members"].([]any)
		for _, m := range old {
			if _, err := succeeds(ctx, c, "groupmod", "", []any{"-R", m, name}); err != nil {
				return nil, err
			}
		}
		return succeeds(ctx, c, "groupmod", "--root", []any{"-A", list, name})
	case "OpenBSD":
		return remake(ctx, c, name, pytext.Str(list))
	}
	c.Logger().Error("group.members is not yet supported on this platform")
	return false, nil
}

// remake deletes the group and creates it with other members. On OpenBSD there is no other way to change them.
func remake(ctx context.Context, c *modules.Call, name any, list string) (any, error) {
	g, err := lookup(ctx, c, name, nil)
	if err != nil || len(g) == 0 {
		return false, err
	}
	if _, err := succeeds(ctx, c, "groupdel", "", []any{name}); err != nil {
		return nil, err
	}
	if _, err := succeeds(ctx, c, "groupadd", "", []any{"-g", g["gid"], name}); err != nil {
		return nil, err
	}
	for _, user := range strings.Split(list, ",") {
		if user == "" {
			continue
		}
		if ok, err := succeeds(ctx, c, "usermod", "", []any{"-G", name, user}); err != nil || ok != true {
			return false, err
		}
	}
	return true, nil
}
