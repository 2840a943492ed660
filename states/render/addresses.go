package render

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/jinja"
)

// parseAddress implements ipaddress.ip_address, and ip_interface if that fails. text is the address in Python's form;
// ok is false if v is neither.
func parseAddress(v any) (addr netip.Addr, text string, ok bool) {
	// Python takes an integer for an IPv4 address.
	if n, isInt := v.(int64); isInt && n >= 0 && n <= 1<<32-1 {
		addr = netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		return addr, addr.String(), true
	}
	// Text that is neither an address nor an address with a prefix is not an error here: the filters return None for
	// it.
	s, err := textArg(v)
	if err != nil {
		return addr, "", false
	}
	// Most callers have an address without a prefix.
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr, showAddress(addr), true
	}
	if p, err := parsePrefix(s); err == nil {
		return p.Addr(), showAddress(p.Addr()) + "/" + strconv.Itoa(p.Bits()), true
	}
	return addr, "", false
}

// showAddress returns an address as Python shows it.
func showAddress(a netip.Addr) string {
	if a.Is4In6() { // Python shows the last part in hexadecimal
		b := a.As16()
		return "::ffff:" + strconv.FormatUint(uint64(b[12])<<8|uint64(b[13]), 16) + ":" + strconv.FormatUint(uint64(b[14])<<8|uint64(b[15]), 16)
	}
	return a.String()
}

// parsePrefix reads an address with a prefix length or a mask. An address without either is a network of one address.
func parsePrefix(s string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p, nil
	}
	host, mask, ok := strings.Cut(s, "/")
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}, err
	}
	if !ok {
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	m, err := netip.ParseAddr(mask)
	if err != nil || !m.Is4() || !addr.Is4() {
		return netip.Prefix{}, errors.New("bad mask")
	}
	b := m.As4()
	// Size returns 0, 0 for a mask whose one bits are not contiguous.
	ones, bits := net.IPMask(b[:]).Size()
	if bits == 0 { // it may be a host mask, as in 10.0.0.0/0.0.0.255
		for i := range b {
			b[i] = ^b[i]
		}
		if ones, bits = net.IPMask(b[:]).Size(); bits == 0 {
			return netip.Prefix{}, errors.New("bad mask")
		}
	}
	return netip.PrefixFrom(addr, ones), nil
}

// inNetworks reports whether an address is in one of some networks.
func inNetworks(a netip.Addr, networks ...string) bool {
	return slices.ContainsFunc(networks, func(n string) bool {
		p, err := netip.ParsePrefix(n)
		return err == nil && p.Contains(a)
	})
}

// isPrivate implements ipaddress's is_private. The lists are those of Python 3.10 and early 3.11; later patch
// releases have exceptions within 192.0.0.0/24 and 2001::/23.
func isPrivate(a netip.Addr) bool {
	if a.Is4() {
		return inNetworks(a, "0.0.0.0/8", "10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/29", "192.0.0.170/31",
			"192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "255.255.255.255/32")
	}
	// An IPv4-mapped IPv6 address counts as the IPv4 address.
	if a.Is4In6() {
		return isPrivate(a.Unmap())
	}
	return inNetworks(a, "::1/128", "::/128", "100::/64", "2001::/23", "2001:2::/48", "2001:db8::/32", "2001:10::/28", "fc00::/7", "fe80::/10")
}

// isReserved implements ipaddress's is_reserved.
func isReserved(a netip.Addr) bool {
	if a.Is4() {
		return inNetworks(a, "240.0.0.0/4")
	}
	b := a.As16()[0]
	// everything but 2000::/3, fc00::/7, fe80::/9 and ff00::/8
	return b < 0x20 || b >= 0x40 && b < 0xfc || b == 0xfe && a.As16()[1] < 0x80
}

// addressOption reports whether an address has the property that an option of the filters asks for. An unknown
// option is ignored, as in Salt.
func addressOption(option string, a netip.Addr) bool {
	switch option {
	case "global", "public":
		return !isPrivate(a)
	case "private":
		return isPrivate(a)
	case "link-local", "linklocal", "ll", "link_local":
		return inNetworks(a, "169.254.0.0/16", "fe80::/10")
	case "loopback", "lo":
		return a.IsLoopback() && !a.Is4In6()
	case "multicast":
		return a.IsMulticast() && !a.Is4In6()
	case "reserved":
		return isReserved(a)
	case "site-local", "sl", "site_local":
		return inNetworks(a, "fec0::/10")
	case "unspecified":
		return a.IsUnspecified()
	}
	return true
}

// matchAddress implements salt.utils.network's _is_ipv: it returns the address as text if it has the version and
// matches all options, and nil otherwise.
func matchAddress(v any, version int, options string) any {
	a, text, ok := parseAddress(v)
	if !ok || a.Is4() != (version == 4) {
		return nil
	}
	// All options must match. Blanks around the commas are ignored.
	if options != "" {
		for o := range strings.SplitSeq(options, ",") {
			if !addressOption(strings.TrimSpace(o), a) {
				return nil
			}
		}
	}
	return text
}

// matchAddresses implements the filters ipv4, ipv6 and, with version 0, ipaddr. For a text it returns a text or nil,
// for a list the addresses that match.
func matchAddresses(v any, version int, options string) any {
	// For a list, ipaddr returns the matches of both versions.
	if version == 0 {
		x, y := matchAddresses(v, 4, options), matchAddresses(v, 6, options)
		a, okA := x.(*pyobj.List)
		b, okB := y.(*pyobj.List)
		if okA && okB {
			return pyobj.NewList(append(append([]any{}, a.Items...), b.Items...)...)
		}
		if x != nil {
			return x
		}
		return y
	}
	// Values of other types result in None, because Salt's isinstance checks do not cover them.
	switch v.(type) {
	case string, pyobj.Markup, []byte:
		return matchAddress(v, version, options)
	case *pyobj.List, pyobj.Tuple, *jinja.Iter:
		items, err := jinja.Collect(v)
		if err != nil {
			return nil
		}
		out := &pyobj.List{Items: []any{}}
		for _, x := range items {
			if text := matchAddress(x, version, options); text != nil {
				out.Items = append(out.Items, text)
			}
		}
		return out
	}
	return nil
}

// optionArg returns the options as text; None means no options.
func optionArg(v any) string {
	if v == nil {
		return ""
	}
	return pyobj.Str(v)
}

// addressFilter returns the filter on addresses with that name, or nil.
func addressFilter(name string) jinja.Filter {
	// The version is the last digit of the name.
	version := 0
	switch name {
	case "is_ipv4", "ipv4":
		version = 4
	case "is_ipv6", "ipv6":
		version = 6
	}
	switch name {
	case "is_ip", "is_ipv4", "is_ipv6":
		return func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
			args, err := a.Bind(name+"_filter", []string{"options"}, nil)
			if err != nil {
				return nil, err
			}
			o := optionArg(args[0])
			if version != 0 {
				return matchAddress(v, version, o) != nil, nil
			}
			return matchAddress(v, 4, o) != nil || matchAddress(v, 6, o) != nil, nil
		}
	case "ipv4", "ipv6", "ipaddr":
		return func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
			args, err := a.Bind(name, []string{"options"}, nil)
			if err != nil {
				return nil, err
			}
			return matchAddresses(v, version, optionArg(args[0])), nil
		}
	case "ip_host", "network_hosts", "network_size":
		return func(_ *jinja.Run, v any, a jinja.Args) (any, error) { return networkFilter(name, v, a) }
	case "filter_by_networks":
		return byNetworks
	case "ipwrap":
		// Only IPv6 addresses need brackets in a URL.
		return plainFilter(name, func(v any) (any, error) {
			wrap := func(x any) any {
				if a, _, ok := parseAddress(x); ok && !a.Is4() {
					return "[" + strings.Trim(pyobj.Str(x), "[]") + "]"
				}
				return x
			}
			switch v.(type) {
			case *pyobj.List, pyobj.Tuple:
				items, err := jinja.Collect(v)
				for i := range items {
					items[i] = wrap(items[i])
				}
				return &pyobj.List{Items: items}, err
			}
			return wrap(v), nil
		})
	}
	return nil
}

// networkFilter implements ip_host, network_hosts and network_size. It returns one value for a text, and a list for a
// list.
func networkFilter(name string, v any, a jinja.Args) (any, error) {
	args, err := a.Bind(name, []string{"options", "version"}, nil, nil)
	if err != nil {
		return nil, err
	}
	version, _ := args[1].(int64)
	found := matchAddresses(v, int(version), optionArg(args[0]))
	var texts []any
	// If nothing matches the result is None, as from Salt's _filter_ipaddr.
	switch x := found.(type) {
	case nil:
		return nil, nil
	case *pyobj.List:
		if texts = x.Items; len(texts) == 0 {
			return nil, nil
		}
	default:
		texts = []any{x}
	}
	out := &pyobj.List{}
	for _, t := range texts {
		p, err := parsePrefix(pyobj.Str(t))
		if err != nil {
			return nil, raiseAs("ValueError", pyobj.Repr(t)+" does not appear to be an IPv4 or IPv6 network")
		}
		switch name {
		case "ip_host":
			out.Items = append(out.Items, showAddress(p.Addr())+"/"+strconv.Itoa(p.Bits()))
		case "network_size":
			// The size of an IPv6 network exceeds 64 bits, hence Python's addition.
			size := any(int64(1))
			for range p.Addr().BitLen() - p.Bits() {
				if size, err = jinja.Add(size, size); err != nil {
					return nil, err
				}
			}
			out.Items = append(out.Items, size)
		default:
			hosts, err := hostsOf(p)
			if err != nil {
				return nil, err
			}
			out.Items = append(out.Items, hosts)
		}
	}
	// For a single address the result is a single value.
	switch v.(type) {
	case *pyobj.List, pyobj.Tuple, *jinja.Iter:
		return out, nil
	}
	return out.Items[0], nil
}

// maxHosts limits the filter network_hosts, because an IPv6 network can have any number of hosts.
const maxHosts = 1 << 20

// hostsOf returns the addresses of a network without the network's own address and, for IPv4, without the broadcast
// address.
func hostsOf(p netip.Prefix) (*pyobj.List, error) {
	p = p.Masked()
	free := p.Addr().BitLen() - p.Bits()
	if free > 20 {
		return nil, raiseAs("MemoryError", "a network of more than "+strconv.Itoa(maxHosts)+" addresses")
	}
	out := &pyobj.List{Items: []any{}}
	total := 1 << free
	at := p.Addr()
	for i := range total {
		network, broadcast := i == 0, i == total-1 && p.Addr().Is4()
		// In a network of one or two addresses all addresses are hosts.
		if total <= 2 || !network && !broadcast {
			out.Items = append(out.Items, showAddress(at))
		}
		at = at.Next()
	}
	return out, nil
}

// byNetworks implements filter_by_networks: it keeps the addresses that are in one of the networks. A dict is
// filtered by its values.
func byNetworks(_ *jinja.Run, v any, a jinja.Args) (any, error) {
	args, err := a.Bind("filter_by_networks", []string{"networks"})
	// Without networks the value is returned unchanged.
	if err != nil || args[0] == nil {
		return v, err
	}
	list, err := jinja.Collect(args[0])
	if err != nil {
		return nil, err
	}
	// Host bits are an error, as in Python's strict mode.
	var networks []netip.Prefix
	for _, x := range list {
		p, err := parsePrefix(pyobj.Str(x))
		if err != nil {
			return nil, raiseAs("ValueError", pyobj.Repr(x)+" does not appear to be an IPv4 or IPv6 network")
		}
		if p != p.Masked() {
			return nil, raiseAs("ValueError", pyobj.Str(x)+" has host bits set")
		}
		networks = append(networks, p)
	}
	filter := func(v any) (any, error) {
		ips, err := jinja.Collect(v)
		if err != nil {
			return nil, err
		}
		out := &pyobj.List{Items: []any{}}
		// An empty list of networks matches nothing.
		if len(networks) == 0 {
			return out, nil
		}
		for _, x := range ips {
			addr, err := netip.ParseAddr(pyobj.Str(x))
			if err != nil {
				return nil, raiseAs("ValueError", pyobj.Repr(x)+" does not appear to be an IPv4 or IPv6 address")
			}
			for _, n := range networks {
				if n.Contains(addr) {
					out.Items = append(out.Items, x)
				}
			}
		}
		return out, nil
	}
	// Salt checks for exactly these types.
	switch x := v.(type) {
	case *pyobj.Dict:
		out := &pyobj.Dict{}
		for k, ips := range x.All() {
			l, err := filter(ips)
			if err != nil {
				return nil, err
			}
			_ = out.Set(k, l)
		}
		return out, nil
	case *pyobj.List, pyobj.Tuple, string:
		return filter(v)
	}
	return nil, raiseAs("ValueError", "Do not know how to filter a <class '"+pyobj.TypeName(v)+"'>")
}
