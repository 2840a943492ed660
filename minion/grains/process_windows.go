package grains

import (
	"context"
	"os"
	"os/user"
)

// process returns username, groupname and pid of the minion.
func process(_ context.Context, _ *host) (map[string]any, error) {
	g := map[string]any{"username": "", "groupname": "", "pid": int64(os.Getpid())}
	u, err := user.Current()
	if err == nil {
		g["username"] = u.Username
	}
	return g, err
}
