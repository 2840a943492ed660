// Package network is Salt's execution module "network" on Linux. Salt's sources: salt/modules/network.py,
// salt/utils/network.py.
package network

import (
	"context"
	"encoding/hex"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pyip"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// network.netstat differs: it is for Linux; elsewhere it is an error.
// network.routes, network.default_route, network.get_route differ: they are for Linux; elsewhere they are errors.
// network.mod_hostname differs: it knows Linux and OpenBSD.

func available(*modules.Env) (bool, string) {
	return runtime.GOOS != "windows", "The network execution module cannot be loaded on Windows: use win_network instead."
}

// unsupported returns Salt's error on systems other than Linux.
func unsupported(c *modules.Call) error {
	if c.Grain("kernel") == "Linux" {
		return nil
	}
	return modules.Errorf("Not yet supported on this platform")
}

func valueError(err error) error { return &modules.PythonError{Type: "ValueError", Msg: err.Error()} }

func parseAddr(text string) (netip.Addr, error) {
	a, err := pyip.Addr(text)
	if err != nil {
		return a, valueError(err)
	}
	return a, nil
}

// sanitize leaves of a host's name what may be in one.
func sanitize(v any) string {
	text := pytext.Str(v)
	if _, err := netip.ParseAddr(text); err == nil {
		return text
	}
	r := []rune(text)
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' {
			return r
		}
		return -1
	}, string(r[:min(255, len(r))]))
}

// target returns a sanitized host name. A name that could be taken for an option is an error.
func target(v any) (string, error) {
	host := sanitize(v)
	if strings.HasPrefix(host, "-") {
		return "", modules.Usagef("%s is no name of a host", pytext.Repr(host))
	}
	return host, nil
}

func ping(ctx context.Context, c *modules.Call) (any, error) {
	host, err := target(c.Value("host"))
	if err != nil {
		return nil, err
	}
	cmd := []any{"ping"}
	if c.Bool("timeout") {
		cmd = append(cmd, "-W", c.Value("timeout"))
	}
	cmd = append(cmd, "-c", "4")
	if host != "" {
		cmd = append(cmd, host)
	}
	if !c.Bool("return_boolean") {
		return saltcmd.Text(ctx, c, cmd...)
	}
	r, err := saltcmd.All(ctx, c, cmd...)
	return err == nil && r.Retcode == 0, err
}

func dig(ctx context.Context, c *modules.Call) (any, error) {
	if err := saltcmd.Needs(c, "dig"); err != nil {
		return nil, err
	}
	host, err := target(c.Value("host"))
	if err != nil {
		return nil, err
	}
	return saltcmd.Text(ctx, c, "dig", host)
}

func arp(ctx context.Context, c *modules.Call) (any, error) {
	if err := saltcmd.Needs(c, "arp"); err != nil {
		return nil, err
	}
	text, err := saltcmd.Text(ctx, c, "arp", "-an")
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, line := range pytext.SplitLines(text, false) {
		f := strings.Fields(line)
		switch {
		case len(f) < 4:
		case c.Grain("kernel") != "OpenBSD":
			out[f[3]] = strings.Trim(f[1], "()")
		case f[0] != "Host" && f[1] != "(incomplete)":
			out[f[1]] = f[0]
		}
	}
	return out, nil
}

func ipNeighs(ctx context.Context, c *modules.Call) (any, error)  { return neighbours(ctx, c, ".") }
func ipNeighs6(ctx context.Context, c *modules.Call) (any, error) { return neighbours(ctx, c, ":") }

func neighbours(ctx context.Context, c *modules.Call, mark string) (any, error) {
	text, err := saltcmd.Text(ctx, c, "ip", "neigh", "show")
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, line := range pytext.SplitLines(text, false) {
		if f := strings.Fields(line); len(f) >= 5 && strings.Contains(f[0], mark) {
			out[f[4]] = f[0]
		}
	}
	return out, nil
}

func calcNet(_ context.Context, c *modules.Call) (any, error) {
	text := pytext.Str(c.Value("ip_addr"))
	if m := c.Value("netmask"); m != nil {
		text += "/" + pytext.Str(m)
	}
	p, err := pyip.Network(text, false)
	if err != nil {
		return nil, valueError(err)
	}
	return pyip.NetworkText(p), nil
}

func convertCIDR(_ context.Context, c *modules.Call) (any, error) {
	p, err := pyip.Network(pytext.Str(c.Value("cidr")), false)
	if err != nil {
		return nil, valueError(err)
	}
	return map[string]any{"network": pyip.Text(p.Addr()), "netmask": pyip.Netmask(p), "broadcast": pyip.Broadcast(p)}, nil
}

func inSubnet(ctx context.Context, c *modules.Call) (any, error) {
	p, err := pyip.Network(pytext.Str(c.Value("cidr")), true)
	if err != nil {
		c.Logger().Error("No network", "err", err)
		return false, nil
	}
	for _, kind := range [...]string{"inet", "inet6"} {
		list, err := ips(ctx, c, kind, nil, false)
		if err != nil {
			return nil, err
		}
		for _, a := range list {
			if pyip.Contains(p, a) {
				return true, nil
			}
		}
	}
	return false, nil
}

func ipInSubnet(_ context.Context, c *modules.Call) (any, error) {
	p, err := pyip.Network(pytext.Str(c.Value("cidr")), true)
	if err != nil {
		c.Logger().Error("No network", "err", err)
		return false, nil
	}
	list, ok := c.Value("ip_addr").([]any)
	if !ok {
		list = []any{c.Value("ip_addr")}
	}
	for _, x := range list {
		a, err := parseAddr(pytext.Str(x))
		if err != nil {
			return nil, err
		}
		if pyip.Contains(p, a) {
			return true, nil
		}
	}
	return false, nil
}

func isPrivate(_ context.Context, c *modules.Call) (any, error) {
	a, err := parseAddr(pytext.Str(c.Value("ip_addr")))
	return err == nil && pyip.IsPrivate(a), err
}

func isLoopback(_ context.Context, c *modules.Call) (any, error) {
	a, err := parseAddr(pytext.Str(c.Value("ip_addr")))
	return err == nil && a.IsLoopback() && !a.Is4In6(), err
}

func reverseIP(_ context.Context, c *modules.Call) (any, error) {
	a, err := parseAddr(pytext.Str(c.Value("ip_addr")))
	if err != nil {
		return nil, err
	}
	return pyip.Reverse(a), nil
}

func ipHexval(_ context.Context, c *modules.Call) (any, error) {
	text, ok := c.Value("ip").(string)
	if !ok {
		return nil, modules.NoAttribute(c.Value("ip"), "split")
	}
	out := ""
	for _, part := range strings.Split(text, ".") {
		n, err := modules.ToInt(part)
		if err != nil {
			return nil, err
		}
		digits := strings.ToUpper(strconv.FormatInt(n, 16))
		if len(digits) < 2 {
			digits = "0" + digits
		}
		out += digits
	}
	return out, nil
}

const ethtool = "/sbin/ethtool"

// hasEthtool reports whether buffer sizes can be asked for.
func hasEthtool(c *modules.Call) bool {
	_, err := os.Stat(c.Path(ethtool))
	return c.Grain("kernel") == "Linux" && err == nil
}

func getBufsize(ctx context.Context, c *modules.Call) (any, error) {
	if !hasEthtool(c) {
		return map[string]any{}, nil
	}
	text, err := saltcmd.Text(ctx, c, ethtool, "-g", c.Value("iface"))
	if err != nil {
		return nil, err
	}
	out, suffix := map[string]any{"result": false}, "max-"
	for _, line := range pytext.SplitLines(text, false) {
		i := strings.LastIndex(line, ":")
		number := ""
		if i > 0 {
			number = strings.TrimLeft(line[i+1:], " \t")
		}
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && n >= 0 && number != line[i+1:] {
			out[strings.ReplaceAll(strings.ToLower(line[:i]), " ", "-")+suffix], out["result"] = n, true
		} else if strings.HasSuffix(line, "maximums:") {
			suffix = "-max"
		} else if strings.HasSuffix(line, "settings:") {
			suffix = ""
		}
	}
	if out["result"] == false {
		if f := strings.Fields(text); len(f) > 0 && strings.HasSuffix(f[0], "sh:") {
			text = strings.Join(f[1:], " ")
		}
		out["comment"] = text
	}
	return out, nil
}

func modBufsize(ctx context.Context, c *modules.Call) (any, error) {
	if !hasEthtool(c) {
		return false, nil
	}
	out := map[string]any{"result": false, "comment": "Requires rx=<val> tx==<val> rx-mini=<val> and/or rx-jumbo=<val>"}
	if len(c.Keywords) == 0 {
		return out, nil
	}
	if len(c.Extra) > 0 {
		out["comment"] = "Unknown arguments: " + strings.Join(saltcmd.Words(c.Extra...), " ")
		return out, nil
	}
	var args []any
	for _, k := range [...]string{"rx", "tx", "rx-mini", "rx-jumbo"} {
		if v := c.Keywords[k]; v != nil {
			args = append(args, k, v)
		}
	}
	if args == nil {
		return out, nil
	}
	text, err := saltcmd.Text(ctx, c, append([]any{ethtool, "-G", c.Value("iface")}, args...)...)
	if err != nil {
		return nil, err
	}
	if out["comment"] = text; text == "" {
		out["comment"], out["result"] = strings.Join(saltcmd.Words(args...), " "), true
	}
	return out, nil
}

func activeTCP(_ context.Context, c *modules.Call) (any, error) {
	out := map[any]any{}
	if c.Grain("kernel") != "Linux" {
		return map[string]any{}, nil
	}
	for _, file := range [...]string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(c.Path(file))
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(text), "\n") {
			f := strings.Fields(line)
			if len(f) < 4 || f[0] == "sl" || f[3] != "01" {
				continue
			}
			local, lport := endpoint(f[1])
			remote, rport := endpoint(f[2])
			out[int64(len(out))] = map[string]any{"local_addr": local, "local_port": lport, "remote_addr": remote, "remote_port": rport}
		}
	}
	if len(out) == 0 {
		return map[string]any{}, nil
	}
	return out, nil
}

// endpoint reads an address and a port of /proc/net/tcp, whose words are in the byte order of the host.
func endpoint(text string) (string, int64) {
	ip, port, _ := strings.Cut(text, ":")
	n, _ := strconv.ParseInt(port, 16, 32)
	b, err := hex.DecodeString(ip)
	if err != nil || len(b) != 4 && len(b) != 16 {
		return ip, n
	}
	for i := 0; i < len(b); i += 4 {
		b[i], b[i+1], b[i+2], b[i+3] = b[i+3], b[i+2], b[i+1], b[i]
	}
	a, _ := netip.AddrFromSlice(b)
	return a.Unmap().String(), n
}
