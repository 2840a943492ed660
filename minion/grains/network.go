package grains

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules/pyobj"
)

// iface is a network interface, with the fields that grains use.
type iface struct {
	name string
	// hardware is the link layer address; hasHardware is false if the interface has no such address.
	hardware    string
	hasHardware bool
	// v4 are the primary IPv4 addresses, secondary the other ones.
	v4, secondary, v6 []string
}

// addresses returns ip_interfaces, ip4_interfaces, ip6_interfaces and hwaddr_interfaces.
func addresses(_ context.Context, h *host) (map[string]any, error) {
	if !h.live {
		return nil, nil
	}
	list, err := h.interfaces()
	if err != nil {
		return nil, err
	}
	all, v4, v6, hw := &pyobj.Dict{}, &pyobj.Dict{}, &pyobj.Dict{}, &pyobj.Dict{}
	for _, i := range list {
		_ = all.Set(i.name, nested.Anys(slices.Concat(i.v4, i.v6, i.secondary)))
		_ = v4.Set(i.name, nested.Anys(slices.Concat(i.v4, i.secondary)))
		_ = v6.Set(i.name, nested.Anys(i.v6))
		if i.hasHardware {
			_ = hw.Set(i.name, i.hardware)
		}
	}
	return map[string]any{"ip_interfaces": all, "ip4_interfaces": v4, "ip6_interfaces": v6,
		"hwaddr_interfaces": hw}, nil
}

// addressList returns the distinct addresses of one family in numeric order.
func addressList(list []iface, v6 bool) []string {
	var found []netip.Addr
	for _, i := range list {
		texts := slices.Concat(i.v4, i.secondary)
		if v6 {
			texts = i.v6
		}
		for _, t := range texts {
			if a, err := netip.ParseAddr(t); err == nil {
				found = append(found, a.WithZone(""))
			}
		}
	}
	sorting.Stable(found, netip.Addr.Compare)
	found = slices.Compact(found)
	out := make([]string, len(found))
	for i, a := range found {
		out[i] = a.String()
	}
	return out
}

// dns returns dns, the content of resolv.conf (salt.utils.dns.parse_resolv).
func dns(_ context.Context, h *host) (map[string]any, error) {
	name := "/etc/resolv.conf"
	if h.exists("/run/systemd/resolve/resolv.conf") {
		name = "/run/systemd/resolve/resolv.conf"
	}
	text, err := h.read(name)
	if err != nil {
		return nil, nil //nolint:nilerr // without the file there is no such grain
	}
	return map[string]any{"dns": parseResolv(text)}, nil
}

func parseResolv(text string) *pyobj.Dict {
	var servers, v4, v6, search, sortlist, options []string
	domain := ""
	add := func(list *[]string, s string) {
		if !slices.Contains(*list, s) {
			*list = append(*list, s)
		}
	}
	for _, line := range lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		args := words[1:]
		if i := slices.IndexFunc(args,
			func(s string) bool { return s[0] == '#' || s[0] == ';' }); i >= 0 {
			args = args[:i]
		}
		directive := strings.ToLower(words[0])
		if directive == "search" {
			search = args
		}
		if directive == "sortlist" {
			for _, a := range args {
				if n, ok := sortEntry(a); ok {
					add(&sortlist, n)
				}
			}
		}
		if len(args) == 0 {
			continue
		}
		switch directive {
		case "nameserver":
			a, err := netip.ParseAddr(args[0])
			if err != nil {
				continue
			}
			add(&servers, a.String())
			if a.Is4() {
				add(&v4, a.String())
			} else {
				add(&v6, a.String())
			}
		case "domain":
			domain = args[0]
		case "options":
			// As in Salt, only the first option of a line counts.
			add(&options, args[0])
		}
	}
	return pyobj.NewDict(
		"nameservers", nested.Anys(servers), "ip4_nameservers", nested.Anys(v4), "ip6_nameservers",
		nested.Anys(v6),
		"sortlist", nested.Anys(sortlist), "domain", domain, "search", nested.Anys(search),
		"options", nested.Anys(options))
}

// sortEntry returns a network of a sortlist with its netmask. A network without a netmask gets the natural mask of
// the old address classes.
func sortEntry(s string) (string, bool) {
	text, mask, found := strings.Cut(s, "/")
	a, err := netip.ParseAddr(text)
	if err != nil {
		return "", false
	}
	bits := a.BitLen()
	if found {
		if bits = maskBits(mask, a); bits < 0 {
			return "", false
		}
	} else if a.Is4() {
		switch first := a.As4()[0]; {
		case first < 128:
			bits = 8
		case first < 192:
			bits = 16
		default:
			bits = 24
		}
	}
	p := netip.PrefixFrom(a, bits)
	if found && p.Masked().Addr() != a {
		return "", false
	}
	return p.Masked().Addr().String() + "/" + maskText(bits, a), true
}

// maskBits parses a prefix length or a netmask. It returns -1 if s is neither.
func maskBits(s string, a netip.Addr) int {
	if s != "" && len(s) <= 3 && strings.Trim(s, "0123456789") == "" {
		if n := int(cleanNumber(s)); n <= a.BitLen() {
			return n
		}
		return -1
	}
	for n := 0; n <= a.BitLen(); n++ {
		if s == maskText(n, a) {
			return n
		}
	}
	return -1
}

// maskText returns the netmask with n bits for the family of a.
func maskText(n int, a netip.Addr) string {
	ones := netip.AddrFrom16([16]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
		255, 255, 255, 255})
	if a.Is4() {
		ones = netip.AddrFrom4([4]byte{255, 255, 255, 255})
	}
	p, err := ones.Prefix(n)
	if err != nil {
		return ""
	}
	return p.Addr().String()
}
