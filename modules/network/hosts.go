package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/wol"
	"github.com/brine-salt/brine/modules"
)

func wake(ctx context.Context, c *modules.Call) (any, error) {
	port, err := c.Int("destport")
	if err != nil {
		return nil, err
	}
	err = wol.Send(ctx, c.Str("mac"), c.Str("bcast"), port)
	var python *wol.Error
	switch {
	case errors.As(err, &python):
		return nil, &modules.PythonError{Type: python.Type, Msg: python.Msg}
	case err != nil:
		return nil, modules.OSError(err)
	}
	return true, nil
}

func getHostname(context.Context, *modules.Call) (any, error) { return os.Hostname() }

func getFQDN(ctx context.Context, c *modules.Call) (any, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, modules.OSError(err)
	}
	return fqdn(ctx, c, name), nil
}

// fqdn implements socket.getfqdn: it returns the first name of the host's address that contains a dot.
func fqdn(ctx context.Context, c *modules.Call, name string) string {
	addr := first(ask(ctx, c, "ahosts", name))
	if addr == "" {
		return name
	}
	names := ask(ctx, c, "hosts", addr)
	if len(names) < 2 {
		return name
	}
	for _, n := range names[1:] {
		if strings.Contains(n, ".") {
			return n
		}
	}
	return names[1]
}

func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// ask returns the words of the first line that getent prints.
func ask(ctx context.Context, c *modules.Call, database, key string) []string {
	if key == "" || strings.HasPrefix(key, "-") || strings.IndexByte(key, 0) >= 0 {
		return nil
	}
	r, err := c.Cmd(ctx, modules.Command{Args: []string{"getent", database, key}})
	if err != nil || r.ExitCode != 0 {
		return nil
	}
	line, _, _ := strings.Cut(string(r.Stdout), "\n")
	return strings.Fields(line)
}

func fqdns(ctx context.Context, c *modules.Call) (any, error) {
	var names []string
	for _, kind := range [...]string{"inet", "inet6"} {
		list, err := ips(ctx, c, kind, nil, false)
		if err != nil {
			return nil, err
		}
		for _, a := range list {
			if f := ask(ctx, c, "hosts", a.String()); len(f) > 1 {
				names = append(names, fqdn(ctx, c, f[1]))
			}
		}
	}
	slices.Sort(names)
	out := []any{}
	for _, n := range slices.Compact(names) {
		out = append(out, n)
	}
	return map[string]any{"fqdns": out}, nil
}

func modHostname(ctx context.Context, c *modules.Call) (any, error) {
	if c.Value("hostname") == nil {
		return false, nil
	}
	name, ok := c.Value("hostname").(string)
	if !ok {
		return nil, &modules.TypeError{Msg: "sequence item 0: expected str instance, " + modules.TypeName(c.Value("hostname")) + " found"}
	}
	if name == "" || strings.ContainsAny(name, " \t\n\r\x00") || strings.HasPrefix(name, "-") {
		return nil, modules.Usagef("%s is no name of a host", pytext.Repr(name))
	}
	old, ok, err := rename(ctx, c, name)
	if err != nil || !ok {
		return false, err
	}
	if err := inHosts(c, old, name); err != nil {
		return nil, err
	}
	switch c.Grain("os_family") {
	case "RedHat":
		return true, inSysconfig(c, name)
	case "Debian", "NILinuxRT":
		return true, put(c, "/etc/hostname", name+"\n")
	case "OpenBSD":
		return true, put(c, "/etc/myname", name+"\n")
	}
	return true, nil
}

// rename gives the running host its name and returns the old one.
func rename(ctx context.Context, c *modules.Call, name string) (old string, ok bool, err error) {
	if path := c.Which("hostnamectl"); path != "" {
		r, err := saltcmd.All(ctx, c, path, "status")
		if err != nil {
			return "", false, err
		}
		old, _ = os.Hostname()
		for _, line := range r.Lines() {
			if key, value, ok := strings.Cut(line, ":"); r.Retcode == 0 && ok && strings.Contains(key, "Static hostname") {
				value, _, _ = strings.Cut(value, ":")
				old = pytext.Strip(value)
			}
		}
		r, err = saltcmd.All(ctx, c, path, "set-hostname", name)
		return old, err == nil && r.Retcode == 0, err
	}
	path := c.Which("hostname")
	if path == "" {
		return "", false, modules.NoAttribute(nil, "endswith")
	}
	host, err := os.Hostname()
	if err != nil {
		return "", false, modules.OSError(err)
	}
	old = fqdn(ctx, c, host)
	_, err = saltcmd.Text(ctx, c, path, name)
	return old, err == nil, err
}

func put(c *modules.Call, file, text string) error {
	if err := atomicfile.Replace(c.Path(file), []byte(text), 0o644); err != nil {
		return modules.OSError(err)
	}
	return nil
}

func readLines(c *modules.Call, file string) ([]string, error) {
	text, err := os.ReadFile(c.Path(file))
	if err != nil {
		return nil, modules.OSError(err)
	}
	return pytext.SplitLines(string(text), true), nil
}

// inHosts replaces the name in /etc/hosts; the words of each line then have one tab between them, as in Salt.
func inHosts(c *modules.Call, old, name string) error {
	lines, err := readLines(c, "/etc/hosts")
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, line := range lines {
		f := strings.Fields(line)
		if i := slices.Index(f, old); i >= 0 {
			f[i] = name
		}
		b.WriteString(strings.Join(f, "\t") + "\n")
	}
	return put(c, "/etc/hosts", b.String())
}

func inSysconfig(c *modules.Call, name string) error {
	const file = "/etc/sysconfig/network"
	lines, err := readLines(c, file)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, line := range lines {
		if !strings.HasPrefix(line, "HOSTNAME") {
			b.WriteString(line)
			continue
		}
		_, value, _ := strings.Cut(line, "=")
		quote := ""
		if value = pytext.StripRight(value); len(value) > 1 && value[0] == value[len(value)-1] && (value[0] == '"' || value[0] == '\'') {
			quote = value[:1]
		}
		b.WriteString("HOSTNAME=" + quote + name + quote + "\n")
	}
	return put(c, file, b.String())
}

func connect(ctx context.Context, c *modules.Call) (any, error) {
	answer := func(ok bool, format string, args ...any) (any, error) {
		return map[string]any{"result": ok, "comment": fmt.Sprintf(format, args...)}, nil
	}
	for _, name := range [...]string{"host", "port"} {
		if !c.Bool(name) {
			return answer(false, "Required argument, %s, is missing.", name)
		}
	}
	host, port, proto := c.Str("host"), c.Str("port"), "tcp"
	if c.Keywords["proto"] == "udp" {
		proto = "udp"
	}
	seconds := 5.0
	switch v := c.Keywords["timeout"].(type) {
	case int64:
		seconds = float64(v)
	case float64:
		seconds = v
	}
	ip, number := resolve(ctx, sanitize(host), port, proto, c.Keywords["family"])
	if ip == "" {
		return answer(false, "Unable to resolve host %s on %s port %s", host, proto, port)
	}
	failed := proto == "udp" // stock's greeting fails before it is sent
	if !failed {
		d := net.Dialer{Timeout: time.Duration(max(seconds, 0) * float64(time.Second))}
		conn, err := d.DialContext(ctx, proto, net.JoinHostPort(ip, strconv.Itoa(number)))
		if err == nil {
			conn.Close()
		}
		failed = err != nil
	}
	if failed {
		return answer(false, "Unable to connect to %s (%s) on %s port %s", host, ip, proto, port)
	}
	return answer(true, "Successfully connected to %s (%s) on %s port %s", host, ip, proto, port)
}

// resolve returns the first address of a host and the number of a port, or "" if it is missing.
func resolve(ctx context.Context, host, port, proto string, family any) (string, int) {
	number, err := net.DefaultResolver.LookupPort(ctx, proto, port)
	if err != nil {
		return "", 0
	}
	network := "ip"
	switch family {
	case "ipv4":
		network = "ip4"
	case "ipv6":
		network = "ip6"
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if network == "ip4" && !a.Is4() || network == "ip6" && a.Is4() {
			return "", 0
		}
		return host, number
	}
	list, err := net.DefaultResolver.LookupNetIP(ctx, network, host)
	if err != nil || len(list) == 0 {
		return "", 0
	}
	return list[0].Unmap().String(), number
}

func traceroute(ctx context.Context, c *modules.Call) (any, error) {
	if err := saltcmd.Needs(c, "traceroute"); err != nil {
		return nil, err
	}
	host, err := target(c.Value("host"))
	if err != nil {
		return nil, err
	}
	r, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"traceroute", host}, Merge: true, Timeout: 2 * time.Minute})
	if err != nil || strings.Contains(r.Stdout, "Timed out after") {
		return []any{}, err
	}
	version, err := saltcmd.Text(ctx, c, "traceroute", "--version")
	if err != nil {
		return nil, err
	}
	modern := isModern(version)
	out := []any{}
	for _, line := range r.Lines() {
		if strings.Contains(line, " ") && !strings.HasPrefix(line, "traceroute") {
			hop, err := hopOf(line, modern)
			if err != nil {
				return nil, err
			}
			out = append(out, hop)
		}
	}
	return out, nil
}

// isModern reports whether the version is 2.0.14 or later, which puts two spaces between columns.
func isModern(text string) bool {
	m := regexp.MustCompile(`[Vv]ersion (\d+)\.([\w+]+)\.*(\w*)`).FindStringSubmatch(text)
	if m == nil {
		return false
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	patch, _ := strconv.Atoi(m[3])
	return major >= 2 && (patch >= 14 || minor > 0)
}

func hopOf(line string, modern bool) (map[string]any, error) {
	if !modern {
		f := strings.Fields(line)
		if len(f) < 9 {
			return map[string]any{}, nil
		}
		return map[string]any{
			"count": f[0], "hostname": f[1], "ip": f[2], "ms1": f[4], "ms2": f[6], "ms3": f[8], "ping1": f[3], "ping2": f[5], "ping3": f[7],
		}, nil
	}
	parts := strings.Split(line, "  ")
	out := map[string]any{}
	if len(parts) >= 5 || len(parts) >= 2 && parts[1] == "* * *" {
		n, err := modules.ToInt(parts[0])
		if err != nil {
			return nil, err
		}
		out["count"] = n
	}
	switch {
	case len(parts) >= 2 && parts[1] == "* * *":
		out["hostname"] = "*"
	case len(parts) >= 5:
		name := strings.Fields(parts[1])
		if len(name) < 2 {
			return nil, modules.IndexError()
		}
		out["hostname"], out["ip"] = name[0], strings.Trim(name[1], "()")
		for i, p := range parts[2:5] {
			ms, err := strconv.ParseFloat(first(strings.Fields(p)), 64)
			if err != nil {
				return nil, &modules.PythonError{Type: "ValueError", Msg: "could not convert string to float: " + pytext.Repr(first(strings.Fields(p)))}
			}
			out["ms"+strconv.Itoa(i+1)] = ms
		}
	}
	return out, nil
}
