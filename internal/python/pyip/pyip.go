// Package pyip parses and formats IP addresses and networks as Python's module ipaddress does, with its errors.
package pyip

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"net/netip"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// Addr parses an address.
func Addr(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return a, fmt.Errorf("%s does not appear to be an IPv4 or IPv6 address", pytext.Repr(text))
	}
	return a, nil
}

// Text formats an address as Python does, which never uses dotted notation in IPv6.
func Text(a netip.Addr) string {
	if a.Is4In6() {
		b := a.As16()
		return fmt.Sprintf("::ffff:%x:%x", binary.BigEndian.Uint16(b[12:]), binary.BigEndian.Uint16(b[14:]))
	}
	return a.String()
}

// Network parses a network: an address, a slash, and the number of bits or a mask or, for IPv4, a mask's complement.
// If strict is set, the address must not have bits outside of the mask.
func Network(text string, strict bool) (netip.Prefix, error) {
	addr, mask, slash := strings.Cut(text, "/")
	a, err := netip.ParseAddr(addr)
	bits, ok := a.BitLen(), true
	if slash && err == nil {
		bits, ok = maskBits(mask, a)
	}
	if err != nil || !ok || a.Zone() != "" {
		return netip.Prefix{}, fmt.Errorf("%s does not appear to be an IPv4 or IPv6 network", pytext.Repr(text))
	}
	p := netip.PrefixFrom(a, bits)
	if strict && p.Masked().Addr() != a {
		return p, fmt.Errorf("%s has host bits set", text)
	}
	return p.Masked(), nil
}

// maskBits returns the prefix length of a mask.
func maskBits(mask string, a netip.Addr) (int, bool) {
	if mask != "" && strings.Trim(mask, "0123456789") == "" {
		n, err := strconv.Atoi(mask)
		return n, err == nil && n <= a.BitLen()
	}
	m, err := netip.ParseAddr(mask)
	if err != nil || !m.Is4() || !a.Is4() {
		return 0, false
	}
	b := m.As4()
	v := binary.BigEndian.Uint32(b[:])
	for n := range 33 {
		if uint32(^uint64(0)<<(32-n)) == v {
			return n, true
		}
	}
	for n := range 33 {
		if ^uint32(^uint64(0)<<(32-n)) == v {
			return n, true
		}
	}
	return 0, false
}

// NetworkText formats a network as Python does.
func NetworkText(p netip.Prefix) string { return Text(p.Addr()) + "/" + strconv.Itoa(p.Bits()) }

// Netmask returns the mask of a network.
func Netmask(p netip.Prefix) string { return Text(fill(p, false)) }

// Broadcast returns the last address of a network.
func Broadcast(p netip.Prefix) string { return Text(fill(p, true)) }

// Size returns the number of addresses in a network. It is a float64 if it does not fit into an int64.
func Size(p netip.Prefix) any {
	n := new(big.Int).Lsh(big.NewInt(1), uint(p.Addr().BitLen()-p.Bits()))
	if n.IsInt64() {
		return n.Int64()
	}
	f, _ := new(big.Float).SetInt(n).Float64()
	return f
}

// fill returns the last address of a network if host is set, and its mask otherwise.
func fill(p netip.Prefix, host bool) netip.Addr {
	b := p.Addr().AsSlice()
	for i := range b {
		mask := byte(0)
		for bit := range 8 {
			if i*8+bit < p.Bits() {
				mask |= 0x80 >> bit
			}
		}
		if host {
			b[i] |= ^mask
		} else {
			b[i] = mask
		}
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// private lists the private networks of ipaddress in Python 3.11.
const private = "0.0.0.0/8 10.0.0.0/8 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/29 192.0.0.170/31 192.0.2.0/24 " +
	"192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 255.255.255.255/32 ::1/128 ::/128 " +
	"::ffff:0:0/96 100::/64 2001::/23 2001:2::/48 2001:db8::/32 2001:10::/28 fc00::/7 fe80::/10"

// IsPrivate reports whether an address is in a private network.
func IsPrivate(a netip.Addr) bool {
	for _, text := range strings.Fields(private) {
		if p, err := netip.ParsePrefix(text); err == nil && contains(p, a) {
			return true
		}
	}
	return false
}

func contains(p netip.Prefix, a netip.Addr) bool {
	if a.Is4In6() && !p.Addr().Is4() {
		return p.Bits() <= 96 && p.Masked().Addr().As16() == netip.PrefixFrom(netip.AddrFrom16(a.As16()), p.Bits()).Masked().Addr().As16()
	}
	return p.Contains(a.WithZone(""))
}

// Contains reports whether an address is in a network.
func Contains(p netip.Prefix, a netip.Addr) bool {
	return p.Addr().Is4() == a.Is4() && contains(p, a)
}

// Reverse returns the DNS name for the reverse look-up of an address.
func Reverse(a netip.Addr) string {
	var parts []string
	if a.Is4() {
		b := a.As4()
		for i := range b {
			parts = append(parts, strconv.Itoa(int(b[3-i])))
		}
		return strings.Join(parts, ".") + ".in-addr.arpa"
	}
	b := a.As16()
	for i := range b {
		x := b[15-i]
		parts = append(parts, fmt.Sprintf("%x.%x", x&15, x>>4))
	}
	return strings.Join(parts, ".") + ".ip6.arpa"
}
