// Package disk is Salt's execution module "disk". Salt's source: salt/modules/disk.py.
package disk

import (
	"context"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Compatibility.
//
// disk.tune, disk.dump, disk.wipe, disk.resize2fs, disk.fstype, disk.hdparms, disk.hpa, disk.smart_attributes differ: a device is one argument, whatever is in its name.
// disk.iostat differs: it knows the output of Linux and FreeBSD.

func available(*modules.Env) (bool, string) {
	return runtime.GOOS != "windows", "This module doesn't work on Windows."
}

// flagsOf checks flags for df, a text or a list of letters.
func flagsOf(args any, caller string) (string, error) {
	var list []string
	switch v := args.(type) {
	case nil:
	case string:
		list = strings.Split(v, "")
	case []any:
		for _, x := range v {
			list = append(list, pytext.Str(x))
		}
	default:
		return "", &modules.TypeError{Msg: "'" + modules.TypeName(args) + "' object is not iterable"}
	}
	for _, f := range list {
		if len(f) != 1 || !strings.Contains("aBhHiklPtTxv", f) {
			return "", modules.Errorf("Invalid flag passed to %s", caller)
		}
	}
	return strings.Join(list, ""), nil
}

// df runs df and splits its lines; the name of a device that has spaces is one word again.
func df(ctx context.Context, c *modules.Call, flags ...string) ([][]string, error) {
	words := []any{"df"}
	for _, f := range flags {
		if f != "" {
			words = append(words, "-"+f)
		}
	}
	out, err := saltcmd.Text(ctx, c, words...)
	if err != nil {
		return nil, err
	}
	var lines [][]string
	rest := ""
	for _, line := range pytext.SplitLines(out, false) {
		if line == "" || strings.HasPrefix(line, "Filesystem") {
			continue
		}
		f := strings.Fields(rest + " " + line)
		if rest = ""; len(f) == 1 {
			rest = f[0]
			continue
		}
		lines = append(lines, f)
	}
	return lines, nil
}

// joinName puts the words before the first number together.
func joinName(f []string) []string {
	for len(f) >= 2 && !digits(f[1]) {
		f = append([]string{f[0] + " " + f[1]}, f[2:]...)
	}
	return f
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func blocks(c *modules.Call) string {
	switch c.Grain("kernel") {
	case "Linux":
		return "P"
	case "OpenBSD", "AIX":
		return "kP"
	}
	return ""
}

func usage(ctx context.Context, c *modules.Call) (any, error) {
	flags, err := flagsOf(c.Value("args"), "disk.usage")
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(c.Path("/etc/mtab")); c.Grain("kernel") == "Linux" && (err != nil || !info.Mode().IsRegular()) {
		c.Logger().Error("df cannot run without /etc/mtab")
		return map[string]any{}, nil
	}
	lines, err := df(ctx, c, blocks(c), flags)
	if err != nil {
		return nil, err
	}
	out := &pyobj.Dict{}
	for _, f := range lines {
		if f = joinName(f); len(f) < 2 {
			continue
		}
		switch {
		case c.Grain("kernel") == "Darwin" && len(f) > 8:
			_ = out.Set(f[8], pyobj.NewDict("filesystem", f[0], "512-blocks", f[1], "used", f[2], "available", f[3], "capacity", f[4],
				"iused", f[5], "ifree", f[6], "%iused", f[7]))
		case c.Grain("kernel") != "Darwin" && len(f) > 5:
			_ = out.Set(f[5], pyobj.NewDict("filesystem", f[0], "1K-blocks", f[1], "used", f[2], "available", f[3], "capacity", f[4]))
		default:
			c.Logger().Error("Problem parsing disk usage information")
			out = &pyobj.Dict{}
		}
	}
	return out, nil
}

func inodeusage(ctx context.Context, c *modules.Call) (any, error) {
	flags, err := flagsOf(c.Value("args"), "disk.inodeusage")
	if err != nil {
		return nil, err
	}
	lines, err := df(ctx, c, "iP", flags)
	if err != nil {
		return nil, err
	}
	out := &pyobj.Dict{}
	for _, f := range lines {
		if len(f) < 6 {
			c.Logger().Error("Problem parsing inode usage information")
			out = &pyobj.Dict{}
			continue
		}
		_ = out.Set(f[5], pyobj.NewDict("inodes", f[1], "used", f[2], "free", f[3], "use", f[4], "filesystem", f[0]))
	}
	return out, nil
}

func percent(ctx context.Context, c *modules.Call) (any, error) {
	lines, err := df(ctx, c, blocks(c))
	if err != nil {
		return nil, err
	}
	at := 5
	if c.Grain("kernel") == "Darwin" {
		at = 8
	}
	out := map[string]any{}
	for _, f := range lines {
		if f = joinName(f); len(f) < 2 {
			continue
		}
		if len(f) <= at {
			c.Logger().Error("Problem parsing disk usage information")
			out = map[string]any{}
			continue
		}
		out[f[at]] = f[4]
	}
	if !c.Bool("args") {
		return out, nil
	}
	if v, ok := out[c.Str("args")]; ok {
		return v, nil
	}
	c.Logger().Error("Problem parsing disk usage information: there is no such partition", "partition", c.Str("args"))
	return map[string]any{}, nil
}

func blkid(ctx context.Context, c *modules.Call) (any, error) {
	if err := saltcmd.Needs(c, "blkid"); err != nil {
		return nil, err
	}
	cmd := []any{"blkid"}
	if c.Bool("device") {
		cmd = append(cmd, c.Value("device"))
	} else if c.Bool("token") {
		cmd = append(cmd, "-t", c.Value("token"))
	}
	r, err := saltcmd.All(ctx, c, cmd...)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if r.Retcode > 0 {
		return out, nil
	}
	for _, line := range r.Lines() {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		_, rest, _ := strings.Cut(line, " ")
		info := map[string]any{}
		parts := strings.Split(rest, `"`)
		for i := 0; i+1 < len(parts); i += 2 {
			info[strings.Trim(strings.Trim(parts[i], "="), " ")] = parts[i+1]
		}
		out[strings.TrimSuffix(words[0], ":")] = info
	}
	return out, nil
}

// queries returns the queries of blockdev that disk.dump makes.
func queries() []string {
	return []string{"getro", "getsz", "getss", "getpbsz", "getiomin", "getioopt", "getalignoff", "getmaxsect", "getsize", "getsize64", "getra", "getfra"}
}

func dump(ctx context.Context, c *modules.Call) (any, error) {
	var wanted []string
	if c.Bool("args") {
		wanted = c.Strings("args")
	}
	return query(ctx, c, c.Value("device"), wanted)
}

func query(ctx context.Context, c *modules.Call, device any, wanted []string) (any, error) {
	cmd := []any{"blockdev"}
	for _, q := range queries() {
		cmd = append(cmd, "--"+q)
	}
	r, err := saltcmd.All(ctx, c, append(cmd, device)...)
	if err != nil || r.Retcode != 0 {
		return false, err
	}
	all := map[string]any{}
	for i, line := range strings.Fields(r.Stdout) {
		if i == len(queries()) {
			return nil, modules.IndexError()
		}
		all[queries()[i]] = line
	}
	if wanted == nil {
		return all, nil
	}
	out := map[string]any{}
	for _, w := range wanted {
		v, ok := all[w]
		if !ok {
			return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(w)}
		}
		out[w] = v
	}
	return out, nil
}

func tune(ctx context.Context, c *modules.Call) (any, error) {
	cmd, wanted, invalid := []any{"blockdev"}, []string(nil), []string(nil)
	for _, key := range slices.Sorted(maps.Keys(c.Keywords)) {
		value := c.Keywords[key]
		sw := ""
		switch key {
		case "read-ahead":
			sw = "setra"
		case "filesystem-read-ahead":
			sw = "setfra"
		case "read-only", "read-write":
			if sw = map[bool]string{true: "setro", false: "setrw"}[key == "read-only"]; value != true && value != "True" {
				sw = ""
			}
		}
		switch {
		case sw == "" && strings.HasPrefix(key, "__"):
		case sw == "":
			invalid = append(invalid, key+"="+pytext.Str(value))
		case sw == "setro" || sw == "setrw":
			cmd, wanted = append(cmd, "--"+sw), append(wanted, "getro")
		default:
			cmd, wanted = append(cmd, "--"+sw, value), append(wanted, strings.Replace(sw, "set", "get", 1))
		}
	}
	if invalid != nil {
		return nil, modules.Usagef("Invalid keyword arguments: %s", strings.Join(invalid, ", "))
	}
	r, err := saltcmd.All(ctx, c, append(cmd, c.Value("device"))...)
	if err != nil {
		return nil, err
	}
	if r.Retcode != 0 {
		return nil, modules.Errorf("%s", r.Stderr)
	}
	return query(ctx, c, c.Value("device"), wanted)
}

func wipe(ctx context.Context, c *modules.Call) (any, error) {
	r, err := saltcmd.All(ctx, c, "wipefs", "-a", c.Value("device"))
	if err == nil && r.Retcode != 0 {
		c.Logger().Error("Cannot wipe the device", "device", c.Str("device"), "err", r.Stderr)
	}
	return err == nil && r.Retcode == 0, err
}

func resize2fs(ctx context.Context, c *modules.Call) (any, error) {
	r, err := saltcmd.All(ctx, c, "resize2fs", c.Value("device"))
	if err != nil || r.Retcode != 0 {
		return nil, err
	}
	return true, nil
}

func format(ctx context.Context, c *modules.Call) (any, error) {
	for _, program := range [...]string{"sync", "mkfs"} {
		if err := saltcmd.Needs(c, program); err != nil {
			return nil, err
		}
	}
	kind := c.Str("fs_type")
	ext, xfs := strings.HasPrefix(kind, "ext"), kind == "xfs"
	cmd := []any{"mkfs", "-t", c.Value("fs_type")}
	if v := c.Value("inode_size"); v != nil && ext {
		cmd = append(cmd, "-i", v)
	} else if v != nil && xfs {
		cmd = append(cmd, "-i", "size="+pytext.Str(v))
	}
	if v := c.Value("lazy_itable_init"); v != nil && ext {
		cmd = append(cmd, "-E", "lazy_itable_init="+pytext.Str(v))
	}
	if v, ok := c.Value("fat").(int64); ok && (v == 12 || v == 16 || v == 32) && strings.HasSuffix(kind, "fat") {
		cmd = append(cmd, "-F", v)
	}
	if c.Bool("force") && ext {
		cmd = append(cmd, "-F")
	} else if c.Bool("force") && xfs {
		cmd = append(cmd, "-f")
	}
	made, err := quietly(ctx, c, append(cmd, c.Value("device"))...)
	if err != nil {
		return nil, err
	}
	synced, err := quietly(ctx, c, "sync")
	return made && synced, err
}

// quietly runs a program and reports whether it succeeded. Its exit status does not affect the job's return code.
func quietly(ctx context.Context, c *modules.Call, words ...any) (bool, error) {
	r, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: saltcmd.Words(words...), Merge: true, IgnoreRetcode: true})
	return r.Retcode == 0, err
}

func fstype(ctx context.Context, c *modules.Call) (any, error) {
	return typeOf(ctx, c, c.Value("device"))
}

func typeOf(ctx context.Context, c *modules.Call, device any) (any, error) {
	lsblk, haveDF := c.Which("lsblk"), c.Which("df")
	if lsblk == "" && haveDF == "" {
		return nil, &modules.MissingCommandError{Command: `None of provided binaries(["'lsblk'", "'df'"]) were found in $PATH.`}
	}
	for _, try := range [...][]any{{"lsblk", "-o", "fstype", device}, {"df", "-T", device}} {
		if c.Which(try[0].(string)) == "" {
			continue
		}
		out, err := saltcmd.Text(ctx, c, try...)
		if err != nil {
			return nil, err
		}
		line := ""
		if lines := pytext.SplitLines(out, false); len(lines) > 1 {
			line = lines[1]
		}
		if try[0] == "lsblk" {
			line = pytext.Strip(line)
		}
		if line != "" {
			return line, nil
		}
	}
	return "", nil
}

func fstypeOfPath(ctx context.Context, c *modules.Call) (any, error) {
	dev, err := c.Exec(ctx, "mount.get_device_from_path", c.Value("path"))
	if err != nil {
		return nil, err
	}
	return typeOf(ctx, c, dev)
}
