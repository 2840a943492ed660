// Package iptables is Salt's execution module "iptables". Salt's source: salt/modules/iptables.py.
package iptables

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// iptables.build_rule differs: options without a place of their own come in alphabetical order, in stock in that of the call.

func available(e *modules.Env) (bool, string) {
	return e.Which("iptables") != "", "The iptables execution module cannot be loaded: iptables not installed."
}

// program returns the path of iptables or ip6tables, depending on the call's address family. suffix is that of a
// related program, such as "-save".
func program(c *modules.Call, suffix string) string {
	name := "iptables" + suffix
	if c.Value("family") == "ipv6" {
		name = "ip6tables" + suffix
	}
	if path := c.Which(name); path != "" {
		return path
	}
	return name
}

// wait returns the option that makes iptables wait for its lock, if this iptables supports it.
func wait(ctx context.Context, c *modules.Call) ([]string, error) {
	has, err := hasOption(ctx, c, "--wait")
	if err != nil || !has {
		return nil, err
	}
	return []string{"--wait"}, nil
}

func hasOption(ctx context.Context, c *modules.Call, option string) (bool, error) {
	r, err := saltcmd.All(ctx, c, program(c, ""), "--help")
	return strings.Contains(r.Stdout, option), err
}

// run calls iptables, with --wait where it can, and returns what it wrote to standard error.
func run(ctx context.Context, c *modules.Call, args ...string) (string, error) {
	flags, err := wait(ctx, c)
	if err != nil {
		return "", err
	}
	return complaint(ctx, c, append(flags, args...))
}

func complaint(ctx context.Context, c *modules.Call, args []string) (string, error) {
	r, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: append([]string{program(c, "")}, args...)})
	return r.Stderr, err
}

// words splits a rule as a shell would.
func words(rule any) ([]string, error) {
	list, err := shlex.Split(pytext.Str(rule))
	if err != nil {
		return nil, &modules.PythonError{Type: "ValueError", Msg: err.Error()}
	}
	return list, nil
}

// missing returns Salt's text for the first of the named arguments that was not given, or "" if all were.
func missing(c *modules.Call, names ...string) string {
	for _, n := range names {
		if !c.Bool(n) {
			return "Error: " + strings.ToUpper(n[:1]) + n[1:] + " needs to be specified"
		}
	}
	return ""
}

func version(ctx context.Context, c *modules.Call) (any, error) {
	r, err := saltcmd.All(ctx, c, program(c, ""), "--version")
	if err != nil {
		return nil, err
	}
	f := strings.Fields(r.Stdout)
	if len(f) < 2 {
		return nil, modules.IndexError()
	}
	return f[1], nil
}

func setPolicy(ctx context.Context, c *modules.Call) (any, error) {
	if text := missing(c, "chain", "policy"); text != "" {
		return text, nil
	}
	return run(ctx, c, "-t", c.Str("table"), "-P", c.Str("chain"), c.Str("policy"))
}

func newChain(ctx context.Context, c *modules.Call) (any, error)    { return chain(ctx, c, "-N") }
func deleteChain(ctx context.Context, c *modules.Call) (any, error) { return chain(ctx, c, "-X") }

func chain(ctx context.Context, c *modules.Call, option string) (any, error) {
	if text := missing(c, "chain"); text != "" {
		return text, nil
	}
	out, err := run(ctx, c, "-t", c.Str("table"), option, c.Str("chain"))
	if err != nil {
		return nil, err
	}
	if out != "" {
		return out, nil
	}
	return true, nil
}

func flush(ctx context.Context, c *modules.Call) (any, error) {
	args := []string{"-t", c.Str("table"), "-F"}
	if name := pytext.Str(c.Value("chain")); name != "" {
		args = append(args, name)
	}
	return run(ctx, c, args...)
}

func check(ctx context.Context, c *modules.Call) (any, error) {
	if text := missing(c, "chain", "rule"); text != "" {
		return text, nil
	}
	return has(ctx, c)
}

// has reports whether the chain has the rule.
func has(ctx context.Context, c *modules.Call) (bool, error) {
	rule, err := words(c.Value("rule"))
	if err != nil {
		return false, err
	}
	can, err := hasOption(ctx, c, "--check")
	if err != nil {
		return false, err
	}
	if !can {
		return hasByTrial(ctx, c, rule)
	}
	args := append([]string{program(c, ""), "-t", c.Str("table"), "-C", c.Str("chain")}, rule...)
	r, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: args})
	return r.Retcode == 0, err
}

// trial is the name of the chain into which an old iptables writes a rule to show its spelling.
const trial = "salt_check"

// hasByTrial adds the rule to a separate chain and searches for iptables's spelling of it. It is for versions of
// iptables without --check.
func hasByTrial(ctx context.Context, c *modules.Call, rule []string) (bool, error) {
	table := []string{"-t", c.Str("table")}
	for _, step := range [][]string{{"-N", trial}, append([]string{"-A", trial}, rule...)} {
		if _, err := complaint(ctx, c, append(table[:2:2], step...)); err != nil {
			return false, err
		}
	}
	r, err := saltcmd.All(ctx, c, program(c, "-save"))
	if err != nil {
		return false, err
	}
	for _, step := range [][]string{{"-F", trial}, {"-X", trial}} {
		if _, err := complaint(ctx, c, append(table[:2:2], step...)); err != nil {
			return false, err
		}
	}
	lines := r.Lines()
	for _, line := range lines {
		if !strings.HasPrefix(line, "-A "+trial) {
			continue
		}
		want := strings.ReplaceAll(line, trial, c.Str("chain"))
		for _, other := range lines {
			if other == want {
				return true, nil
			}
		}
	}
	return false, nil
}

func checkChain(ctx context.Context, c *modules.Call) (any, error) {
	if text := missing(c, "chain"); text != "" {
		return text, nil
	}
	r, err := saltcmd.All(ctx, c, program(c, "-save"), "-t", c.Value("table"))
	return strings.Contains(r.Stdout, ":"+c.Str("chain")+" "), err
}

func appendRule(ctx context.Context, c *modules.Call) (any, error) {
	if text := missing(c, "chain", "rule"); text != "" {
		return text, nil
	}
	there, err := has(ctx, c)
	if err != nil || there {
		return false, err
	}
	rule, err := words(c.Value("rule"))
	if err != nil {
		return nil, err
	}
	out, err := run(ctx, c, append([]string{"-t", c.Str("table"), "-A", c.Str("chain")}, rule...)...)
	return err == nil && out == "", err
}

func insert(ctx context.Context, c *modules.Call) (any, error) {
	if text := missing(c, "chain"); text != "" {
		return text, nil
	}
	if !c.Bool("position") {
		return "Error: Position needs to be specified or use append (-A)", nil
	}
	if text := missing(c, "rule"); text != "" {
		return text, nil
	}
	position, ok := c.Value("position").(int64)
	if !ok {
		return nil, &modules.TypeError{Msg: "'<' not supported between instances of '" + modules.TypeName(c.Value("position")) + "' and 'int'"}
	}
	if position < 0 {
		n, err := size(ctx, c)
		if err != nil {
			return nil, err
		}
		if position += n + 1; position == 0 {
			position = 1
		}
	}
	there, err := has(ctx, c)
	if err != nil || there {
		return false, err
	}
	rule, err := words(c.Value("rule"))
	if err != nil {
		return nil, err
	}
	return run(ctx, c, append([]string{"-t", c.Str("table"), "-I", c.Str("chain"), pytext.Str(position)}, rule...)...)
}

// size returns the number of rules of the chain.
func size(ctx context.Context, c *modules.Call) (int64, error) {
	tables, err := inForce(ctx, c)
	if err != nil {
		return 0, err
	}
	for _, key := range [...]string{c.Str("table"), c.Str("chain"), "rules"} {
		v, ok := tables[key]
		if !ok {
			return 0, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(key)}
		}
		if rules, ok := v.([]any); ok {
			return int64(len(rules)), nil
		}
		tables, _ = v.(map[string]any)
	}
	return 0, nil
}

func deleteRule(ctx context.Context, c *modules.Call) (any, error) {
	rule := c.Value("rule")
	if c.Bool("position") {
		if c.Bool("rule") {
			return "Error: Only specify a position or a rule, not both", nil
		}
		rule = c.Value("position")
	}
	list, err := words(rule)
	if err != nil {
		return nil, err
	}
	return run(ctx, c, append([]string{"-t", c.Str("table"), "-D", pytext.Str(c.Value("chain"))}, list...)...)
}

// rulesFile returns the file from which the system restores rules at boot.
func rulesFile(c *modules.Call, v6 bool) (string, error) {
	four, six := "", ""
	switch name, _ := c.Grain("os").(string); {
	case c.Grain("os_family") == "RedHat":
		four, six = "/etc/sysconfig/iptables", "/etc/sysconfig/ip6tables"
	case c.Grain("os_family") == "Arch" || c.Grain("os_family") == "Void":
		four, six = "/etc/iptables/iptables.rules", "/etc/iptables/ip6tables.rules"
	case c.Grain("os_family") == "Debian":
		four, six = "/etc/iptables/rules.v4", "/etc/iptables/rules.v6"
	case name == "Gentoo":
		four, six = "/var/lib/iptables/rules-save", "/var/lib/ip6tables/rules-save"
	case c.Grain("os_family") == "Suse":
		four, six = "/etc/sysconfig/scripts/SuSEfirewall2-custom", "/etc/sysconfig/scripts/SuSEfirewall2-custom"
	case name == "Alpine":
		four, six = "/etc/iptables/rules-save", "/etc/iptables/rules6-save"
	case c.Grain("os_family") == "NILinuxRT":
		four, six = "/etc/natinst/share/iptables.conf", "/etc/natinst/share/ip6tables.conf"
	default:
		return "", &modules.PythonError{Type: "SaltException",
			Msg: "Saving iptables to file is not supported on " + name + ". Please file an issue with SaltStack"}
	}
	if v6 {
		return six, nil
	}
	return four, nil
}

func save(ctx context.Context, c *modules.Call) (any, error) {
	file, err := rulesFile(c, c.Value("family") == "ipv6")
	if err != nil {
		return nil, err
	}
	if c.Bool("filename") {
		file = c.Str("filename")
	}
	if dir := c.Path(filepath.Dir(file)); !filepath.IsAbs(file) {
		return nil, modules.Usagef("File path '%s' must be absolute.", file)
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, modules.OSError(err)
	}
	r, err := saltcmd.All(ctx, c, program(c, "-save"))
	if err != nil {
		return nil, err
	}
	text, err := filtered(ctx, c, r.Stdout)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Replace(c.Path(file), []byte(text+"\n"), 0o644); err != nil {
		return nil, modules.OSError(err)
	}
	return `Wrote 1 lines to "` + file + `"`, nil
}

// filtered leaves out the lines that the configuration does not want saved.
func filtered(ctx context.Context, c *modules.Call, text string) (string, error) {
	v, err := c.Exec(ctx, "config.option", "iptables.save_filters", []any{})
	list, _ := v.([]any)
	if err != nil || len(list) == 0 {
		return text, err
	}
	var filters []*pyre.Regexp
	for _, p := range list {
		re, err := pyre.Compile(pytext.Str(p), 0)
		if err != nil {
			c.Logger().Warn("An expression of iptables.save_filters is wrong", "expression", pytext.Str(p), "err", err)
			continue
		}
		filters = append(filters, re)
	}
	var b strings.Builder
	for _, line := range pytext.SplitLines(text, true) {
		drop := false
		for _, re := range filters {
			found, err := re.Search(line)
			if err != nil {
				return "", modules.Errorf("cannot apply iptables.save_filters: %s", err)
			}
			drop = drop || found != nil
		}
		if !drop {
			b.WriteString(line)
		}
	}
	return b.String(), nil
}
