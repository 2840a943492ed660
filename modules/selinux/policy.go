package selinux

import (
	"context"
	"regexp"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules"
)

// typeName returns the name of the type of files that a letter stands for.
func typeName(letter any) (string, error) {
	switch letter {
	case "a":
		return "all files", nil
	case "f":
		return "regular file", nil
	case "d":
		return "directory", nil
	case "c":
		return "character device", nil
	case "b":
		return "block device", nil
	case "s":
		return "socket", nil
	case "l":
		return "symbolic link", nil
	case "p":
		return "named pipe", nil
	}
	return "", modules.Usagef("Invalid filetype given: %s", pytext.Str(letter))
}

func filetypeName(_ context.Context, c *modules.Call) (any, error) {
	return modules.Answer(typeName(c.Value("filetype")))
}

// escaped returns a path in the form in which Salt passes it to semanage and restorecon: escaped by re.escape, then
// split like a command line.
func escaped(name string) (any, error) {
	words, err := shlex.Split(pyre.Escape(name))
	if err != nil || len(words) != 1 {
		return nil, modules.Usagef("%s is no path", pytext.Repr(name))
	}
	return words[0], nil
}

// listed returns the lines that semanage lists.
func listed(ctx context.Context, c *modules.Call, what string) ([]string, error) {
	r, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"semanage", what, "-l"}, IgnoreRetcode: true})
	return r.Lines(), err
}

func label(text string) (map[string]any, error) {
	parts := strings.SplitN(text, ":", 4)
	if len(parts) < 4 || parts[0] == "" || parts[1] == "" || parts[2] == "" || parts[3] == "" || strings.Contains(parts[3], ":") {
		return nil, modules.Usagef(`Invalid SELinux context string: {0}. Expected "sel_user:sel_role:sel_type:sel_level"`)
	}
	return map[string]any{"sel_user": parts[0], "sel_role": parts[1], "sel_type": parts[2], "sel_level": parts[3]}, nil
}

func fcontextGet(ctx context.Context, c *modules.Call) (any, error) {
	kind := ""
	if c.Bool("filetype") {
		name, err := typeName(c.Value("filetype"))
		if err != nil {
			return nil, err
		}
		kind = name
	}
	lines, err := listed(ctx, c, "fcontext")
	if err != nil {
		return nil, err
	}
	name := c.Str("name")
	shape := regexp.MustCompile(`^ +([A-Za-z ]+?) +([^:\s]+:[^:]+:[^:]+:[^:]+)$`)
	for _, line := range lines {
		rest, ok := strings.CutPrefix(line, name)
		m := shape.FindStringSubmatch(strings.TrimRight(rest, " |\t"))
		if !ok || m == nil || kind != "" && m[1] != kind {
			continue
		}
		out, err := label(m[2])
		if err != nil {
			return nil, err
		}
		fits := true
		for _, k := range [...]string{"sel_type", "sel_user", "sel_level"} {
			fits = fits && (!c.Bool(k) || c.Str(k) == out[k])
		}
		if fits {
			out["filespec"], out["filetype"] = name, m[1]
			return out, nil
		}
	}
	return nil, nil
}

func fcontextAdd(ctx context.Context, c *modules.Call) (any, error) {
	lines, err := listed(ctx, c, "fcontext")
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		if strings.Contains(line, c.Str("name")+" ") {
			return fcontextChange(ctx, c, "modify")
		}
	}
	return fcontextChange(ctx, c, "add")
}

func fcontextDelete(ctx context.Context, c *modules.Call) (any, error) {
	return fcontextChange(ctx, c, "delete")
}

func fcontextChange(ctx context.Context, c *modules.Call, action string) (any, error) {
	cmd := []any{"semanage", "fcontext", "--" + action}
	if t := c.Value("filetype"); t != nil && t != "a" {
		if _, err := typeName(t); err != nil {
			return nil, err
		}
		cmd = append(cmd, "--ftype", t)
	}
	for _, o := range [...]struct{ name, option string }{{"sel_type", "--type"}, {"sel_user", "--seuser"}, {"sel_level", "--range"}} {
		if v := c.Value(o.name); v != nil {
			cmd = append(cmd, o.option, v)
		}
	}
	name, err := escaped(c.Str("name"))
	if err != nil {
		return nil, err
	}
	r, err := saltcmd.All(ctx, c, append(cmd, name)...)
	if err != nil {
		return nil, err
	}
	return r.Map(), nil
}

// restorecon runs restorecon on the path of the call.
func restorecon(ctx context.Context, c *modules.Call, flags ...any) (saltcmd.Result, error) {
	name, err := escaped(c.Str("name"))
	if err != nil {
		return saltcmd.Result{}, err
	}
	cmd := append([]any{"restorecon"}, flags...)
	if c.Bool("recursive") {
		cmd = append(cmd, "-R")
	}
	return saltcmd.All(ctx, c, append(cmd, name)...)
}

func fcontextApplied(ctx context.Context, c *modules.Call) (any, error) {
	r, err := restorecon(ctx, c, "-n", "-v")
	if err != nil {
		return nil, err
	}
	return r.Stdout, nil
}

func fcontextApply(ctx context.Context, c *modules.Call) (any, error) {
	before, err := restorecon(ctx, c, "-n", "-v")
	if err != nil {
		return nil, err
	}
	r, err := restorecon(ctx, c, "-v", "-F")
	if err != nil {
		return nil, err
	}
	out := r.Map()
	if r.Retcode != 0 {
		return out, nil
	}
	var shape *regexp.Regexp
	switch {
	case strings.HasPrefix(before.Stdout, "Would relabel"):
		shape = regexp.MustCompile(`(?m)Would relabel (.*) from (.*) to (.*)$`)
	case strings.HasPrefix(before.Stdout, "restorecon reset"):
		shape = regexp.MustCompile(`(?m)restorecon reset (.*) context (.*)->(.*)$`)
	default:
		out["retcode"], out["error"] = int64(1), "Unrecognized response from restorecon command."
		return out, nil
	}
	changes := map[string]any{}
	for _, m := range shape.FindAllStringSubmatch(before.Stdout, -1) {
		was, err := label(m[2])
		if err != nil {
			return nil, err
		}
		is, err := label(m[3])
		if err != nil {
			return nil, err
		}
		for k, v := range was {
			if is[k] == v {
				delete(was, k)
				delete(is, k)
			}
		}
		changes[m[1]] = map[string]any{"old": was, "new": is}
	}
	if len(changes) > 0 {
		out["changes"] = changes
	}
	return out, nil
}

// port reads "tcp/80" or "udp/1-5" from the name, else from protocol and port.
func port(c *modules.Call) (protocol, number string, err error) {
	shape := regexp.MustCompile(`^(tcp|udp)/((?:\d+)-?\d+)$`)
	m := shape.FindStringSubmatch(c.Str("name"))
	if m == nil {
		m = shape.FindStringSubmatch(pytext.Str(c.Value("protocol")) + "/" + pytext.Str(c.Value("port")))
	}
	if m == nil {
		return "", "", modules.Usagef(`Invalid name "%s" format and protocol and port not provided or invalid: "%s" "%s".`,
			c.Str("name"), pytext.Str(c.Value("protocol")), pytext.Str(c.Value("port")))
	}
	return m[1], m[2], nil
}

func portGet(ctx context.Context, c *modules.Call) (any, error) {
	protocol, number, err := port(c)
	if err != nil {
		return nil, err
	}
	lines, err := listed(ctx, c, "port")
	if err != nil {
		return nil, err
	}
	shape := regexp.MustCompile(`^(\w+) +(\w+) +([\d\-, ]+)$`)
	for _, line := range lines {
		m := shape.FindStringSubmatch(line)
		if m == nil || m[2] != protocol || c.Bool("sel_type") && m[1] != c.Str("sel_type") {
			continue
		}
		for _, p := range strings.Split(m[3], ",") {
			if strings.TrimSpace(p) == number {
				return map[string]any{"sel_type": m[1], "protocol": m[2], "port": strings.TrimSpace(m[3])}, nil
			}
		}
	}
	return nil, nil
}

func portAdd(ctx context.Context, c *modules.Call) (any, error) {
	if !c.Bool("sel_type") {
		return nil, modules.Usagef("SELinux Type is required to add a policy")
	}
	return portChange(ctx, c, "add")
}

func portModify(ctx context.Context, c *modules.Call) (any, error) {
	return portChange(ctx, c, "modify")
}

func portDelete(ctx context.Context, c *modules.Call) (any, error) {
	return portChange(ctx, c, "delete")
}

func portChange(ctx context.Context, c *modules.Call, action string) (any, error) {
	protocol, number, err := port(c)
	if err != nil {
		return nil, err
	}
	cmd := []any{"semanage", "port", "--" + action, "--proto", protocol}
	for _, o := range [...]struct{ name, option string }{{"sel_type", "--type"}, {"sel_range", "--range"}} {
		if c.Bool(o.name) {
			cmd = append(cmd, o.option, c.Value(o.name))
		}
	}
	r, err := saltcmd.All(ctx, c, append(cmd, number)...)
	if err != nil {
		return nil, err
	}
	return r.Map(), nil
}
