// Package alternatives is Salt's execution module "alternatives": programs of which the host has several. Salt's source:
// salt/modules/alternatives.py.
package alternatives

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/modules"
)

const links = "/etc/alternatives"

func available(e *modules.Env) (bool, string) {
	if info, err := os.Stat(e.Path(links)); err == nil && info.IsDir() {
		return true, ""
	}
	return false, "Cannot load alternatives module: /etc/alternatives dir not found"
}

func run(ctx context.Context, c *modules.Call, ignore bool, args ...string) (saltcmd.Result, error) {
	program := "update-alternatives"
	if c.Grain("os_family") == "RedHat" {
		program = "alternatives"
	}
	return saltcmd.Run(ctx, c, saltcmd.Command{Args: append([]string{program}, args...), IgnoreRetcode: ignore})
}

// change answers with what the program said.
func change(ctx context.Context, c *modules.Call, args ...string) (any, error) {
	out, err := run(ctx, c, false, args...)
	if out.Retcode > 0 {
		return out.Stderr, err
	}
	return out.Stdout, err
}

func display(ctx context.Context, c *modules.Call) (any, error) {
	out, err := run(ctx, c, true, "--display", c.Str("name"))
	if out.Retcode > 0 && out.Stderr != "" {
		return out.Stderr, err
	}
	return out.Stdout, err
}

func showLink(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	switch c.Grain("os_family") {
	case "RedHat":
		return direct(c, filepath.Join("/var/lib/alternatives", name)), nil
	case "Suse":
		return direct(c, filepath.Join("/var/lib/rpm/alternatives", name)), nil
	}
	out, err := run(ctx, c, true, "--query", name)
	if err != nil || out.Retcode > 0 && out.Stderr != "" {
		return false, err
	}
	block, _, _ := strings.Cut(out.Stdout, "\n\n")
	for line := range strings.SplitSeq(block, "\n") {
		if link, ok := strings.CutPrefix(line, "Link:"); ok {
			return strings.TrimSpace(link), nil
		}
	}
	return false, nil
}

// direct reads the link from the second line of the program's own file.
func direct(c *modules.Call, path string) any {
	b, err := os.ReadFile(c.Path(path))
	lines := strings.Split(string(b), "\n")
	if err != nil || len(lines) < 2 || len(lines) == 2 && lines[1] == "" {
		c.Logger().Error("alternatives: unable to get master link", "path", path, "err", err)
		return false
	}
	return lines[1]
}

func current(c *modules.Call) (string, bool) {
	target, err := os.Readlink(c.Path(filepath.Join(links, c.Str("name"))))
	return target, err == nil
}

func showCurrent(_ context.Context, c *modules.Call) (any, error) {
	if target, ok := current(c); ok {
		return target, nil
	}
	c.Logger().Error("Alternative does not exist", "name", c.Str("name"))
	return false, nil
}

func checkExists(ctx context.Context, c *modules.Call) (any, error) {
	out, err := run(ctx, c, true, "--display", c.Str("name"))
	if err != nil || out.Retcode > 0 && out.Stderr != "" {
		return false, err
	}
	for _, line := range out.Lines() {
		if strings.HasPrefix(line, c.Str("path")) {
			return true, nil
		}
	}
	return false, nil
}

func checkInstalled(_ context.Context, c *modules.Call) (any, error) {
	target, ok := current(c)
	return ok && target == c.Str("path"), nil
}

func install(ctx context.Context, c *modules.Call) (any, error) {
	out, err := run(ctx, c, false, "--install", c.Str("link"), c.Str("name"), c.Str("path"), c.Str("priority"))
	if out.Retcode > 0 && out.Stderr != "" {
		return out.Stderr, err
	}
	return out.Stdout, err
}

func remove(ctx context.Context, c *modules.Call) (any, error) {
	return change(ctx, c, "--remove", c.Str("name"), c.Str("path"))
}

func auto(ctx context.Context, c *modules.Call) (any, error) {
	return change(ctx, c, "--auto", c.Str("name"))
}

func set(ctx context.Context, c *modules.Call) (any, error) {
	return change(ctx, c, "--set", c.Str("name"), c.Str("path"))
}
