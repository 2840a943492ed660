// Package locate is Salt's execution module "locate". Salt's source: salt/modules/locate.py.
package locate

import (
	"context"
	"runtime"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// locate.locate differs: a pattern with spaces is one pattern.

func available(*modules.Env) (bool, string) {
	return runtime.GOOS != "windows", "The locate execution module cannot be loaded: only available on non-Windows systems."
}

func output(ctx context.Context, c *modules.Call, words ...any) ([]any, error) {
	text, err := saltcmd.Text(ctx, c, words...)
	out := []any{}
	for _, line := range pytext.SplitLines(text, false) {
		out = append(out, line)
	}
	return out, err
}

func version(ctx context.Context, c *modules.Call) (any, error) {
	return output(ctx, c, "locate", "-V")
}

func updatedb(ctx context.Context, c *modules.Call) (any, error) { return output(ctx, c, "updatedb") }

func stats(ctx context.Context, c *modules.Call) (any, error) {
	lines, err := output(ctx, c, "locate", "-S")
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, x := range lines {
		line := x.(string)
		f := strings.Fields(line)
		switch {
		case len(f) == 0 || strings.HasPrefix(line, "Database") && len(f) < 2:
			return nil, modules.IndexError()
		case strings.HasPrefix(line, "Database"):
			out["database"] = strings.ReplaceAll(f[1], ":", "")
		default:
			out[strings.Join(f[1:], " ")] = f[0]
		}
	}
	return out, nil
}

func locate(ctx context.Context, c *modules.Call) (any, error) {
	cmd, flags := []any{"locate"}, ""
	for _, o := range [...]struct{ name, flag string }{
		{"basename", "b"}, {"count", "c"}, {"existing", "e"}, {"follow", "L"}, {"ignore", "i"}, {"nofollow", "P"}, {"wholename", "w"},
	} {
		if pytext.Truth(c.Keywords[o.name]) {
			flags += o.flag
		}
	}
	if flags != "" {
		cmd = append(cmd, "-"+flags)
	}
	if c.Bool("database") {
		cmd = append(cmd, "-d", c.Value("database"))
	}
	limit, ok := c.Value("limit").(int64)
	if !ok {
		return nil, &modules.TypeError{Msg: "'>' not supported between instances of '" + modules.TypeName(c.Value("limit")) + "' and 'int'"}
	}
	if limit > 0 {
		cmd = append(cmd, "-l", limit)
	}
	if pytext.Truth(c.Keywords["regex"]) {
		cmd = append(cmd, "--regex")
	}
	return output(ctx, c, append(cmd, c.Value("pattern"))...)
}
