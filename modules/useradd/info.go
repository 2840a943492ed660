package useradd

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
	"github.com/brine-salt/brine/modules/pyobj"
)

func info(ctx context.Context, c *modules.Call) (any, error) {
	m, err := lookup(ctx, c, c.Value("name"), c.Value("root"))
	if err != nil {
		return nil, err
	}
	return pyobj.Keyed(m, "gid", "groups", "home", "name", "passwd", "shell", "uid", "fullname", "roomnumber", "workphone", "homephone", "other"), nil
}

// lookup implements user.info.
func lookup(ctx context.Context, c *modules.Call, name, root any) (map[string]any, error) {
	u, ok, err := find(ctx, c, name, root)
	if err != nil || !ok {
		return map[string]any{}, err
	}
	return describeUser(u, nss.GroupNames(ctx, c, u.Name)), nil
}

// find returns the user with a name: from the host, or from the passwd file below another root.
func find(ctx context.Context, c *modules.Call, name, root any) (nss.User, bool, error) {
	if root == nil || c.Grain("kernel") == "AIX" {
		u, ok := nss.UserByName(ctx, c, pytext.Str(name))
		return u, ok, nil
	}
	lines, err := passwd(c, root)
	if err != nil {
		return nss.User{}, false, err
	}
	for _, line := range lines {
		if f := strings.Split(pytext.Strip(line), ":"); f[0] == pytext.Str(name) {
			u, err := entry(f)
			return u, err == nil, err
		}
	}
	return nss.User{}, false, nil
}

// all returns the users of the host, or those of another root.
func all(ctx context.Context, c *modules.Call) ([]nss.User, error) {
	root, ok := elsewhere(c)
	if !ok {
		return nss.Users(ctx, c), nil
	}
	lines, err := passwd(c, root)
	if err != nil {
		return nil, err
	}
	var users []nss.User
	for _, line := range lines {
		u, err := entry(strings.Split(pytext.Strip(line), ":"))
		if err != nil {
			return nil, err
		}
		users = append(users, u)
	}
	return users, nil
}

// passwd returns the lines of a passwd file below root.
func passwd(c *modules.Call, root any) ([]string, error) {
	dir := "/"
	if pytext.Truth(root) {
		s, ok := root.(string)
		if !ok {
			return nil, &modules.TypeError{Msg: "expected str, bytes or os.PathLike object, not " + modules.TypeName(root)}
		}
		dir = s
	}
	text, err := os.ReadFile(c.Path(strings.TrimSuffix(dir, "/") + "/etc/passwd"))
	if err != nil {
		return nil, modules.OSError(err)
	}
	if len(text) == 0 {
		return nil, nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), nil
}

// entry reads the fields of a line; the errors are those of Python's list, int and pwd.struct_passwd.
func entry(f []string) (nss.User, error) {
	if len(f) < 4 {
		return nss.User{}, modules.IndexError()
	}
	uid, err := modules.ToInt(f[2])
	if err != nil {
		return nss.User{}, err
	}
	gid, err := modules.ToInt(f[3])
	if err != nil {
		return nss.User{}, err
	}
	if len(f) != 7 {
		return nss.User{}, &modules.TypeError{Msg: "pwd.struct_passwd() takes a 7-sequence (" + strconv.Itoa(len(f)) + "-sequence given)"}
	}
	return nss.User{Name: f[0], Passwd: f[1], UID: uid, GID: gid, Gecos: f[4], Home: f[5], Shell: f[6]}, nil
}

func describeUser(u nss.User, groups []string) map[string]any {
	g := gecos(u.Gecos)
	return map[string]any{
		"gid": u.GID, "groups": nested.Anys(groups), "home": u.Home, "name": u.Name, "passwd": u.Passwd, "shell": u.Shell, "uid": u.UID,
		"fullname": g[0], "roomnumber": g[1], "workphone": g[2], "homephone": g[3], "other": g[4],
	}
}

// gecos returns the five parts of the comment field.
func gecos(text string) (parts [5]string) {
	copy(parts[:], strings.SplitN(text, ",", 5))
	return parts
}

// part returns the index of a key among the parts of the comment field, or -1.
func part(key string) int {
	return slices.Index([]string{"fullname", "roomnumber", "workphone", "homephone", "other"}, key)
}

func chfullname(ctx context.Context, c *modules.Call) (any, error) {
	return comment(ctx, c, "fullname")
}
func chroomnumber(ctx context.Context, c *modules.Call) (any, error) {
	return comment(ctx, c, "roomnumber")
}
func chworkphone(ctx context.Context, c *modules.Call) (any, error) {
	return comment(ctx, c, "workphone")
}
func chhomephone(ctx context.Context, c *modules.Call) (any, error) {
	return comment(ctx, c, "homephone")
}
func chother(ctx context.Context, c *modules.Call) (any, error) { return comment(ctx, c, "other") }

// comment changes the part of the comment field that the argument is named after.
func comment(ctx context.Context, c *modules.Call, key string) (any, error) {
	return updateGecos(ctx, c, c.Value("name"), key, c.Value(key), c.Value("root"))
}

func updateGecos(ctx context.Context, c *modules.Call, name any, key string, value, root any) (any, error) {
	text := ""
	if value != nil {
		text = pytext.Str(value)
	}
	u, err := must(ctx, c, name, root)
	if err != nil {
		return nil, err
	}
	parts := gecos(u.Gecos)
	if parts[part(key)] == text {
		return true, nil
	}
	parts[part(key)] = text
	path, err := saltcmd.Which(c, "usermod")
	if err != nil {
		return nil, err
	}
	cmd := []any{path}
	if root != nil && c.Grain("kernel") != "AIX" {
		cmd = append(cmd, "-R", root)
	}
	comment := strings.TrimRight(strings.Join(parts[:], ","), ",")
	cmd = append(cmd, "--comment", comment, name)
	if _, err := saltcmd.Text(ctx, c, cmd...); err != nil {
		return nil, err
	}
	if u, err = must(ctx, c, name, root); err != nil {
		return nil, err
	}
	return gecos(u.Gecos)[part(key)] == text, nil
}

// must is like [find], but returns Python's error if the user does not exist.
func must(ctx context.Context, c *modules.Call, name, root any) (nss.User, error) {
	u, ok, err := find(ctx, c, name, root)
	if err != nil || ok {
		return u, err
	}
	if root != nil {
		return u, &modules.PythonError{Type: "KeyError"}
	}
	return u, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr("getpwnam(): name not found: " + pytext.Repr(pytext.Str(name)))}
}

func getent(ctx context.Context, c *modules.Call) (any, error) {
	if v, ok := c.Context().Get("user.getent"); ok && !c.Bool("refresh") {
		return v, nil
	}
	users, err := all(ctx, c)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(users))
	for i, u := range users {
		names[i] = u.Name
	}
	groups := nss.GroupNamesOf(ctx, c, names)
	out := []any{}
	for _, u := range users {
		out = append(out, describeUser(u, groups[u.Name]))
	}
	c.Context().Set("user.getent", out)
	return out, nil
}

func listGroups(ctx context.Context, c *modules.Call) (any, error) {
	return nested.Anys(nss.GroupNames(ctx, c, c.Str("name"))), nil
}

func listUsers(ctx context.Context, c *modules.Call) (any, error) {
	users, err := all(ctx, c)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(users))
	for i, u := range users {
		names[i] = u.Name
	}
	slices.Sort(names)
	return nested.Anys(names), nil
}

func primaryGroup(ctx context.Context, c *modules.Call) (any, error) {
	if err := saltcmd.Needs(c, "id"); err != nil {
		return nil, err
	}
	return saltcmd.Text(ctx, c, "id", "-g", "-n", c.Value("name"))
}
