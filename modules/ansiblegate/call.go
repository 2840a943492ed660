package ansiblegate

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytemp"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func callModule(ctx context.Context, c *modules.Call) (any, error) {
	return invoke(ctx, c, c.Str("module"))
}

// arguments returns the arguments for an Ansible module as text: positional values in JSON, then name=value pairs.
func arguments(c *modules.Call) (string, error) {
	var words []string
	add := func(name string, v any) error {
		text, err := pyjson.Format(v, pyjson.Options{Indent: -1})
		words = append(words, name+text)
		return err
	}
	for _, v := range c.Extra {
		if err := add("", v); err != nil {
			return "", err
		}
	}
	named := named(c)
	for _, k := range slices.Sorted(maps.Keys(named)) {
		if err := add(k+"=", named[k]); err != nil {
			return "", err
		}
	}
	return strings.Join(words, " "), nil
}

// named returns the named arguments for an Ansible module. As in Salt, if a job's arguments contain a map, the first
// one holds all of them.
func named(c *modules.Call) map[string]any {
	published, _ := c.Keywords["__pub_arg"].([]any)
	for _, v := range published {
		if m, ok := v.(map[string]any); ok {
			m = maps.Clone(m)
			delete(m, "__kwarg__")
			return m
		}
	}
	m := maps.Clone(c.Keywords)
	maps.DeleteFunc(m, func(k string, _ any) bool { return strings.HasPrefix(k, "__pub") })
	return m
}

// timeout returns how long a module may run, and the option in Python's spelling.
func timeout(c *modules.Call) (time.Duration, string) {
	v := c.Opt("ansible_timeout")
	switch n := v.(type) {
	case int64:
		return time.Duration(n) * time.Second, pytext.Str(v)
	case float64:
		return time.Duration(n * float64(time.Second)), pytext.Str(v)
	}
	return callTimeout * time.Second, pytext.Str(int64(callTimeout))
}

// invoke runs a module of Ansible on this host.
func invoke(ctx context.Context, c *modules.Call, module string) (any, error) {
	args, err := arguments(c)
	if err != nil {
		return nil, err
	}
	// Ansible wants an inventory. The implicit localhost is not in it.
	inventory, err := os.CreateTemp(pytemp.Dir(), "tmp")
	if err != nil {
		return nil, modules.OSError(err)
	}
	defer os.Remove(inventory.Name())
	defer inventory.Close()
	limit, shown := timeout(c)
	cmd := command(limit, c.Which("ansible"), "localhost", "--limit", "127.0.0.1", "-m", module, "-a", args, "-i", inventory.Name())
	c.Logger().Debug("Calling a module of ansible", "module", module)
	res, err := c.Cmd(ctx, cmd)
	if err != nil {
		return nil, err
	}
	if res.TimedOut {
		return nil, &modules.PythonError{Type: "subprocess.TimeoutExpired",
			Msg: "Command '" + pytext.Repr(nested.Anys(cmd.Args)) + "' timed out after " + shown + " seconds"}
	}
	return answer(cmd.Args, res)
}

// answer converts the output of an Ansible module to a map.
func answer(args []string, res modules.CommandResult) (any, error) {
	stdout, stderr := text(res.Stdout), text(res.Stderr)
	if res.ExitCode != 0 {
		out := map[string]any{"Exitcode": int64(res.ExitCode), "Error": stderr}
		if stderr == "" {
			out["Error"] = failure(args, res.ExitCode)
		}
		if stdout != "" {
			out["Given JSON output"] = stdout
		}
		return out, nil
	}
	lines := pytext.SplitLines(stdout, false)
	switch {
	case len(lines) == 0:
		return nil, modules.IndexError()
	case strings.HasSuffix(lines[0], "{"):
		lines[0] = "{"
		v, err := pyjson.Parse([]byte(strings.Join(lines, "\n")))
		out, ok := v.(map[string]any)
		if err != nil || !ok {
			if stderr == "" && err != nil {
				stderr = err.Error()
			}
			return map[string]any{"Error": stderr, "Output": stdout}, nil
		}
		delete(out, "invocation")
		delete(out, "changed")
		return out, nil
	case strings.HasSuffix(lines[0], ">>"):
		stdout = strings.Join(lines[1:], "\n")
	}
	return map[string]any{"output": stdout}, nil
}
