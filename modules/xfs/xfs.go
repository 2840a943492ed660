// Package xfs is Salt's execution module "xfs". Salt's source: salt/modules/xfs.py.
package xfs

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// xfs.mkfs, xfs.modify, xfs.dump differ: a label may hold quotes, and a name blanks; stock makes a line of the arguments and splits it.
// xfs.mkfs differs: a number as ssize gets the answer of mkfs.xfs; stock fails before.
// xfs.inventory differs: it also reads several file systems, streams and media files, with which stock fails, and never evaluates
// what a dump's label says as Python code.
// xfs.growfs is added: stock has no function that extends a file system.

func available(e *modules.Env) (bool, string) {
	return runtime.GOOS != "windows" && e.Grain("kernel") == "Linux", ""
}

// run runs a program. It is an error if the program fails and prints a reason.
func run(ctx context.Context, c *modules.Call, cmd ...any) (string, error) {
	r, err := saltcmd.All(ctx, c, cmd...)
	if err == nil && r.Retcode != 0 && r.Stderr != "" {
		err = modules.Errorf("%s", r.Stderr)
	}
	return r.Stdout, err
}

func info(ctx context.Context, c *modules.Call) (any, error) {
	r, err := saltcmd.All(ctx, c, "xfs_info", c.Value("device"))
	if err != nil {
		return nil, err
	}
	if r.Stderr != "" {
		return nil, modules.Errorf("%s", pytext.Strip(strings.ReplaceAll(r.Stderr, "xfs_info:", "")))
	}
	return geometry(r.Stdout)
}

// growfs runs xfs_growfs. It prints what xfs_info does, then "data blocks changed from 1 to 2".
func growfs(ctx context.Context, c *modules.Call) (any, error) {
	r, err := saltcmd.All(ctx, c, "xfs_growfs", c.Value("mount_point"))
	if err != nil {
		return nil, err
	}
	if r.Retcode != 0 {
		return nil, modules.Errorf("%s", pytext.Strip(strings.ReplaceAll(r.Stderr, "xfs_growfs:", "")))
	}
	return geometry(r.Stdout)
}

func mkfs(ctx context.Context, c *modules.Call) (any, error) {
	cmd := []any{"mkfs.xfs"}
	if c.Bool("label") {
		cmd = append(cmd, "-L", c.Value("label"))
	}
	if c.Bool("ssize") {
		cmd = append(cmd, "-s", c.Value("ssize"))
	}
	for _, o := range [...][2]string{{"-b", "bso"}, {"-m", "gmo"}, {"-n", "nmo"}, {"-i", "ino"}, {"-d", "dso"}, {"-l", "lso"}, {"-r", "rso"}} {
		v := c.Value(o[1])
		given, ok := options(v)
		if !ok {
			return nil, modules.Errorf(`Wrong parameters "%s" for option "%s"`, pytext.Str(v), o[0])
		}
		if given {
			cmd = append(cmd, o[0], v)
		}
	}
	if !c.Bool("noforce") {
		cmd = append(cmd, "-f")
	}
	out, err := run(ctx, c, append(cmd, c.Value("device"))...)
	if err != nil {
		return nil, err
	}
	return geometry(out)
}

// options reports whether v contains options, and whether each has a name and one value. A text without options
// contains none.
func options(v any) (given, ok bool) {
	s, isText := v.(string)
	if !isText {
		return false, !pytext.Truth(v)
	}
	if !strings.Contains(s, "=") {
		return false, true
	}
	for _, o := range strings.Split(s, ",") {
		if strings.Count(o, "=") != 1 {
			return false, false
		}
	}
	return true, true
}

func modify(ctx context.Context, c *modules.Call) (any, error) {
	lazy, uuid := c.Value("lazy_counting"), c.Value("uuid")
	if !c.Bool("label") && lazy == nil && uuid == nil {
		return nil, modules.Errorf(`Nothing specified for modification for "%s" device`, c.Str("device"))
	}
	cmd := []any{"xfs_admin"}
	if c.Bool("label") {
		cmd = append(cmd, "-L", c.Value("label"))
	}
	cmd = append(cmd, choose(lazy, "-c", "1", "0")...)
	cmd = append(cmd, choose(uuid, "-U", "generate", "nil")...)
	if _, err := run(ctx, c, append(cmd, c.Value("device"))...); err != nil {
		return nil, err
	}
	out, err := run(ctx, c, "blkid", "-o", "export", c.Value("device"))
	if err != nil {
		return nil, err
	}
	return readDevices(c, out)
}

// choose returns an option with the value yes for a true v, or no for False. It returns nothing for any other false
// value.
func choose(v any, option, yes, no string) []any {
	switch {
	case pytext.Truth(v):
		return []any{option, yes}
	case v == false:
		return []any{option, no}
	}
	return nil
}

func devices(ctx context.Context, c *modules.Call) (any, error) {
	out, err := run(ctx, c, "blkid", "-o", "export")
	if err != nil {
		return nil, err
	}
	return readDevices(c, out)
}

// readDevices reads what blkid prints: NAME=value lines for each device, with an empty line between.
func readDevices(c *modules.Call, out string) (any, error) {
	all := map[string]any{}
	for _, block := range strings.Split(out, "\n\n") {
		m := map[string]any{}
		for _, line := range strings.Split(pytext.Strip(block), "\n") {
			if pytext.Strip(line) == "" {
				continue
			}
			k, v, ok := strings.Cut(line, "=")
			if !ok {
				return nil, unpackError(2, 1)
			}
			m[strings.ToLower(k)] = v
		}
		if m["type"] != "xfs" {
			continue
		}
		name, ok := m["devname"].(string)
		if !ok {
			return nil, &modules.PythonError{Type: "KeyError", Msg: "'devname'"}
		}
		delete(m, "type")
		delete(m, "devname")
		if _, ok := m["label"]; !ok {
			m["label"] = nil
		}
		all[name] = m
	}
	mounted, err := mounts(c)
	if err != nil {
		return nil, err
	}
	for name, m := range mounted {
		if device, ok := all[name].(map[string]any); ok {
			device["mount_point"], device["options"] = m.at, m.options
		}
	}
	return all, nil
}

type mount struct {
	at      string
	options []any
}

// mounts returns the mounted XFS file systems by device.
func mounts(c *modules.Call) (map[string]mount, error) {
	b, err := os.ReadFile(c.Path("/proc/mounts"))
	if err != nil {
		return nil, modules.OSError(err)
	}
	out := map[string]mount{}
	for _, line := range pytext.SplitLines(string(b), false) {
		f := strings.Split(pytext.Strip(line), " ")
		if len(f) != 6 {
			return nil, unpackError(6, len(f))
		}
		if f[2] != "xfs" {
			continue
		}
		m := mount{at: f[1]}
		for _, o := range strings.Split(f[3], ",") {
			m.options = append(m.options, o)
		}
		out[f[0]] = m
	}
	return out, nil
}

func defragment(ctx context.Context, c *modules.Call) (any, error) {
	device := c.Str("device")
	if device == "/" {
		return nil, modules.Errorf("Root is not a device.")
	}
	mounted, err := mounts(c)
	if err != nil {
		return nil, err
	}
	if _, ok := mounted[device]; !ok {
		return nil, modules.Errorf(`Device "%s" is not mounted`, device)
	}
	out, err := run(ctx, c, "xfs_fsr", device)
	if err != nil {
		return nil, err
	}
	return map[string]any{"log": out}, nil
}

func estimate(ctx context.Context, c *modules.Call) (any, error) {
	path := c.Str("path")
	if _, err := os.Stat(c.Path(path)); err != nil || path == "" {
		return nil, modules.Errorf(`Path "%s" was not found.`, path)
	}
	text, err := run(ctx, c, "xfs_estimate", "-v", path)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	heading := true
	for _, line := range strings.Split(text, "\n") {
		if pytext.Strip(line) == "" {
			continue
		}
		if heading {
			heading = false
			continue
		}
		f := strings.Split(oneBlank(line), " ")
		if len(f) != 5 {
			return nil, unpackError(5, len(f))
		}
		out[f[0]] = map[string]any{"block _size": f[1], "blocks": f[2], "megabytes": f[3], "logsize": f[4]}
	}
	return out, nil
}

// unpackError returns Python's error for unpacking got values into want names.
func unpackError(want, got int) error {
	if got > want {
		return &modules.PythonError{Type: "ValueError", Msg: fmt.Sprintf("too many values to unpack (expected %d)", want)}
	}
	return &modules.PythonError{Type: "ValueError", Msg: fmt.Sprintf("not enough values to unpack (expected %d, got %d)", want, got)}
}
