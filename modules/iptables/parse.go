package iptables

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules"
)

func getRules(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(inForce(ctx, c))
}

// inForce returns the rules that are active in the kernel.
func inForce(ctx context.Context, c *modules.Call) (map[string]any, error) {
	r, err := saltcmd.All(ctx, c, program(c, "-save"))
	if err != nil {
		return nil, err
	}
	return parse(r.Stdout)
}

func getSavedRules(_ context.Context, c *modules.Call) (any, error) {
	return modules.Answer(saved(c))
}

// saved returns the rules in the system's file.
func saved(c *modules.Call) (map[string]any, error) {
	file, err := rulesFile(c, c.Value("family") == "ipv6")
	if err != nil {
		return nil, err
	}
	if c.Bool("conf_file") {
		file = c.Str("conf_file")
	}
	text, err := os.ReadFile(c.Path(file))
	if err != nil {
		return nil, modules.OSError(err)
	}
	return parse(string(text))
}

func getSavedPolicy(_ context.Context, c *modules.Call) (any, error) {
	if text := missing(c, "chain"); text != "" {
		return text, nil
	}
	m, err := saved(c)
	return policy(c, m), err
}

func getPolicy(ctx context.Context, c *modules.Call) (any, error) {
	if text := missing(c, "chain"); text != "" {
		return text, nil
	}
	m, err := inForce(ctx, c)
	return policy(c, m), err
}

func policy(c *modules.Call, tables map[string]any) any {
	table, _ := tables[c.Str("table")].(map[string]any)
	chain, _ := table[c.Str("chain")].(map[string]any)
	return chain["policy"]
}

// parse reads the output of iptables-save.
func parse(text string) (map[string]any, error) {
	out, table := map[string]any{}, map[string]any(nil)
	for _, line := range pytext.SplitLines(text, false) {
		switch {
		case strings.HasPrefix(line, "*"):
			table = map[string]any{}
			out[strings.ReplaceAll(line, "*", "")] = table
		case strings.HasPrefix(line, ":"):
			f := strings.Fields(line)
			if table == nil || len(f) < 3 {
				return nil, modules.IndexError()
			}
			packets, bytes, _ := strings.Cut(strings.Trim(f[2], "[]"), ":")
			table[strings.ReplaceAll(f[0], ":", "")] = map[string]any{
				"policy": f[1], "packet count": packets, "byte count": bytes, "rules": []any{}, "rules_comment": map[string]any{},
			}
		case strings.HasPrefix(line, "-A"):
			if err := addRule(table, line); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func addRule(table map[string]any, line string) error {
	args, err := shlex.Split(line)
	if err != nil {
		return &modules.PythonError{Type: "ValueError", Msg: err.Error()}
	}
	rule := map[string]any{}
	args = pairs(args)
	for i := 0; i+1 < len(args); i++ {
		name := dest(args[i])
		if name == "" {
			continue
		}
		list, _ := rule[name].([]any)
		rule[name] = append(list, args[i+1])
		i++
	}
	name, _ := rule["append"].([]any)
	delete(rule, "append")
	if len(name) == 0 {
		return &modules.PythonError{Type: "KeyError", Msg: "None"}
	}
	chain, ok := table[pytext.Str(name[0])].(map[string]any)
	if !ok {
		return &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(name[0])}
	}
	if comment, ok := rule["comment"].([]any); ok {
		chain["rules_comment"].(map[string]any)[strings.Trim(pytext.Str(comment[0]), `"`)] = rule
	}
	chain["rules"] = append(chain["rules"].([]any), rule)
	return nil
}

// pairs gives each option exactly one value: nothing becomes "", several words become one, and a ! before the option goes
// before the value.
func pairs(args []string) []string {
	option := func(i int) bool { return strings.HasPrefix(args[i], "-") }
	for i := 0; i+1 < len(args); i++ {
		swap := args[i] == "!" && option(i+1)
		if swap {
			args[i], args[i+1] = args[i+1], args[i]
		}
		if !option(i) {
			continue
		}
		if i++; option(i) || args[i] == "!" && !swap {
			args = slices.Insert(args, i, "")
			continue
		}
		for i+1 < len(args) && args[i+1] != "!" && !option(i+1) {
			args[i] += " " + args[i+1]
			args = slices.Delete(args, i+1, i+2)
		}
	}
	if n := len(args); n > 0 && option(n-1) {
		args = append(args, "")
	}
	return args
}
