package nss

import (
	"context"
	"os"
	"strings"

	"github.com/brine-salt/brine/modules"
)

// ExpandUser implements Python's os.path.expanduser: ~ and ~name at the beginning of a path become a home directory.
// The path stays as it is if the user does not exist.
func ExpandUser(ctx context.Context, c *modules.Call, path string) string {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok {
		return path
	}
	name, _, _ := strings.Cut(rest, "/")
	home, known := "", false
	if name == "" {
		home, known = c.Context().Getenv("HOME")
	}
	if !known {
		var u User
		if name == "" {
			u, known = UserByID(ctx, c, int64(os.Getuid()))
		} else {
			u, known = UserByName(ctx, c, name)
		}
		if !known {
			return path
		}
		home = u.Home
	}
	if path = strings.TrimRight(home, "/") + rest[len(name):]; path == "" {
		return "/"
	}
	return path
}
