// Package nss looks up users and groups as the C library's name service does. It reads the files below /etc first. If
// /etc/nsswitch.conf names more sources, it also runs the program getent, which supports LDAP and others: a static
// program has no other access to them.
package nss

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/modules"
)

// User is a line of the user database.
type User struct {
	Name, Passwd       string
	UID, GID           int64
	Gecos, Home, Shell string
}

// Group is a line of the group database.
type Group struct {
	Name, Passwd string
	GID          int64
	Members      []string
}

// Users returns all users, in the order of the sources.
func Users(ctx context.Context, c *modules.Call) []User {
	return parse(lines(ctx, c, "passwd", ""), user)
}

// Groups returns all groups, in the order of the sources.
func Groups(ctx context.Context, c *modules.Call) []Group {
	return parse(lines(ctx, c, "group", ""), group)
}

// UserByName returns the user with a name; ok is false if there is no such user.
func UserByName(ctx context.Context, c *modules.Call, name string) (User, bool) {
	return one(ctx, c, "passwd", name, user, func(u User) bool { return u.Name == name })
}

// UserByID returns the first user with an id; ok is false if there is no such user.
func UserByID(ctx context.Context, c *modules.Call, uid int64) (User, bool) {
	return one(ctx, c, "passwd", strconv.FormatInt(uid, 10), user, func(u User) bool { return u.UID == uid })
}

// GroupByName returns the group with a name; ok is false if there is no such group.
func GroupByName(ctx context.Context, c *modules.Call, name string) (Group, bool) {
	return one(ctx, c, "group", name, group, func(g Group) bool { return g.Name == name })
}

// GroupByID returns the first group with an id; ok is false if there is no such group.
func GroupByID(ctx context.Context, c *modules.Call, gid int64) (Group, bool) {
	return one(ctx, c, "group", strconv.FormatInt(gid, 10), group, func(g Group) bool { return g.GID == gid })
}

// GroupNames returns the sorted names of the groups that a user is in, including the user's primary group
// (salt/utils/user.py get_group_list).
func GroupNames(ctx context.Context, c *modules.Call, name string) []string {
	u, known := UserByName(ctx, c, name)
	return groupNames(Groups(ctx, c), name, u.GID, known)
}

// GroupNamesOf is like [GroupNames] for several users, but reads the databases only once.
func GroupNamesOf(ctx context.Context, c *modules.Call, names []string) map[string][]string {
	users, groups := Users(ctx, c), Groups(ctx, c)
	out := make(map[string][]string, len(names))
	for _, name := range names {
		i := slices.IndexFunc(users, func(u User) bool { return u.Name == name })
		gid := int64(-1)
		if i >= 0 {
			gid = users[i].GID
		}
		out[name] = groupNames(groups, name, gid, i >= 0)
	}
	return out
}

func groupNames(groups []Group, name string, gid int64, known bool) []string {
	ids := map[int64]bool{}
	if known {
		ids[gid] = true
	}
	for _, g := range groups {
		if slices.Contains(g.Members, name) {
			ids[g.GID] = true
		}
	}
	var names []string
	for _, g := range groups {
		if ids[g.GID] {
			names = append(names, g.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func one[T any](ctx context.Context, c *modules.Call, database, key string, read func([]string) (T, bool), is func(T) bool) (T, bool) {
	var none T
	if strings.ContainsAny(key, ":\n\x00") || key == "" {
		return none, false
	}
	// Most look-ups match one of the first lines, and state runs make thousands of them: later lines are not split.
	for line := range strings.SplitSeq(text(c, database), "\n") {
		if !strings.Contains(line, key) {
			continue
		}
		if entry, ok := parseLine(line, read); ok && is(entry) {
			return entry, true
		}
	}
	if !elsewhere(c, database) {
		return none, false
	}
	for _, entry := range parse(ask(ctx, c, database, key), read) {
		if is(entry) {
			return entry, true
		}
	}
	return none, false
}

func lines(ctx context.Context, c *modules.Call, database, key string) []string {
	if elsewhere(c, database) {
		if list := ask(ctx, c, database, key); list != nil {
			return list
		}
	}
	return local(c, database)
}

func local(c *modules.Call, database string) []string {
	if text := text(c, database); text != "" {
		return strings.Split(text, "\n")
	}
	return nil
}

// kept is the cached text of a database's file. The job reads the file again only when the file has changed.
type kept struct {
	path, text string
	info       os.FileInfo
}

const (
	// keepSize is the size limit of a cached text.
	keepSize = 1 << 20
	// keepAge is the minimum age of a file that is cached: two changes closer together may have the same modification
	// time.
	keepAge = time.Second
)

// text returns the content of a database's file. An unreadable file counts as empty, so that the other sources are
// used.
func text(c *modules.Call, database string) string {
	path, key := c.Path("/etc/"+database), "nss."+database
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if v, _ := c.Context().Get(key); v != nil {
		k, ok := v.(*kept)
		if ok && k.path == path && os.SameFile(k.info, info) && k.info.Size() == info.Size() && k.info.ModTime().Equal(info.ModTime()) {
			return k.text
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	k := &kept{path: path, text: string(b), info: info}
	if len(b) <= keepSize && int64(len(b)) == info.Size() && time.Since(info.ModTime()) > keepAge {
		c.Context().Set(key, k)
	}
	return k.text
}

func ask(ctx context.Context, c *modules.Call, database, key string) []string {
	args := []string{"getent", database}
	if key != "" {
		args = append(args, "--", key)
	}
	r, err := c.Cmd(ctx, modules.Command{Args: args})
	if err != nil || r.ExitCode != 0 {
		return nil
	}
	return strings.Split(string(r.Stdout), "\n")
}

// elsewhere reports whether a database has sources besides its file.
func elsewhere(c *modules.Call, database string) bool {
	if c.Which("getent") == "" {
		return false
	}
	text, err := os.ReadFile(c.Path("/etc/nsswitch.conf"))
	if err != nil {
		return false
	}
	for _, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		name, sources, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) != database {
			continue
		}
		for _, s := range strings.Fields(sources) {
			if s != "files" && s != "compat" && !strings.ContainsAny(s[:1], "[!") && !strings.HasSuffix(s, "]") {
				return true
			}
		}
	}
	return false
}

func parse[T any](lines []string, read func([]string) (T, bool)) []T {
	out := make([]T, 0, len(lines))
	for _, line := range lines {
		if entry, ok := parseLine(line, read); ok {
			out = append(out, entry)
		}
	}
	return out
}

func parseLine[T any](line string, read func([]string) (T, bool)) (T, bool) {
	if line == "" || strings.ContainsAny(line[:1], "#+-") {
		var none T
		return none, false
	}
	return read(strings.Split(strings.TrimSuffix(line, "\r"), ":"))
}

func user(f []string) (User, bool) {
	if len(f) < 7 {
		return User{}, false
	}
	uid, err1 := strconv.ParseInt(f[2], 10, 64)
	gid, err2 := strconv.ParseInt(f[3], 10, 64)
	return User{Name: f[0], Passwd: f[1], UID: uid, GID: gid, Gecos: f[4], Home: f[5], Shell: f[6]}, err1 == nil && err2 == nil
}

func group(f []string) (Group, bool) {
	if len(f) < 4 {
		return Group{}, false
	}
	gid, err := strconv.ParseInt(f[2], 10, 64)
	g := Group{Name: f[0], Passwd: f[1], GID: gid}
	if f[3] != "" {
		g.Members = strings.Split(f[3], ",")
	}
	return g, err == nil
}
