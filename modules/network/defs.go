package network

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "network".
var Module = &modules.Module{Name: "network", Doc: "Interfaces, addresses, routes and other hosts.", Docs: &docs, Available: available, Funcs: []modules.Def{
	{Name: "active_tcp", Run: activeTCP},
	{Name: "arp", Run: arp},
	{Name: "calc_net", Params: []modules.Param{{Name: "ip_addr"}, {Name: "netmask", Optional: true}}, Run: calcNet},
	{Name: "connect",
		Params: []modules.Param{{Name: "host"}, {Name: "port", Optional: true}}, Kwargs: "kwargs", Run: connect},
	{Name: "convert_cidr", Params: []modules.Param{{Name: "cidr"}}, Run: convertCIDR},
	{Name: "default_route", Params: []modules.Param{{Name: "family", Optional: true}}, Run: defaultRoute},
	{Name: "dig", Params: []modules.Param{{Name: "host"}}, Run: dig},
	{Name: "fqdns", Run: fqdns},
	{Name: "get_bufsize", Params: []modules.Param{{Name: "iface"}}, Run: getBufsize},
	{Name: "get_fqdn", Run: getFQDN},
	{Name: "get_hostname", Run: getHostname},
	{Name: "get_route", Params: []modules.Param{{Name: "ip"}}, Run: getRoute},
	{Name: "hw_addr", Params: []modules.Param{{Name: "iface"}}, Run: hwAddr},
	{Name: "hwaddr", Python: "hw_addr", Params: []modules.Param{{Name: "iface"}}, Run: hwAddr},
	{Name: "ifacestartswith", Params: []modules.Param{{Name: "cidr"}}, Run: ifaceStartsWith},
	{Name: "in_subnet", Params: []modules.Param{{Name: "cidr"}}, Run: inSubnet},
	{Name: "interface", Params: []modules.Param{{Name: "iface"}}, Run: interfaceAddrs},
	{Name: "interface_ip", Params: []modules.Param{{Name: "iface"}}, Run: interfaceIP},
	{Name: "interfaces", Run: interfaces},
	{Name: "ip_addrs",
		Params: []modules.Param{{Name: "interface", Optional: true}, {Name: "include_loopback", Default: false}, {Name: "cidr", Optional: true}, {Name: "type", Optional: true}}, Run: ipAddrs},
	{Name: "ip_addrs6", Params: []modules.Param{{Name: "interface", Optional: true}, {Name: "include_loopback", Default: false}, {Name: "cidr", Optional: true}}, Run: ipAddrs6},
	{Name: "ip_in_subnet", Params: []modules.Param{{Name: "ip_addr"}, {Name: "cidr"}}, Run: ipInSubnet},
	{Name: "ip_neighs", Run: ipNeighs},
	{Name: "ip_neighs6", Run: ipNeighs6},
	{Name: "ip_networks",
		Params: []modules.Param{{Name: "interface", Optional: true}, {Name: "include_loopback", Default: false}, {Name: "verbose", Default: false}}, Run: ipNetworks},
	{Name: "ip_networks6",
		Params: []modules.Param{{Name: "interface", Optional: true}, {Name: "include_loopback", Default: false}, {Name: "verbose", Default: false}}, Run: ipNetworks6},
	{Name: "ipaddrs", Python: "ip_addrs", Params: []modules.Param{{Name: "interface", Optional: true}, {Name: "include_loopback", Default: false}, {Name: "cidr", Optional: true}, {Name: "type", Optional: true}}, Run: ipAddrs},
	{Name: "ipaddrs6", Python: "ip_addrs6", Params: []modules.Param{{Name: "interface", Optional: true}, {Name: "include_loopback", Default: false}, {Name: "cidr", Optional: true}}, Run: ipAddrs6},
	{Name: "iphexval", Params: []modules.Param{{Name: "ip"}}, Run: ipHexval},
	{Name: "ipneighs", Python: "ip_neighs", Run: ipNeighs},
	{Name: "ipneighs6", Python: "ip_neighs6", Run: ipNeighs6},
	{Name: "is_loopback", Params: []modules.Param{{Name: "ip_addr"}}, Run: isLoopback},
	{Name: "is_private", Params: []modules.Param{{Name: "ip_addr"}}, Run: isPrivate},
	{Name: "mod_bufsize", Params: []modules.Param{{Name: "iface"}}, Args: "args", Kwargs: "kwargs", Run: modBufsize},
	{Name: "mod_hostname", Params: []modules.Param{{Name: "hostname"}}, Run: modHostname},
	{Name: "netstat", Run: netstat},
	{Name: "ping",
		Params: []modules.Param{{Name: "host"}, {Name: "timeout", Default: false}, {Name: "return_boolean", Default: false}}, Run: ping},
	{Name: "reverse_ip", Params: []modules.Param{{Name: "ip_addr"}}, Run: reverseIP},
	{Name: "routes", Params: []modules.Param{{Name: "family", Optional: true}}, Run: routes},
	{Name: "subnets", Params: []modules.Param{{Name: "interfaces", Optional: true}}, Run: subnets},
	{Name: "subnets6", Run: subnets6},
	{Name: "traceroute", Params: []modules.Param{{Name: "host"}}, Run: traceroute},
	{Name: "wol", Params: []modules.Param{{Name: "mac"}, {Name: "bcast", Default: "255.255.255.255"}, {Name: "destport", Default: int64(9)}}, Run: wake},
}}
