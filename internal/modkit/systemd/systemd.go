// Package systemd reports whether systemd booted the host, its version, and what it can do, for execution modules.
// Answers of systemctl are cached for the rest of the job. Salt's source: salt/utils/systemd.py.
package systemd

import (
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Booted reports whether systemd booted the host.
func Booted(e *modules.Env) bool {
	_, err := os.Stat(e.Path("/run/systemd/system"))
	return err == nil
}

// Offline reports whether systemctl is installed but systemd does not run.
func Offline(e *modules.Env) bool { return !Booted(e) && e.Which("systemctl") != "" }

// Version returns systemd's version, or 0 if it cannot be determined.
func Version(ctx context.Context, c *modules.Call) int {
	return kept(c, "version", func() int {
		got, err := c.Cmd(ctx, modules.Command{Args: []string{"systemctl", "--version"}, Merge: true})
		if err != nil {
			return 0
		}
		words := strings.Fields(string(got.Stdout))
		for i := 1; i < len(words); i++ {
			if n, err := strconv.Atoi(strings.TrimRight(words[i], ".")); err == nil {
				return n
			}
		}
		c.Logger().Error("Cannot find out the version of systemd")
		return 0
	})
}

// HasScope reports whether programs can run in their own systemd scope, so that a restart of the minion does not end
// them.
func HasScope(ctx context.Context, c *modules.Call) bool {
	return Booted(c.Env) && kept(c, "scope", func() int {
		if Version(ctx, c) < 205 {
			return 0
		}
		got, err := c.Cmd(ctx, modules.Command{Args: []string{"systemctl", "status"}})
		if err != nil || strings.Contains(string(got.Stderr), "Failed to get D-Bus connection: No such file or directory") {
			return 0
		}
		return 1
	}) == 1
}

// Scope returns the words to put before a command so that it runs in its own systemd scope. It returns nil if scopes
// are not available or turned off.
func Scope(ctx context.Context, c *modules.Call) []string {
	if !HasScope(ctx, c) {
		return nil
	}
	if v, err := c.Exec(ctx, "config.get", "systemd.scope", true); err == nil && !pytext.Truth(v) {
		return nil
	}
	return []string{"systemd-run", "--scope"}
}

func kept(c *modules.Call, what string, find func() int) int {
	key := "systemd." + what
	if v, ok := c.Context().Get(key); ok {
		n, _ := v.(int)
		return n
	}
	n := find()
	c.Context().Set(key, n)
	return n
}

// ServiceOf returns the service that a process belongs to, or "" if it belongs to no service.
func ServiceOf(ctx context.Context, c *modules.Call, pid string) string {
	if n, err := strconv.Atoi(pid); err != nil || n <= 0 {
		return ""
	}
	got, err := c.Cmd(ctx, modules.Command{Args: []string{"systemctl", "--output", "json", "status", pid}})
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(got.Stdout)) {
		for _, word := range strings.Fields(line) {
			if name, ok := strings.CutSuffix(word, ".service"); ok {
				return name
			}
		}
		break
	}
	return ""
}
