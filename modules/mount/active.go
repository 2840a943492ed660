package mount

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/nss"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func active(ctx context.Context, c *modules.Call) (any, error) {
	if c.Bool("extended") && c.Grain("kernel") == "Linux" {
		m, err := extended(ctx, c)
		if err == nil {
			return m, nil
		}
		if !modules.IsExecError(err) {
			return nil, err
		}
	}
	return modules.Answer(list(ctx, c))
}

// list returns the active mounts, for mount.active.
func list(ctx context.Context, c *modules.Call) (map[string]any, error) {
	switch {
	case c.Grain("os") == "FreeBSD":
		return table(ctx, c, []any{"mount", "-p"}, func(f []string, _ string) (string, map[string]any) {
			return f[1], map[string]any{"device": f[0], "fstype": f[2], "opts": resolve(ctx, c, strings.Split(f[3], ","))}
		})
	case isMac(c):
		return table(ctx, c, []any{"mount"}, func(f []string, line string) (string, map[string]any) {
			_, inside, _ := strings.Cut(line, "(")
			inside, _, _ = strings.Cut(inside, ")")
			parts := strings.Split(inside, ", ")
			return f[2], map[string]any{"device": f[0], "fstype": parts[0], "opts": resolve(ctx, c, parts[1:])}
		})
	}
	alt, err := altDevices(ctx, c)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(c.Path("/proc/self/mounts"))
	if err != nil {
		return nil, modules.Errorf("File not readable /proc/self/mounts")
	}
	out := map[string]any{}
	for _, line := range strings.Split(string(text), "\n") {
		if f := strings.Fields(line); len(f) >= 4 {
			out[f[1]] = map[string]any{
				"device": f[0], "alt_device": alt[f[1]], "fstype": f[2], "opts": resolve(ctx, c, strings.Split(f[3], ",")),
			}
		}
	}
	return out, nil
}

// table reads what a program lists, a line with at least four words for each mount.
func table(ctx context.Context, c *modules.Call, cmd []any, read func(f []string, line string) (string, map[string]any)) (map[string]any, error) {
	r, err := saltcmd.All(ctx, c, cmd...)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, line := range strings.Split(r.Stdout, "\n") {
		if f := strings.Fields(line); len(f) >= 4 {
			name, m := read(f, line)
			out[name] = m
		}
	}
	return out, nil
}

// altDevices returns the devices as the program mount prints them, by mount point.
func altDevices(ctx context.Context, c *modules.Call) (map[string]any, error) {
	r, err := saltcmd.All(ctx, c, "mount", "-l")
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, line := range strings.Split(r.Stdout, "\n") {
		if f := strings.Fields(line); len(f) >= 3 {
			out[f[2]] = f[0]
		}
	}
	return out, nil
}

func extended(ctx context.Context, c *modules.Call) (map[string]any, error) {
	alt, err := altDevices(ctx, c)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(c.Path("/proc/self/mountinfo"))
	if err != nil {
		return nil, modules.Errorf("File not readable /proc/self/mountinfo")
	}
	known, ok := c.Context().Get("disk.blkid")
	if !ok {
		if known, err = c.Exec(ctx, "disk.blkid"); err != nil {
			return nil, err
		}
		c.Context().Set("disk.blkid", known)
	}
	devices, _ := known.(map[string]any)
	out := map[string]any{}
	for _, line := range strings.Split(string(text), "\n") {
		f := strings.Fields(line)
		sep := slices.Index(f, "-")
		if sep < 6 || len(f) < sep+4 {
			continue
		}
		major, minor, _ := strings.Cut(f[2], ":")
		device, _ := devices[f[sep+2]].(map[string]any)
		uuid := device["UUID"]
		if s, ok := uuid.(string); ok {
			uuid = strings.ToLower(s)
		}
		out[f[4]] = map[string]any{
			"mountid": f[0], "parentid": f[1], "major": major, "minor": minor, "root": f[3],
			"opts": resolve(ctx, c, strings.Split(f[5], ",")), "fstype": f[sep+1], "device": strings.ReplaceAll(f[sep+2], `\040`, `\ `),
			"alt_device": alt[f[4]], "superopts": resolve(ctx, c, strings.Split(f[sep+3], ",")),
			"device_uuid": uuid, "device_label": device["LABEL"],
		}
	}
	return out, nil
}

// resolve replaces names of users and groups in options by their numbers.
func resolve(ctx context.Context, c *modules.Call, opts []string) []any {
	out := make([]any, len(opts))
	for i, o := range opts {
		key, value, ok := strings.Cut(o, "=")
		if ok && (key == "uid" || key == "gid") {
			value, _, _ = strings.Cut(value, "=")
			if strings.Trim(value, "0123456789") != "" || value == "" {
				if u, ok := nss.UserByName(ctx, c, value); key == "uid" && ok {
					value = pytext.Str(u.UID)
				} else if g, ok := nss.GroupByName(ctx, c, value); key == "gid" && ok {
					value = pytext.Str(g.GID)
				}
			}
			o = key + "=" + value
		}
		out[i] = strings.ReplaceAll(o, `\040`, `\ `)
	}
	return out
}

func mountOf(_ context.Context, c *modules.Call) (any, error) { return mountPoint(c, c.Str("path")) }

// mountPoint returns the mount point of the file system that contains a path.
func mountPoint(c *modules.Call, path string) (string, error) {
	if strings.IndexByte(path, 0) >= 0 {
		return "", &modules.PythonError{Type: "ValueError", Msg: "embedded null byte"}
	}
	path = real(c, path)
	for path != "/" && !isMountPoint(c.Path(path)) {
		path = filepath.Dir(path)
	}
	return path, nil
}

// real implements os.path.realpath. Links are followed as far as the path exists.
func real(c *modules.Call, path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "/"
	}
	for base, rest := abs, ""; ; base, rest = filepath.Dir(base), filepath.Join(filepath.Base(base), rest) {
		if p, err := filepath.EvalSymlinks(c.Path(base)); err == nil {
			if rel, err := filepath.Rel(c.Path("/"), p); err == nil {
				p = filepath.Join("/", rel)
			}
			return filepath.Join(p, rest)
		}
		if base == filepath.Dir(base) {
			return abs
		}
	}
}

func deviceOf(ctx context.Context, c *modules.Call) (any, error) {
	at, err := mountPoint(c, c.Str("path"))
	if err != nil {
		return nil, err
	}
	mounted, err := list(ctx, c)
	if err != nil {
		return nil, err
	}
	m, _ := mounted[at].(map[string]any)
	return m["device"], nil
}
