package target

import (
	"fmt"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"
)

// cidrNode compares an address or a network with the grains ipv4 and ipv6 (salt/matchers/ipcidr_match.py).
type cidrNode struct {
	v6     bool
	single string // the canonical text of an address, "" for a network
	net    netip.Prefix
}

// compileCIDR compiles an address or a network.
func compileCIDR(s string) (node, error) {
	// Nothing longer is an address or a network, and the parsers below would read all of it.
	if len(s) > 200 {
		return nil, syntaxError("invalid address or network %s", quoted(s))
	}
	// A single address is compared as text, as Salt does.
	if a, err := netip.ParseAddr(s); err == nil {
		return cidrNode{v6: !a.Is4(), single: addrText(a)}, nil
	}
	p, err := parseNetwork(s)
	if err != nil {
		return nil, err
	}
	return cidrNode{v6: !p.Addr().Is4(), net: p}, nil
}

// addrText returns Python's text of an address. Unlike Go's, it never writes the last 32 bits of an IPv6 address
// with dots.
func addrText(a netip.Addr) string {
	if !a.Is4In6() {
		return a.String()
	}
	b := a.As16()
	s := fmt.Sprintf("::ffff:%x:%x", uint16(b[12])<<8|uint16(b[13]), uint16(b[14])<<8|uint16(b[15]))
	if a.Zone() != "" {
		s += "%" + a.Zone()
	}
	return s
}

// parseNetwork parses address/bits, address/netmask and address/hostmask. Host bits must be zero, as in Python's
// ip_network.
func parseNetwork(s string) (netip.Prefix, error) {
	bad := func() (netip.Prefix, error) {
		return netip.Prefix{}, syntaxError("invalid address or network %s", quoted(s))
	}
	left, right, found := strings.Cut(s, "/")
	if !found {
		return bad()
	}
	a, err := netip.ParseAddr(left)
	if err != nil {
		return bad()
	}
	a = a.WithZone("")
	n, ok := prefixLength(right, a.Is4())
	if !ok || n > a.BitLen() {
		return bad()
	}
	p := netip.PrefixFrom(a, n)
	if p.Masked() != p {
		return netip.Prefix{}, syntaxError("network %s has host bits set", quoted(s))
	}
	return p, nil
}

// prefixLength parses what follows the slash: a number of bits, or for IPv4 a netmask or a hostmask.
func prefixLength(s string, v4 bool) (int, bool) {
	if s != "" && strings.Trim(s, "0123456789") == "" {
		n, err := strconv.Atoi(s)
		return n, err == nil
	}
	if !v4 {
		return 0, false
	}
	m, err := netip.ParseAddr(s)
	if err != nil || !m.Is4() {
		return 0, false
	}
	b := m.As4()
	mask := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	// A netmask is ones and then zeros, a hostmask zeros and then ones.
	if ones := bits.LeadingZeros32(^mask); mask<<ones == 0 {
		return ones, true
	}
	if zeros := bits.LeadingZeros32(mask); ^mask<<zeros == 0 {
		return zeros, true
	}
	return 0, false
}

func (n cidrNode) eval(r *run) (answer, error) {
	var grains map[string]any
	if r.subject.Grains != nil {
		grains = r.subject.Grains()
	}
	// The master has no grains of this minion, so the answer is unknown.
	if grains == nil {
		if r.partial {
			return unknown, nil
		}
		return no, nil
	}
	proto := "ipv4"
	if n.v6 {
		proto = "ipv6"
	}
	// A minion without the grain has no address of this kind.
	addresses, ok := grains[proto]
	if !ok {
		return no, nil
	}
	if n.single != "" {
		return n.evalAddress(addresses)
	}
	return n.evalNetwork(proto, addresses)
}

// evalAddress compares the text of one address, as Python's "in" does.
func (n cidrNode) evalAddress(addresses any) (answer, error) {
	switch list := addresses.(type) {
	case []any:
		for _, a := range list {
			if a == any(n.single) {
				return yes, nil
			}
		}
	case []string:
		for _, a := range list {
			if a == n.single {
				return yes, nil
			}
		}
	case string:
		// Python's "in" on a string looks for a substring.
		return answerOf(strings.Contains(list, n.single)), nil
	case map[string]any:
		_, ok := list[n.single]
		return answerOf(ok), nil
	}
	return no, nil
}

// evalNetwork looks for an address within the network.
func (n cidrNode) evalNetwork(proto string, addresses any) (answer, error) {
	var list []any
	switch v := addresses.(type) {
	case []any:
		list = v
	case []string:
		for _, s := range v {
			list = append(list, s)
		}
	default:
		list = []any{v}
	}
	// As in Salt, one malformed address makes the whole target fail.
	for _, v := range list {
		s, ok := v.(string)
		a, err := netip.ParseAddr(s)
		if !ok || err != nil {
			return no, syntaxError("grain %s holds %s, which is not an address", proto, quoted(Str(v)))
		}
		// In Go an IPv6 network contains no IPv4-mapped address; in Python it does.
		if n.net.Addr().Is4() == a.Is4() && contains(n.net, a) {
			return yes, nil
		}
	}
	return no, nil
}

// contains reports whether an address is in a network, without regard to its zone.
func contains(p netip.Prefix, a netip.Addr) bool {
	masked, err := a.WithZone("").Prefix(p.Bits())
	return err == nil && masked.Addr() == p.Addr()
}
