// Package mount is Salt's execution module "mount": mounted file systems, swap, and fstab. Salt's sources:
// salt/modules/mount.py, salt/utils/mount.py.
package mount

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// mount.mount differs: options and paths with spaces stay one argument each; stock splits options at spaces.
// mount.set_fstab differs: a last line without line end gets one; stock appends the new entry to that line.
// mount.filesystems, set_filesystems and rm_filesystems are about AIX and do here what stock does elsewhere.

func available(*modules.Env) (bool, string) {
	return runtime.GOOS != "windows", "The mount module cannot be loaded: not a POSIX-like system."
}

// isMac reports whether the host is a Mac, whose mount takes other options.
func isMac(c *modules.Call) bool { return c.Grain("os") == "MacOS" || c.Grain("os") == "Darwin" }

// options converts mount options to a list.
func options(v any) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
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
	}
	return nil, &modules.TypeError{Msg: "argument of type '" + modules.TypeName(v) + "' is not iterable"}
}

func mount(ctx context.Context, c *modules.Call) (any, error) {
	switch util := c.Value("util"); util {
	case "mount":
	case "guestfs":
		return c.ExecKw(ctx, "guestfs.mount", []any{c.Value("name")}, map[string]any{"root": c.Value("device")})
	case "qemu_nbd":
		return viaNBD(ctx, c)
	default:
		return false, nil
	}
	return doMount(ctx, c, c.Value("opts"))
}

// viaNBD mounts an image, and stores the result of qemu_nbd for mount.umount.
func viaNBD(ctx context.Context, c *modules.Call) (any, error) {
	v, err := c.Exec(ctx, "qemu_nbd.init", c.Value("name"), c.Value("device"))
	m, _ := v.(map[string]any)
	if err != nil || len(m) == 0 {
		return false, err
	}
	var names []string
	for k := range m {
		names = append(names, k)
	}
	first := slices.Min(names)
	c.Context().Set("img.mnt_"+first, m)
	return first, nil
}

func doMount(ctx context.Context, c *modules.Call, given any) (any, error) {
	opts, err := options(given)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(opts, func(s string) bool { return strings.Contains(s, "defaults") }) && isMac(c) {
		opts = nil
	}
	name := c.Str("name")
	if _, err := os.Stat(c.Path(name)); err != nil && c.Bool("mkmnt") {
		if _, err := c.ExecKw(ctx, "file.mkdir", []any{name}, map[string]any{"user": c.Value("user")}); err != nil {
			return nil, err
		}
	}
	cmd := []string{"mount"}
	if c.Bool("device") {
		cmd = append(append(cmd, flags(c, opts)...), c.Str("device"))
	}
	return complain(ctx, c, append(cmd, name))
}

func flags(c *modules.Call, opts []string) []string {
	var out []string
	if opts != nil {
		out = append(out, "-o", strings.Join(opts, ","))
	}
	if c.Bool("fstype") {
		out = append(out, "-t", c.Str("fstype"))
	}
	return out
}

// complain runs a program as the user that the caller named: True, or what it wrote to standard error.
func complain(ctx context.Context, c *modules.Call, args []string) (any, error) {
	r, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: args, RunAs: c.Str("user")})
	if err != nil {
		return nil, err
	}
	if r.Retcode != 0 {
		return r.Stderr, nil
	}
	return true, nil
}

func remount(ctx context.Context, c *modules.Call) (any, error) {
	given, force := c.Value("opts"), false
	if isMac(c) {
		if given == "defaults" {
			given = "noowners"
		}
		force = c.Value("fstype") == "smbfs"
	}
	mounted, err := list(ctx, c)
	if err != nil {
		return nil, err
	}
	if _, ok := mounted[c.Str("name")]; !ok {
		return doMount(ctx, c, given)
	}
	opts, err := options(given)
	if err != nil {
		return nil, err
	}
	inPlace := !isMac(c) && c.Grain("os") != "OpenBSD"
	if inPlace && !slices.Contains(opts, "remount") {
		opts = append(opts, "remount")
	}
	if force {
		if _, err := complain(ctx, c, []string{"umount", c.Str("device")}); err != nil {
			return nil, err
		}
	}
	cmd := []string{"mount"}
	if !inPlace && !force {
		cmd = append(cmd, "-u")
	}
	return complain(ctx, c, append(append(cmd, flags(c, opts)...), c.Str("device"), c.Str("name")))
}

func umount(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	switch c.Value("util") {
	case "guestfs":
		_, err := c.ExecKw(ctx, "guestfs.umount", []any{c.Value("name")}, map[string]any{"disk": c.Value("device")})
		return nil, err
	case "qemu_nbd":
		if m, ok := c.Context().Get("img.mnt_" + name); ok {
			_, err := c.Exec(ctx, "qemu_nbd.clear", m)
			return nil, err
		}
	}
	mounted, err := list(ctx, c)
	if err != nil {
		return nil, err
	}
	if _, ok := mounted[name]; !ok {
		return name + " does not have anything mounted", nil
	}
	cmd := []string{"umount"}
	if c.Bool("lazy") {
		cmd = append(cmd, "-l")
	}
	if c.Bool("device") {
		name = c.Str("device")
	}
	return complain(ctx, c, append(cmd, name))
}

func isFuseExec(ctx context.Context, c *modules.Call) (any, error) {
	path := c.Which(c.Str("cmd"))
	if path == "" {
		return false, nil
	}
	if c.Which("ldd") == "" {
		return nil, &modules.MissingCommandError{Command: "ldd"}
	}
	out, err := saltcmd.Text(ctx, c, "ldd", path)
	return err == nil && strings.Contains(out, "libfuse"), err
}

func isMounted(ctx context.Context, c *modules.Call) (any, error) {
	mounted, err := list(ctx, c)
	if err != nil {
		return nil, err
	}
	_, ok := mounted[c.Str("name")]
	return ok, nil
}

func swaps(_ context.Context, c *modules.Call) (any, error) {
	return modules.Answer(readSwaps(c))
}

func readSwaps(c *modules.Call) (map[string]any, error) {
	text, err := os.ReadFile(c.Path("/proc/swaps"))
	if err != nil {
		return nil, modules.OSError(err)
	}
	out := map[string]any{}
	for _, line := range strings.Split(string(text), "\n") {
		f := strings.Fields(line)
		if strings.HasPrefix(line, "Filename") || len(f) < 5 {
			continue
		}
		out[f[0]] = map[string]any{"type": f[1], "size": f[2], "used": f[3], "priority": f[4]}
	}
	return out, nil
}

func swapon(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	now, err := readSwaps(c)
	if err != nil {
		return nil, err
	}
	if stats, ok := now[name]; ok {
		return map[string]any{"stats": stats, "new": false}, nil
	}
	cmd := []any{"swapon", name}
	if c.Bool("priority") {
		cmd = append(cmd, "-p", c.Value("priority"))
	}
	if _, err := saltcmd.Text(ctx, c, cmd...); err != nil {
		return nil, err
	}
	if now, err = readSwaps(c); err != nil {
		return nil, err
	}
	if stats, ok := now[name]; ok {
		return map[string]any{"stats": stats, "new": true}, nil
	}
	return map[string]any{}, nil
}

func swapoff(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	now, err := readSwaps(c)
	if err != nil || !nested.Contains(keys(now), name) {
		return nil, err
	}
	if _, err := saltcmd.Text(ctx, c, "swapoff", name); err != nil {
		return nil, err
	}
	now, err = readSwaps(c)
	return err == nil && !nested.Contains(keys(now), name), err
}

func keys(m map[string]any) []any {
	var out []any
	for k := range m {
		out = append(out, k)
	}
	return out
}

func filesystems(context.Context, *modules.Call) (any, error) { return map[string]any{}, nil }

func setFilesystems(context.Context, *modules.Call) (any, error) { return nil, nil }

func rmFilesystems(context.Context, *modules.Call) (any, error) { return false, nil }
