package network

import (
	"context"
	"regexp"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pyip"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func netstat(ctx context.Context, c *modules.Call) (any, error) {
	if err := unsupported(c); err != nil {
		return nil, err
	}
	program, read := "netstat", netstatLine
	if c.Which(program) == "" {
		program, read = "ss", ssLine
	}
	text, err := saltcmd.Text(ctx, c, program, "-tulpnea")
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, line := range pytext.SplitLines(text, false) {
		tcp := strings.HasPrefix(line, "tcp")
		if !tcp && !strings.HasPrefix(line, "udp") {
			continue
		}
		m, err := read(strings.Fields(line), tcp)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func netstatLine(f []string, tcp bool) (any, error) {
	if len(f) < 8 || tcp && len(f) < 9 {
		return nil, modules.IndexError()
	}
	m := map[string]any{"proto": f[0], "recv-q": f[1], "send-q": f[2], "local-address": f[3], "remote-address": f[4]}
	if f = f[5:]; tcp {
		m["state"], f = f[0], f[1:]
	}
	m["user"], m["inode"], m["program"] = f[0], f[1], f[2]
	return m, nil
}

func ssLine(f []string, tcp bool) (any, error) {
	if len(f) < 6 {
		return nil, modules.IndexError()
	}
	m := map[string]any{
		"proto": f[0], "recv-q": f[2], "send-q": f[3], "local-address": f[4], "remote-address": f[5],
		"user": int64(0), "inode": int64(0), "program": "",
	}
	for i := 6; i < len(f)-1; i++ {
		parts := strings.Split(f[i], ":")
		if len(parts) < 2 {
			continue
		}
		switch parts[0] {
		case "users":
			if words := strings.Split(parts[1], `"`); len(words) > 1 {
				m["program"] = words[1]
			}
		case "uid":
			m["user"] = parts[1]
		case "ino":
			m["inode"] = parts[1]
		}
	}
	if tcp {
		m["state"] = f[1]
		if f[1] == "ESTAB" {
			m["state"] = "ESTABLISHED"
		}
	}
	return m, nil
}

// badFamily refuses families of addresses that there are not.
func badFamily(v any) error {
	if v != nil && v != "inet" && v != "inet6" {
		return modules.Errorf("Invalid address family %s", pytext.Str(v))
	}
	return nil
}

func routes(ctx context.Context, c *modules.Call) (any, error) {
	list, err := routeList(ctx, c)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, r := range list {
		if family := c.Value("family"); family == nil || r["addr_family"] == family {
			out = append(out, r)
		}
	}
	return out, nil
}

func defaultRoute(ctx context.Context, c *modules.Call) (any, error) {
	list, err := routeList(ctx, c)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, r := range list {
		family := c.Value("family")
		if family != nil && r["addr_family"] != family {
			continue
		}
		switch d := r["destination"]; {
		case d == "default", d == "0.0.0.0" && family != "inet6", d == "::/0" && family != "inet":
			out = append(out, r)
		}
	}
	return out, nil
}

func routeList(ctx context.Context, c *modules.Call) ([]map[string]any, error) {
	if err := badFamily(c.Value("family")); err != nil {
		return nil, err
	}
	if err := unsupported(c); err != nil {
		return nil, err
	}
	if c.Which("netstat") != "" {
		return viaNetstat(ctx, c)
	}
	return viaIP(ctx, c)
}

// quiet returns the output of a program and ignores its exit status.
func quiet(ctx context.Context, c *modules.Call, words ...string) ([]string, error) {
	r, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: words, Merge: true, IgnoreRetcode: true})
	return r.Lines(), err
}

func viaNetstat(ctx context.Context, c *modules.Call) ([]map[string]any, error) {
	var out []map[string]any
	for _, family := range [...]string{"inet", "inet6"} {
		lines, err := quiet(ctx, c, "netstat", "-A", family, "-rn")
		if err != nil {
			return nil, err
		}
		for _, line := range lines[min(2, len(lines)):] {
			f := strings.Fields(line)
			if family == "inet" {
				if len(f) < 8 {
					return nil, modules.IndexError()
				}
				out = append(out, map[string]any{
					"addr_family": family, "destination": f[0], "gateway": f[1], "netmask": f[2], "flags": f[3], "interface": f[7],
				})
			} else if len(f) == 6 || len(f) == 7 {
				out = append(out, map[string]any{
					"addr_family": family, "destination": f[0], "gateway": f[1], "netmask": "", "flags": f[2], "interface": f[len(f)-1],
				})
			}
		}
	}
	return out, nil
}

func viaIP(ctx context.Context, c *modules.Call) ([]map[string]any, error) {
	lines, err := quiet(ctx, c, "ip", "-4", "route", "show", "table", "main")
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	add := func(family, destination, gateway, mask, flags string, device string) {
		out = append(out, map[string]any{
			"addr_family": family, "destination": destination, "gateway": gateway, "netmask": mask, "flags": flags, "interface": device,
		})
	}
	for _, line := range lines {
		f := append(strings.Fields(line), "", "", "", "", "")
		switch f[0] {
		case "unreachable":
		case "default":
			add("inet", "0.0.0.0", f[2], "0.0.0.0", "UG", device(f[3:]))
		default:
			p, err := pyip.Network(f[0], false)
			if err != nil {
				return nil, valueError(err)
			}
			add("inet", pyip.Text(p.Addr()), "0.0.0.0", pyip.Netmask(p), "U", device(f[1:]))
		}
	}
	if lines, err = quiet(ctx, c, "ip", "-6", "route", "show", "table", "all"); err != nil {
		return nil, err
	}
	for _, line := range lines {
		f := append(strings.Fields(line), "", "", "", "", "")
		switch f[0] {
		case "unicast", "broadcast", "throw", "unreachable", "prohibit", "blackhole", "nat", "anycast", "multicast":
		case "default":
			add("inet6", "::/0", f[2], "", "UG", device(f[3:]))
		case "local":
			add("inet6", f[1]+"/128", "::", "", "U", device(f[2:]))
		default:
			if _, err := pyip.Network(f[0], false); err != nil {
				return nil, valueError(err)
			}
			add("inet6", f[0], "::", "", "U", device(f[1:]))
		}
	}
	return out, nil
}

// device returns the word after "dev" if the line begins with that.
func device(f []string) string {
	if f[0] == "dev" {
		return f[1]
	}
	return ""
}

func getRoute(ctx context.Context, c *modules.Call) (any, error) {
	if err := unsupported(c); err != nil {
		return nil, err
	}
	cmd := []any{"ip", "route", "get"}
	for _, w := range strings.Fields(c.Str("ip")) {
		cmd = append(cmd, w)
	}
	text, err := saltcmd.Text(ctx, c, cmd...)
	if err != nil {
		return nil, err
	}
	lines := pytext.SplitLines(text, false)
	if len(lines) == 0 {
		return nil, modules.IndexError()
	}
	re := regexp.MustCompile(`(?:via\s+([\w\.:]+))?\s+dev\s+([\w\.\:\-]+)\s+.*src\s+([\w\.:]+)`)
	m := re.FindStringSubmatchIndex(lines[0])
	if m == nil {
		return nil, modules.NoAttribute(nil, "group")
	}
	group := func(i int) any {
		if m[2*i] < 0 {
			return nil
		}
		return lines[0][m[2*i]:m[2*i+1]]
	}
	return map[string]any{"destination": c.Value("ip"), "gateway": group(1), "interface": group(2), "source": group(3)}, nil
}
