// Package hadoop is Salt's execution module "hadoop". Salt's source: salt/modules/hadoop.py.
package hadoop

import (
	"context"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func available(e *modules.Env) (bool, string) {
	if e.Which("hadoop") == "" && e.Which("hdfs") == "" {
		return false, "The hadoop execution module cannot be loaded: hadoop or hdfs binary not in path."
	}
	return true, ""
}

// run returns the output of hdfs, or of hadoop if that is missing: both streams, whatever the exit status.
func run(ctx context.Context, c *modules.Call, group string, command any, args ...any) (any, error) {
	tool := "hadoop"
	if c.Which("hdfs") != "" {
		tool = "hdfs"
	}
	words := make([]string, len(args))
	for i, x := range args {
		word, ok := x.(string)
		if !ok {
			return nil, &modules.TypeError{Msg: "sequence item " + strconv.Itoa(i) + ": expected str instance, " + modules.TypeName(x) + " found"}
		}
		words[i] = word
	}
	// The text is split at blanks and quotes; no shell interprets it.
	text := tool + " " + group + " -" + pytext.Str(command) + " " + strings.Join(words, " ")
	return c.ExecKw(ctx, "cmd.run", []any{text}, map[string]any{"python_shell": false})
}

func version(ctx context.Context, c *modules.Call) (any, error) {
	out, err := run(ctx, c, "version", true)
	if err != nil {
		return nil, err
	}
	f := strings.Fields(pytext.Str(out))
	if len(f) < 2 {
		return nil, modules.IndexError()
	}
	return f[1], nil
}

func dfs(ctx context.Context, c *modules.Call) (any, error) {
	if !c.Bool("command") {
		return "Error: command must be provided", nil
	}
	return run(ctx, c, "dfs", c.Value("command"), c.Extra...)
}

func dfsadminReport(ctx context.Context, c *modules.Call) (any, error) {
	switch arg := c.Value("arg"); arg {
	case nil:
		return run(ctx, c, "dfsadmin", "report")
	case "live", "dead", "decommissioning":
		return run(ctx, c, "dfsadmin", "report", arg)
	}
	return "Error: the arg is wrong, it must be in ['live', 'dead', 'decommissioning']", nil
}

func dfsPresent(ctx context.Context, c *modules.Call) (any, error) {
	absent, err := dfsAbsent(ctx, c)
	if err != nil {
		return nil, err
	}
	return absent == false, nil
}

func dfsAbsent(ctx context.Context, c *modules.Call) (any, error) {
	out, err := run(ctx, c, "dfs", "stat", c.Value("path"))
	if err != nil {
		return nil, err
	}
	return strings.Contains(pytext.Str(out), "No such file or directory"), nil
}

func namenodeFormat(ctx context.Context, c *modules.Call) (any, error) {
	force := ""
	if c.Bool("force") {
		force = "-force"
	}
	return run(ctx, c, "namenode", "format", "-nonInteractive", force)
}
