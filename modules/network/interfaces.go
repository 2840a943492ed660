package network

import (
	"context"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pyip"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// links are the interfaces as network.interfaces shows them, with their names in order.
type links struct {
	names []string
	data  map[string]any
}

func interfaces(ctx context.Context, c *modules.Call) (any, error) {
	l, err := list(ctx, c)
	if err != nil {
		return nil, err
	}
	return l.inOrder(), nil
}

// inOrder returns the interfaces in the form of stock's parser, in the order of the output.
func (l *links) inOrder() *pyobj.Dict {
	out := &pyobj.Dict{}
	for _, name := range l.names {
		link, _ := l.data[name].(map[string]any)
		d := pyobj.Keyed(link, "up", "parent", "hwaddr", "inet", "secondary", "inet6")
		for _, kind := range [...]string{"inet", "secondary", "inet6"} {
			list, _ := link[kind].([]any)
			addresses := &pyobj.List{}
			for _, x := range list {
				m, _ := x.(map[string]any)
				addresses.Items = append(addresses.Items, pyobj.Keyed(m, "type", "address", "netmask", "prefixlen", "broadcast", "label", "scope"))
			}
			if list != nil {
				_ = d.Set(kind, addresses)
			}
		}
		_ = out.Set(name, d)
	}
	return out
}

// list runs ip, or ifconfig if ip is missing.
func list(ctx context.Context, c *modules.Call) (*links, error) {
	l := &links{data: map[string]any{}}
	if path := c.Which("ip"); path != "" {
		var text strings.Builder
		for _, what := range [...]string{"link", "addr"} {
			r, err := c.Cmd(ctx, modules.Command{Args: []string{path, what, "show"}, Merge: true})
			if err != nil {
				return nil, err
			}
			text.Write(r.Stdout)
			text.WriteString("\n")
		}
		l.parseIP(strings.TrimSuffix(text.String(), "\n"))
	} else if path := c.Which("ifconfig"); path != "" {
		r, err := c.Cmd(ctx, modules.Command{Args: []string{path, "-a"}, Merge: true})
		if err != nil {
			return nil, err
		}
		l.parseIfconfig(string(r.Stdout))
	}
	return l, nil
}

func (l *links) put(name string, data map[string]any) {
	if _, ok := l.data[name]; !ok {
		l.names = append(l.names, name)
	}
	l.data[name] = data
}

// parseIP reads the output of "ip link show" and "ip addr show".
func (l *links) parseIP(text string) {
	header := regexp.MustCompile(`^\d*:\s+([\w.\-]+)(?:@)?([\w.\-]+)?:\s+<(.+)>`)
	name, data := "", map[string]any(nil)
	for _, line := range pytext.SplitLines(text, false) {
		if line != "" && line[0] >= '0' && line[0] <= '9' {
			name, data = "", map[string]any{}
		}
		if !strings.Contains(line, " ") || data == nil {
			continue
		}
		if m := header.FindStringSubmatch(line); m != nil {
			name = m[1]
			data["up"] = slices.Contains(strings.Split(m[3], ","), "UP")
			if m[2] != "" {
				data["parent"] = m[2]
			}
			l.put(name, data)
			continue
		}
		f := strings.Fields(line)
		switch {
		case len(f) < 2:
		case f[0] == "inet" || f[0] == "inet6":
			addAddress(data, f)
		case strings.HasPrefix(f[0], "link"):
			data["hwaddr"] = f[1]
		}
	}
}

// after returns the word after another one, or nil if it is missing.
func after(f []string, word string) any {
	if i := slices.Index(f, word); i >= 0 && i+1 < len(f) {
		return f[i+1]
	}
	return nil
}

func addAddress(data map[string]any, f []string) {
	kind := f[0]
	ip, bits, ok := strings.Cut(f[1], "/")
	if !ok {
		bits = "32"
	}
	m := map[string]any{"address": ip}
	if kind == "inet" {
		m["netmask"], m["broadcast"], m["label"] = maskOf(bits), after(f, "brd"), f[len(f)-1]
	} else {
		m["prefixlen"], m["scope"] = bits, after(f, "scope")
	}
	key := kind
	if slices.Contains(f, "secondary") {
		key, m["type"] = "secondary", kind
	}
	have, _ := data[key].([]any)
	data[key] = append(have, m)
}

func maskOf(bits string) string {
	n, err := strconv.Atoi(bits)
	if err != nil || n < 1 || n > 32 {
		return ""
	}
	return pyip.Netmask(netip.PrefixFrom(netip.IPv4Unspecified(), n))
}

// parseIfconfig reads the output of ifconfig of Linux and the BSDs.
func (l *links) parseIfconfig(text string) {
	mac := regexp.MustCompile(`(?:HWaddr|ether|address:|lladdr) ([0-9a-fA-F:]+)`)
	ip := regexp.MustCompile(`(?:inet addr:|inet [^\d]*)(.*?)\s`)
	mask := regexp.MustCompile(`(?:Mask:|netmask )(?:((?:0x)?[0-9a-fA-F]{8})|([\d\.]+))`)
	broadcast := regexp.MustCompile(`(?:Bcast:|broadcast )([\d\.]+)`)
	ip6 := regexp.MustCompile(`(?:inet6 addr: (.*?)/|inet6 )([0-9a-fA-F:]+)`)
	prefix := regexp.MustCompile(`(?:inet6 addr: [0-9a-fA-F:]+/(\d+)|prefixlen (\d+))(?: Scope:([a-zA-Z]+)| scopeid (0x[0-9a-fA-F]))?`)
	data := map[string]any(nil)
	for _, line := range pytext.SplitLines(text, false) {
		if line != "" && line[0] > ' ' {
			name := strings.FieldsFunc(line, func(r rune) bool { return r == ':' || r == ' ' || r == '\t' })[0]
			data = map[string]any{"up": false}
			l.put(name, data)
		}
		if data == nil {
			continue
		}
		if m := mac.FindStringSubmatch(line); m != nil {
			data["hwaddr"] = m[1]
		}
		if strings.Contains(line, "UP") {
			data["up"] = true
		}
		if m := ip.FindStringSubmatch(line); m != nil {
			a := map[string]any{"address": m[1]}
			if n := mask.FindStringSubmatch(line); n != nil {
				a["netmask"] = n[2]
				if v, err := strconv.ParseUint(strings.TrimPrefix(n[1], "0x"), 16, 32); err == nil {
					a["netmask"] = netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}).String()
				}
			}
			if n := broadcast.FindStringSubmatch(line); n != nil {
				a["broadcast"] = n[1]
			}
			have, _ := data["inet"].([]any)
			data["inet"] = append(have, a)
		}
		if m := ip6.FindStringSubmatch(line); m != nil {
			a := map[string]any{"address": m[1] + m[2]}
			if m[1] != "" {
				a["address"] = m[1]
			}
			if n := prefix.FindStringSubmatch(line); n != nil {
				a["prefixlen"], a["scope"] = n[1]+n[2], nil
				if scope := strings.ToLower(n[3] + n[4]); scope != "" {
					a["scope"] = scope
				}
			}
			have, _ := data["inet6"].([]any)
			data["inet6"] = append(have, a)
		}
	}
}

// one returns an interface. If it does not exist, the second result is Salt's error text.
func (l *links) one(name string) (map[string]any, string) {
	if m, ok := l.data[name].(map[string]any); ok {
		return m, ""
	}
	return nil, `Interface "` + name + `" not in available interfaces: "` + strings.Join(l.names, `", "`) + `"`
}

func hwAddr(ctx context.Context, c *modules.Call) (any, error) {
	return ofOne(ctx, c, func(m map[string]any) any {
		if v, ok := m["hwaddr"]; ok {
			return v
		}
		return ""
	})
}

func interfaceAddrs(ctx context.Context, c *modules.Call) (any, error) {
	return ofOne(ctx, c, func(m map[string]any) any {
		if v, ok := m["inet"]; ok {
			return v
		}
		return ""
	})
}

func interfaceIP(ctx context.Context, c *modules.Call) (any, error) {
	return ofOne(ctx, c, func(m map[string]any) any {
		if list, _ := m["inet"].([]any); len(list) > 0 {
			return list[0].(map[string]any)["address"]
		}
		return ""
	})
}

func ofOne(ctx context.Context, c *modules.Call, get func(m map[string]any) any) (any, error) {
	l, err := list(ctx, c)
	if err != nil {
		return nil, err
	}
	m, text := l.one(c.Str("iface"))
	if text != "" {
		c.Logger().Error("There is no such interface", "iface", c.Str("iface"))
		return text, nil
	}
	return get(m), nil
}

// address is an address of the host with its mask.
type address struct{ ip, mask string }

// addresses returns the addresses of one kind (inet, inet6), including secondary ones, of the interfaces that match
// the patterns.
func (l *links) addresses(kind string, patterns any) []address {
	var out []address
	globs := splitInput(patterns)
	for _, name := range l.names {
		if patterns != nil && !slices.ContainsFunc(globs, func(g string) bool { return fnmatch.Match(g, name) }) {
			continue
		}
		out = append(out, of(l.data[name].(map[string]any), kind)...)
	}
	return out
}

func of(m map[string]any, kind string) []address {
	var out []address
	first, _ := m[kind].([]any)
	second, _ := m["secondary"].([]any)
	for i, x := range slices.Concat(first, second) {
		a, _ := x.(map[string]any)
		if i >= len(first) && a["type"] != kind {
			continue
		}
		mask := a["netmask"]
		if kind == "inet6" {
			mask = a["prefixlen"]
		}
		text, _ := mask.(string)
		ip, _ := a["address"].(string)
		out = append(out, address{ip, text})
	}
	return out
}

func splitInput(v any) []string {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		out := make([]string, len(v))
		for i, x := range v {
			out[i] = pytext.Str(x)
		}
		return out
	}
	list := strings.Split(pytext.Str(v), ",")
	for i := range list {
		list[i] = pytext.Strip(list[i])
	}
	return list
}

// ips returns the addresses of the host, sorted.
func ips(ctx context.Context, c *modules.Call, kind string, patterns any, loopback bool) ([]netip.Addr, error) {
	l, err := list(ctx, c)
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, x := range l.addresses(kind, patterns) {
		a, err := parseAddr(x.ip)
		if err != nil {
			return nil, err
		}
		if loopback || !a.IsLoopback() {
			out = append(out, a)
		}
	}
	sorting.Stable(out, netip.Addr.Compare)
	return slices.Compact(out), nil
}

func texts(list []netip.Addr) []any {
	out := make([]any, len(list))
	for i, a := range list {
		out[i] = pyip.Text(a)
	}
	return out
}

func ipAddrs(ctx context.Context, c *modules.Call) (any, error) {
	addrs, err := ips(ctx, c, "inet", c.Value("interface"), c.Bool("include_loopback"))
	if err != nil {
		return nil, err
	}
	if c.Bool("cidr") {
		return inCIDR(c, addrs), nil
	}
	if t := c.Value("type"); t == "public" || t == "private" {
		addrs = slices.DeleteFunc(addrs, func(a netip.Addr) bool { return pyip.IsPrivate(a) != (t == "private") })
	}
	return texts(addrs), nil
}

func ipAddrs6(ctx context.Context, c *modules.Call) (any, error) {
	addrs, err := ips(ctx, c, "inet6", c.Value("interface"), c.Bool("include_loopback"))
	if err != nil {
		return nil, err
	}
	if c.Bool("cidr") {
		return inCIDR(c, addrs), nil
	}
	return texts(addrs), nil
}

func inCIDR(c *modules.Call, addrs []netip.Addr) []any {
	p, err := pyip.Network(c.Str("cidr"), true)
	if err != nil {
		c.Logger().Error("No network", "err", err)
		return []any{}
	}
	return texts(slices.DeleteFunc(addrs, func(a netip.Addr) bool { return !pyip.Contains(p, a) }))
}

func ipNetworks(ctx context.Context, c *modules.Call) (any, error)  { return networks(ctx, c, "inet") }
func ipNetworks6(ctx context.Context, c *modules.Call) (any, error) { return networks(ctx, c, "inet6") }

func networks(ctx context.Context, c *modules.Call, kind string) (any, error) {
	l, err := list(ctx, c)
	if err != nil {
		return nil, err
	}
	var nets []netip.Prefix
	for _, a := range l.addresses(kind, c.Value("interface")) {
		p, err := pyip.Network(a.ip+"/"+a.mask, false)
		if a.ip == "" || a.mask == "" || err != nil {
			continue
		}
		if c.Bool("include_loopback") || !p.Addr().IsLoopback() {
			nets = append(nets, p)
		}
	}
	if !c.Bool("verbose") {
		return sorted(nets), nil
	}
	out := map[string]any{}
	for _, p := range nets {
		out[pyip.NetworkText(p)] = map[string]any{
			"address": pyip.Text(p.Addr()), "netmask": pyip.Netmask(p), "num_addresses": pyip.Size(p), "prefixlen": int64(p.Bits()),
		}
	}
	return out, nil
}

// sorted returns networks as sorted texts without duplicates.
func sorted(nets []netip.Prefix) []any {
	sorting.Stable(nets, func(a, b netip.Prefix) int {
		if n := a.Addr().Compare(b.Addr()); n != 0 {
			return n
		}
		return a.Bits() - b.Bits()
	})
	out := []any{}
	for _, p := range slices.Compact(nets) {
		out = append(out, pyip.NetworkText(p))
	}
	return out
}

func subnets(ctx context.Context, c *modules.Call) (any, error) {
	return subnetsOf(ctx, c, "inet", c.Value("interfaces"))
}

func subnets6(ctx context.Context, c *modules.Call) (any, error) {
	return subnetsOf(ctx, c, "inet6", nil)
}

func subnetsOf(ctx context.Context, c *modules.Call, kind string, only any) (any, error) {
	l, err := list(ctx, c)
	if err != nil {
		return nil, err
	}
	var nets []netip.Prefix
	for _, name := range l.names {
		if chosen, ok := only.([]any); only != nil && (ok && !slices.Contains(chosen, any(name)) || !ok && only != name) {
			continue
		}
		for _, a := range of(l.data[name].(map[string]any), kind) {
			ip, err := parseAddr(a.ip)
			if err != nil {
				return nil, err
			}
			p, err := pyip.Network(a.ip+"/"+a.mask, false)
			if err != nil {
				return nil, &modules.PythonError{Type: "ValueError", Msg: strings.Replace(err.Error(), "network", "interface", 1)}
			}
			if !ip.IsLoopback() {
				nets = append(nets, p)
			}
		}
	}
	return sorted(nets), nil
}

func ifaceStartsWith(ctx context.Context, c *modules.Call) (any, error) {
	l, err := list(ctx, c)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, name := range l.names {
		addrs, _ := l.data[name].(map[string]any)["inet"].([]any)
		for _, x := range addrs {
			a := x.(map[string]any)
			if ip, _ := a["address"].(string); strings.HasPrefix(ip, pytext.Str(c.Value("cidr"))) {
				if label, ok := a["label"]; ok {
					out = append(out, label)
				} else {
					out = append(out, name)
				}
			}
		}
	}
	return out, nil
}
