//go:build !linux

package grains

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// listInterfaces uses the standard library, which does not distinguish secondary addresses.
func listInterfaces(*host) ([]iface, error) {
	links, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("cannot list network interfaces: %w", err)
	}
	list := make([]iface, 0, len(links))
	for _, l := range links {
		i := iface{name: l.Name, hardware: l.HardwareAddr.String(),
			hasHardware: len(l.HardwareAddr) > 0}
		addrs, err := l.Addrs()
		if err != nil {
			return nil, fmt.Errorf("cannot list the addresses of %s: %w", l.Name, err)
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err != nil {
				continue
			}
			if addr := p.Addr().Unmap().WithZone(""); addr.Is4() {
				i.v4 = append(i.v4, addr.String())
			} else {
				i.v6 = append(i.v6, addr.String())
			}
		}
		list = append(list, i)
	}
	return list, nil
}

// defaultGateway returns nothing: Salt determines it only with the Linux program ip.
func defaultGateway(context.Context, *host) (map[string]any, error) { return nil, nil }
