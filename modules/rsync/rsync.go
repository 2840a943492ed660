// Package rsync is Salt's execution module "rsync". Salt's source: salt/modules/rsync.py.
package rsync

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytemp"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func available(e *modules.Env) (bool, string) {
	return e.Which("rsync") != "", "The rsync execution module cannot be loaded: the rsync binary is not in the path."
}

func version(ctx context.Context, c *modules.Call) (any, error) {
	r, err := saltcmd.All(ctx, c, "rsync", "--version")
	if err != nil {
		return nil, err
	}
	line, _, _ := strings.Cut(r.Stdout, "\n")
	if f := strings.Fields(line); len(f) > 2 {
		return f[2], nil
	}
	return nil, modules.Errorf("Unable to determine rsync version")
}

func config(_ context.Context, c *modules.Call) (any, error) {
	path := c.Str("conf_path")
	text, err := os.ReadFile(c.Path(path))
	var errno syscall.Errno
	switch {
	case err == nil:
		return string(text), nil
	case errors.Is(err, os.ErrNotExist):
		return nil, modules.Errorf("%s does not exist", path)
	case errors.Is(err, os.ErrPermission):
		return nil, modules.Errorf("Unable to read %s, access denied", path)
	case errors.Is(err, syscall.EISDIR):
		return nil, modules.Errorf("Unable to read %s, path is a directory", path)
	case errors.As(err, &errno):
		return nil, modules.Errorf("Error %d: %s", int(errno), errno)
	}
	return nil, err
}

// argument returns an argument, or if that is empty the option rsync.NAME.
func argument(ctx context.Context, c *modules.Call, name string) (any, error) {
	if c.Bool(name) {
		return c.Value(name), nil
	}
	return c.Exec(ctx, "config.option", "rsync."+name)
}

func rsync(ctx context.Context, c *modules.Call) (any, error) {
	a := map[string]any{}
	for _, name := range [...]string{"src", "dst", "delete", "force", "update", "passwordfile", "exclude", "excludefrom", "dryrun", "rsh"} {
		v, err := argument(ctx, c, name)
		if err != nil {
			return nil, err
		}
		a[name] = v
	}
	if !pytext.Truth(a["src"]) || !pytext.Truth(a["dst"]) {
		return nil, modules.Usagef("src and dst cannot be empty")
	}
	src, ok := a["src"].(string)
	if !ok {
		return nil, modules.NoAttribute(a["src"], "startswith")
	}
	if strings.HasPrefix(src, "salt://") {
		copied, remove, err := fetch(ctx, c, src)
		defer remove()
		if err != nil {
			return nil, err
		}
		src = copied
	}
	cmd := append([]any{"rsync"}, options(a)...)
	if list, ok := c.Value("additional_opts").([]any); ok {
		cmd = append(cmd, list...)
	}
	r, err := saltcmd.All(ctx, c, append(cmd, src, a["dst"])...)
	if err != nil {
		return nil, err
	}
	return r.Map(), nil
}

func options(a map[string]any) []any {
	out := []any{"-avz"}
	for _, o := range [...]string{"delete", "force", "update"} {
		if pytext.Truth(a[o]) {
			out = append(out, "--"+o)
		}
	}
	if v := a["rsh"]; pytext.Truth(v) {
		out = append(out, "--rsh="+pytext.Str(v))
	}
	if v := a["passwordfile"]; pytext.Truth(v) {
		out = append(out, "--password-file", v)
	}
	if v := a["excludefrom"]; pytext.Truth(v) {
		out = append(out, "--exclude-from", v)
	} else if v := a["exclude"]; pytext.Truth(v) {
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, x := range list {
			out = append(out, "--exclude", x)
		}
	}
	if pytext.Truth(a["dryrun"]) {
		out = append(out, "--dry-run")
	}
	return out
}

// fetch copies a file or a directory of the master into a temporary place. The function returned removes it.
func fetch(ctx context.Context, c *modules.Call, url string) (path string, remove func(), err error) {
	remove = func() {}
	v, err := c.ExecKw(ctx, "cp.list_master_dirs", nil, map[string]any{"saltenv": c.Value("saltenv")})
	if err != nil {
		return "", remove, err
	}
	dir, err := os.MkdirTemp(pytemp.Dir(), "rsync")
	if err != nil {
		return "", remove, modules.OSError(err)
	}
	remove = func() { os.RemoveAll(dir) }
	dirs, _ := v.([]any)
	fun, path := "cp.get_file", filepath.Join(dir, "file")
	if slices.Contains(dirs, any(strings.ReplaceAll(url, "salt://", ""))) {
		fun, path = "cp.get_dir", dir+"/"
	}
	got, err := c.Exec(ctx, fun, url, path, c.Value("saltenv"))
	if err == nil && !pytext.Truth(got) {
		err = modules.Errorf("%s does not exist", url)
	}
	return path, remove, err
}
