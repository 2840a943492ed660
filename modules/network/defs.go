package network

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "network".
var Module = &modules.Module{Name: "network", Doc: "Interfaces, addresses, routes and other hosts.", Available: available, Funcs: []modules.Def{
	{Name: "active_tcp", Doc: "Return the TCP connections that are open, numbered.", Example: "salt '*' network.active_tcp", Run: activeTCP},
	{Name: "arp", Doc: "Return the table of neighbours, by hardware address.", Example: "salt '*' network.arp", Run: arp},
	{Name: "calc_net", Doc: "Return the network of an address and a mask.", Example: "salt '*' network.calc_net 172.17.0.5 255.255.255.240", Params: []modules.Param{{Name: "ip_addr"}, {Name: "netmask", Optional: true}}, Run: calcNet},
	{Name: "connect", Doc: `Tell whether a host takes connections on a port.

proto : tcp
    tcp or udp.
timeout : 5
    Seconds to wait.
family
    ipv4 or ipv6; either if not given.`,
		Example: "salt '*' network.connect example.org 80", Params: []modules.Param{{Name: "host"}, {Name: "port", Optional: true}}, Kwargs: "kwargs", Run: connect},
	{Name: "convert_cidr", Doc: "Return network, mask and broadcast address of a network.", Example: "salt '*' network.convert_cidr 172.31.0.0/16", Params: []modules.Param{{Name: "cidr"}}, Run: convertCIDR},
	{Name: "default_route", Doc: `Return the default routes.

family
    inet or inet6.`,
		Example: "salt '*' network.default_route", Params: []modules.Param{{Name: "family", Optional: true}}, Run: defaultRoute},
	{Name: "dig", Doc: "Return what dig tells of a host.", Example: "salt '*' network.dig example.org", Params: []modules.Param{{Name: "host"}}, Run: dig},
	{Name: "fqdns", Doc: "Return the full names of the host that its addresses lead to.", Example: "salt '*' network.fqdns", Run: fqdns},
	{Name: "get_bufsize", Doc: "Return the buffer sizes of an interface.", Example: "salt '*' network.get_bufsize eth0", Params: []modules.Param{{Name: "iface"}}, Run: getBufsize},
	{Name: "get_fqdn", Doc: "Return the full name of the host.", Example: "salt '*' network.get_fqdn", Run: getFQDN},
	{Name: "get_hostname", Doc: "Return the name of the host.", Example: "salt '*' network.get_hostname", Run: getHostname},
	{Name: "get_route", Doc: "Return the route to an address.", Example: "salt '*' network.get_route 10.10.10.10", Params: []modules.Param{{Name: "ip"}}, Run: getRoute},
	{Name: "hw_addr", Doc: "Return the hardware address of an interface.", Example: "salt '*' network.hw_addr eth0", Params: []modules.Param{{Name: "iface"}}, Run: hwAddr},
	{Name: "hwaddr", Python: "hw_addr", Doc: "Return the hardware address of an interface.", Example: "salt '*' network.hwaddr eth0", Params: []modules.Param{{Name: "iface"}}, Run: hwAddr},
	{Name: "ifacestartswith", Doc: "Return the interfaces with an address that begins with a text.", Example: "salt '*' network.ifacestartswith 10.0", Params: []modules.Param{{Name: "cidr"}}, Run: ifaceStartsWith},
	{Name: "in_subnet", Doc: "Tell whether the host has an address in a network.", Example: "salt '*' network.in_subnet 10.0.0.0/16", Params: []modules.Param{{Name: "cidr"}}, Run: inSubnet},
	{Name: "interface", Doc: "Return the IPv4 addresses of an interface.", Example: "salt '*' network.interface eth0", Params: []modules.Param{{Name: "iface"}}, Run: interfaceAddrs},
	{Name: "interface_ip", Doc: "Return the first IPv4 address of an interface.", Example: "salt '*' network.interface_ip eth0", Params: []modules.Param{{Name: "iface"}}, Run: interfaceIP},
	{Name: "interfaces", Doc: "Return all interfaces with their addresses.", Example: "salt '*' network.interfaces", Run: interfaces},
	{Name: "ip_addrs", Doc: `Return the IPv4 addresses of the host.

interface
    Only those of an interface.
include_loopback : False
    Also 127.0.0.1 and its like.
cidr
    Only those of a network.
type
    Only public or private ones.`,
		Example: "salt '*' network.ip_addrs", Params: []modules.Param{{Name: "interface", Optional: true}, {Name: "include_loopback", Default: false}, {Name: "cidr", Optional: true}, {Name: "type", Optional: true}}, Run: ipAddrs},
	{Name: "ip_addrs6", Doc: "Return the IPv6 addresses of the host, as network.ip_addrs does.", Example: "salt '*' network.ip_addrs6", Params: []modules.Param{{Name: "interface", Optional: true}, {Name: "include_loopback", Default: false}, {Name: "cidr", Optional: true}}, Run: ipAddrs6},
	{Name: "ip_in_subnet", Doc: "Tell whether an address is in a network.", Example: "salt '*' network.ip_in_subnet 172.17.0.4 172.16.0.0/12", Params: []modules.Param{{Name: "ip_addr"}, {Name: "cidr"}}, Run: ipInSubnet},
	{Name: "ip_neighs", Doc: "Return the IPv4 neighbours, by hardware address.", Example: "salt '*' network.ip_neighs", Run: ipNeighs},
	{Name: "ip_neighs6", Doc: "Return the IPv6 neighbours, by hardware address.", Example: "salt '*' network.ip_neighs6", Run: ipNeighs6},
	{Name: "ip_networks", Doc: `Return the IPv4 networks the host is in.

verbose : False
    Tell more of each.`,
		Example: "salt '*' network.ip_networks", Params: []modules.Param{{Name: "interface", Optional: true}, {Name: "include_loopback", Default: false}, {Name: "verbose", Default: false}}, Run: ipNetworks},
	{Name: "ip_networks6", Doc: `Return the IPv6 networks the host is in.

verbose : False
    Tell more of each.`,
		Example: "salt '*' network.ip_networks6", Params: []modules.Param{{Name: "interface", Optional: true}, {Name: "include_loopback", Default: false}, {Name: "verbose", Default: false}}, Run: ipNetworks6},
	{Name: "ipaddrs", Python: "ip_addrs", Doc: "Do what network.ip_addrs does.", Example: "salt '*' network.ipaddrs", Params: []modules.Param{{Name: "interface", Optional: true}, {Name: "include_loopback", Default: false}, {Name: "cidr", Optional: true}, {Name: "type", Optional: true}}, Run: ipAddrs},
	{Name: "ipaddrs6", Python: "ip_addrs6", Doc: "Do what network.ip_addrs6 does.", Example: "salt '*' network.ipaddrs6", Params: []modules.Param{{Name: "interface", Optional: true}, {Name: "include_loopback", Default: false}, {Name: "cidr", Optional: true}}, Run: ipAddrs6},
	{Name: "iphexval", Doc: "Return an IPv4 address in hexadecimal digits.", Example: "salt '*' network.iphexval 10.0.0.1", Params: []modules.Param{{Name: "ip"}}, Run: ipHexval},
	{Name: "ipneighs", Python: "ip_neighs", Doc: "Do what network.ip_neighs does.", Example: "salt '*' network.ipneighs", Run: ipNeighs},
	{Name: "ipneighs6", Python: "ip_neighs6", Doc: "Do what network.ip_neighs6 does.", Example: "salt '*' network.ipneighs6", Run: ipNeighs6},
	{Name: "is_loopback", Doc: "Tell whether an address is that of the host itself.", Example: "salt '*' network.is_loopback 127.0.0.1", Params: []modules.Param{{Name: "ip_addr"}}, Run: isLoopback},
	{Name: "is_private", Doc: "Tell whether an address is not for the public internet.", Example: "salt '*' network.is_private 10.0.0.3", Params: []modules.Param{{Name: "ip_addr"}}, Run: isPrivate},
	{Name: "mod_bufsize", Doc: "Change the buffer sizes of an interface: rx, tx, rx-mini, rx-jumbo.", Example: "salt '*' network.mod_bufsize eth0 rx=4096", Params: []modules.Param{{Name: "iface"}}, Args: "args", Kwargs: "kwargs", Run: modBufsize},
	{Name: "mod_hostname", Doc: "Change the name of the host, also in /etc/hosts and /etc/hostname.", Example: "salt '*' network.mod_hostname web.example.org", Params: []modules.Param{{Name: "hostname"}}, Run: modHostname},
	{Name: "netstat", Doc: "Return the open ports and connections.", Example: "salt '*' network.netstat", Run: netstat},
	{Name: "ping", Doc: `Send four packets to a host and return what ping printed.

timeout : False
    Seconds to wait.
return_boolean : False
    Only tell whether the host answered.`,
		Example: "salt '*' network.ping example.org", Params: []modules.Param{{Name: "host"}, {Name: "timeout", Default: false}, {Name: "return_boolean", Default: false}}, Run: ping},
	{Name: "reverse_ip", Doc: "Return the name under which an address is looked up backwards.", Example: "salt '*' network.reverse_ip 127.0.0.1", Params: []modules.Param{{Name: "ip_addr"}}, Run: reverseIP},
	{Name: "routes", Doc: `Return the routes.

family
    inet or inet6.`,
		Example: "salt '*' network.routes", Params: []modules.Param{{Name: "family", Optional: true}}, Run: routes},
	{Name: "subnets", Doc: `Return the IPv4 networks the host is in.

interfaces
    Only those of an interface or a list of them.`,
		Example: "salt '*' network.subnets", Params: []modules.Param{{Name: "interfaces", Optional: true}}, Run: subnets},
	{Name: "subnets6", Doc: "Return the IPv6 networks the host is in.", Example: "salt '*' network.subnets6", Run: subnets6},
	{Name: "traceroute", Doc: "Return the way of packets to a host.", Example: "salt '*' network.traceroute example.org", Params: []modules.Param{{Name: "host"}}, Run: traceroute},
	{Name: "wol", Doc: "Wake a host up by a packet to its hardware address.", Example: "salt '*' network.wol 08-00-27-13-69-77", Params: []modules.Param{{Name: "mac"}, {Name: "bcast", Default: "255.255.255.255"}, {Name: "destport", Default: int64(9)}}, Run: wake},
}}
