package grains

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"unsafe"
)

// listInterfaces returns what "ip link show" and "ip addr show" would print, from the kernel.
func listInterfaces(h *host) ([]iface, error) {
	links, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("cannot list network interfaces: %w", err)
	}
	list := make([]iface, 0, len(links))
	index := make(map[uint32]int, len(links))
	for _, l := range links {
		i := iface{name: l.Name}
		// sysfs has the address in the form that ip prints, for every kind of link that has one.
		if text, err := h.read("/sys/class/net/" + l.Name + "/address"); err == nil {
			i.hardware = strings.TrimSpace(text)
		} else {
			i.hardware = l.HardwareAddr.String()
		}
		i.hasHardware = i.hardware != ""
		index[uint32(l.Index)] = len(list)
		list = append(list, i)
	}
	return list, readAddresses(list, index)
}

// readAddresses adds the addresses. It reads the netlink messages itself, because only they mark secondary
// addresses.
func readAddresses(list []iface, index map[uint32]int) error {
	messages, err := dump(syscall.RTM_GETADDR, syscall.AF_UNSPEC)
	if err != nil {
		return fmt.Errorf("cannot list network addresses: %w", err)
	}
	for i := range messages {
		m := &messages[i]
		if m.Header.Type != syscall.RTM_NEWADDR || len(m.Data) < syscall.SizeofIfAddrmsg {
			continue
		}
		head := (*syscall.IfAddrmsg)(unsafe.Pointer(&m.Data[0]))
		at, known := index[head.Index]
		if !known {
			continue
		}
		attrs, err := syscall.ParseNetlinkRouteAttr(m)
		if err != nil {
			return fmt.Errorf("cannot read a network address: %w", err)
		}
		var local, addr netip.Addr
		for _, a := range attrs {
			switch a.Attr.Type {
			case syscall.IFA_LOCAL:
				local, _ = netip.AddrFromSlice(a.Value)
			case syscall.IFA_ADDRESS:
				addr, _ = netip.AddrFromSlice(a.Value)
			}
		}
		if !local.IsValid() {
			local = addr
		}
		switch to := &list[at]; {
		case !local.IsValid():
		case head.Family == syscall.AF_INET6:
			to.v6 = append(to.v6, local.String())
		case head.Flags&syscall.IFA_F_SECONDARY != 0:
			to.secondary = append(to.secondary, local.String())
		case head.Family == syscall.AF_INET:
			to.v4 = append(to.v4, local.String())
		}
	}
	return nil
}

func dump(kind, family int) ([]syscall.NetlinkMessage, error) {
	b, err := syscall.NetlinkRIB(kind, family)
	if err != nil {
		return nil, err
	}
	return syscall.ParseNetlinkMessage(b)
}

// Route attributes that the standard library does not define.
const (
	rtaNextHopID = 30 // RTA_NH_ID
	rtaEncap     = 22 // RTA_ENCAP
	rtaVia       = 18 // RTA_VIA
)

// defaultGateway returns ip_gw, ip4_gw and ip6_gw: the address of the first default route in the main table, true for
// a route without an address, or false without a default route.
func defaultGateway(_ context.Context, h *host) (map[string]any, error) {
	if !h.live {
		return nil, nil
	}
	g := map[string]any{"ip_gw": false, "ip4_gw": false, "ip6_gw": false}
	for _, f := range []struct {
		key    string
		family int
	}{{"ip4_gw", syscall.AF_INET}, {"ip6_gw", syscall.AF_INET6}} {
		messages, err := dump(syscall.RTM_GETROUTE, f.family)
		if err != nil {
			return g, fmt.Errorf("cannot list routes: %w", err)
		}
		for i := range messages {
			if gateway, ok := defaultRoute(&messages[i], f.family); ok {
				g["ip_gw"], g[f.key] = true, gateway
				break
			}
		}
	}
	return g, nil
}

// defaultRoute parses a route. It returns false unless "ip route show" would print it as a line that begins
// with "default".
func defaultRoute(m *syscall.NetlinkMessage, family int) (any, bool) {
	if m.Header.Type != syscall.RTM_NEWROUTE || len(m.Data) < syscall.SizeofRtMsg {
		return nil, false
	}
	head := (*syscall.RtMsg)(unsafe.Pointer(&m.Data[0]))
	if int(head.Family) != family || head.Dst_len != 0 || head.Type != syscall.RTN_UNICAST ||
		head.Flags&syscall.RTM_F_CLONED != 0 {
		return nil, false
	}
	attrs, err := syscall.ParseNetlinkRouteAttr(m)
	if err != nil {
		return nil, false
	}
	table := uint32(head.Table)
	var gateway any = true
	plain := true
	for _, a := range attrs {
		switch a.Attr.Type {
		case syscall.RTA_TABLE:
			if len(a.Value) >= 4 {
				table = *(*uint32)(unsafe.Pointer(&a.Value[0]))
			}
		case syscall.RTA_GATEWAY:
			if addr, ok := netip.AddrFromSlice(a.Value); ok {
				gateway = addr.String()
			}
		case rtaVia:
			// ip prints "default via inet6 fe80::1", and Salt takes the word after via.
			gateway = "inet6"
		case rtaNextHopID, rtaEncap:
			plain = false
		}
	}
	if !plain {
		// ip prints something else between "default" and "via" in that case.
		gateway = true
	}
	return gateway, table == syscall.RT_TABLE_MAIN
}
