// Package peernet maps a peer's address to the network that limits per peer count it under.
package peernet

import "net/netip"

// IPv6Bits is the length of an IPv6 prefix that one host may own entirely.
const IPv6Bits = 64

// Of returns the network that a peer counts under: its IPv4 address, or the IPv6Bits prefix of its IPv6 address. It
// returns the zero Prefix for the zero address.
func Of(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = IPv6Bits
	}
	p, _ := a.Prefix(bits)
	return p
}
