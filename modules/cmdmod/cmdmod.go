// Package cmdmod is Salt's execution module "cmd": running programs. Salt's source: salt/modules/cmdmod.py.
//
// It prepares a command (options.go), lets the program's runner run it (run.go), and converts the outcome to Salt's
// result. It never builds a shell command unless the caller asked for a shell.
package cmdmod

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// cmd.* differ: use_vt runs the command without a pseudo terminal; its output is returned but not shown while it runs.
// cmd.* differ: a command reads nothing, rather than the minion's own standard input, if no stdin is given.
// cmd.* differ: a daemon that keeps the output open delays the return by less than a second, rather than for its life.
// cmd.* differ: timeout and kill_job stop all that the command started, not only its first process.
// cmd.* differ: output beyond 16 MiB (option cmd_output_limit) is dropped with a warning; cmd.run_all marks it "truncated".
// cmd.* differ: output_encoding knows utf-8, ascii and latin-1.
// cmd.* differ: group works without sudo.
// cmd.* differ: on Windows runas is an error.
// cmd.tty differs: only names of terminals are taken, no paths below /dev, and no file is created.

func run(ctx context.Context, c *modules.Call) (any, error) {
	o, err := readOptions(c)
	if err != nil {
		return nil, err
	}
	return runText(ctx, o)
}

// runText implements cmd.run, once the options are read.
func runText(ctx context.Context, o *options) (any, error) {
	o.merge = o.truth("redirect_stderr", true)
	res, err := o.run(ctx)
	if err != nil {
		return nil, err
	}
	text := res.stdout
	if o.truth("hide_output", false) {
		text = ""
	}
	if o.level.on && !o.truth("ignore_retcode", false) && res.retcode != int64(0) && o.truth("raise_err", false) {
		return nil, modules.Errorf("%s", text)
	}
	return text, nil
}

func shell(ctx context.Context, c *modules.Call) (any, error) {
	o, err := readOptions(c)
	if err != nil {
		return nil, err
	}
	if v := o.value("python_shell"); v == nil {
		o.pythonShell = true
	}
	return runText(ctx, o)
}

func runStdout(ctx context.Context, c *modules.Call) (any, error) { return one(ctx, c, "stdout") }

func runStderr(ctx context.Context, c *modules.Call) (any, error) { return one(ctx, c, "stderr") }

func one(ctx context.Context, c *modules.Call, stream string) (any, error) {
	o, err := readOptions(c)
	if err != nil {
		return nil, err
	}
	res, err := o.run(ctx)
	if err != nil {
		return nil, err
	}
	if o.truth("hide_output", false) {
		return "", nil
	}
	if stream == "stderr" {
		return res.stderr, nil
	}
	return res.stdout, nil
}

func runAll(ctx context.Context, c *modules.Call) (any, error) {
	o, err := readOptions(c)
	if err != nil {
		return nil, err
	}
	return o.all(ctx)
}

// all implements cmd.run_all, once the options are read.
func (o *options) all(ctx context.Context) (any, error) {
	o.merge = o.truth("redirect_stderr", false)
	res, err := o.run(ctx)
	if err != nil {
		return nil, err
	}
	if o.truth("hide_output", false) {
		res.stdout, res.stderr = "", ""
	}
	return res.value(), nil
}

func retcode(ctx context.Context, c *modules.Call) (any, error) {
	o, err := readOptions(c)
	if err != nil {
		return nil, err
	}
	o.merge = true
	res, err := o.run(ctx)
	if err != nil {
		return nil, err
	}
	return res.retcode, nil
}

func runBg(ctx context.Context, c *modules.Call) (any, error) {
	o, err := readOptions(c)
	if err != nil {
		return nil, err
	}
	o.bg = true
	res, err := o.run(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]any{"pid": res.pid}, nil
}

// runChroot mounts what a system needs, runs the command and unmounts everything, also when something failed.
func runChroot(ctx context.Context, c *modules.Call) (v any, err error) {
	o, err := readOptions(c)
	if err != nil {
		return nil, err
	}
	root := c.Str("root")
	below := func(path string) string { return strings.TrimSuffix(root, "/") + "/" + strings.TrimPrefix(path, "/") }
	var mounted []string
	defer func() {
		if len(mounted) > 0 {
			killChroot(c, root)
		}
		after := context.WithoutCancel(ctx) // mounts must go also when the job was killed
		for _, p := range slices.Backward(mounted) {
			if _, err := c.Exec(after, "mount.umount", p); err != nil {
				c.Logger().Error("Cannot unmount", "path", p, "err", err)
			}
		}
	}()
	mount := func(point, what, option, value string) error {
		_, err := c.ExecKw(ctx, "mount.mount", []any{point, what}, map[string]any{option: value})
		if err == nil {
			mounted = append(mounted, point)
		}
		return err
	}
	for _, m := range [][3]string{{"dev", "devtmpfs", "devtmpfs"}, {"proc", "proc", "proc"}, {"sys", "sysfs", "sysfs"}} {
		if err := mount(below(m[0]), m[1], "fstype", m[2]); err != nil {
			return nil, err
		}
	}
	for _, b := range c.Strings("binds") {
		if err := mount(below(b), b, "opts", "default,bind"); err != nil {
			return nil, err
		}
	}
	return o.inChroot(ctx, root)
}

func which(_ context.Context, c *modules.Call) (any, error) {
	return orNone(c.Which(c.Str("cmd"))), nil
}

func orNone(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func whichBin(_ context.Context, c *modules.Call) (any, error) {
	var names []string
	switch v := c.Value("cmds").(type) {
	case string:
		names = []string{v}
	case []any:
		for _, x := range v {
			names = append(names, pytext.Str(x))
		}
	}
	for _, n := range names {
		if path := c.Which(n); path != "" {
			return path, nil
		}
	}
	return nil, nil
}

func hasExec(_ context.Context, c *modules.Call) (any, error) {
	return c.Which(c.Str("cmd")) != "", nil
}

// umaskOf reads a file mode mask as cmd.run takes it.
func umaskOf(v any) (*int, error) {
	if v == nil {
		return nil, nil
	}
	text := strings.TrimLeft(pytext.Str(v), "0")
	if text == "" {
		return nil, modules.Errorf("Zero umask is not allowed.")
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 8, 64)
	if err != nil {
		return nil, modules.Errorf("Invalid umask: '%s'", pytext.Str(v))
	}
	mask := int(n) & 0o777
	return &mask, nil
}

// result is the result of Salt's _run.
type result struct {
	stdout, stderr string
	retcode, pid   any
	truncated      bool
}

func (r *result) value() map[string]any {
	v := map[string]any{"pid": r.pid, "retcode": r.retcode, "stdout": r.stdout, "stderr": r.stderr}
	if r.truncated {
		v["truncated"] = true
	}
	return v
}

func index(what string) error {
	return &modules.PythonError{Type: "IndexError", Msg: what + " index out of range"}
}

func keyError(key string) error {
	return &modules.PythonError{Type: "KeyError", Msg: fmt.Sprintf("'%s'", key)}
}
