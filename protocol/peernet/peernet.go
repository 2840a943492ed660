// Package peernet says which network an address counts for where peers have a share each.
package peernet

import "net/netip"

// IPv6Bits is the length of the prefix that one host may have to itself.
const IPv6Bits = 64

// Of returns the network that a peer counts for: its address, of IPv6 the prefix of IPv6Bits. A peer without an address has the zero Prefix.
func Of(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = IPv6Bits
	}
	p, _ := a.Prefix(bits)
	return p
}
