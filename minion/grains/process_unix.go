//go:build unix

package grains

import (
	"context"
	"os"
	"strconv"
	"strings"
)

// process returns username, groupname, uid, gid and pid of the minion (salt/grains/minion_process.py).
// groupname is the user's group in the user database.
func process(ctx context.Context, h *host) (map[string]any, error) {
	uid, gid := os.Geteuid(), os.Getegid()
	name, group := "", ""
	if entry := h.account(ctx, "passwd", 2, strconv.Itoa(uid)); len(entry) > 3 {
		name = entry[0]
		if g := h.account(ctx, "group", 2, entry[3]); len(g) > 0 {
			group = g[0]
		}
	}
	return map[string]any{"username": name, "groupname": group, "pid": int64(os.Getpid()),
		"gid": int64(gid), "uid": int64(uid)}, nil
}

// account returns the line of /etc/passwd or /etc/group with a value in a field. Accounts from elsewhere (LDAP,
// systemd) are looked up with getent, because a program without the C library cannot see them.
func (h *host) account(ctx context.Context, database string, field int, value string) []string {
	text, _ := h.read("/etc/" + database)
	for _, line := range lines(text) {
		if f := strings.Split(line, ":"); len(f) > field && f[field] == value {
			return f
		}
	}
	out, _, _ := strings.Cut(h.output(ctx, "getent", database, value), "\n")
	if f := strings.Split(out, ":"); len(f) > field && f[field] == value {
		return f
	}
	return nil
}
