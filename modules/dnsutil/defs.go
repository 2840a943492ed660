package dnsutil

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "dnsutil".
var Module = &modules.Module{Name: "dnsutil", Doc: "Names, zones and the file of hosts.", Funcs: []modules.Def{
	{Name: "A", Doc: `Return the IPv4 addresses of a host.

nameserver
    The server to ask.`,
		Example: "salt '*' dnsutil.A example.org", Params: []modules.Param{{Name: "host"}, {Name: "nameserver", Optional: true}}, Run: lookupA},
	{Name: "AAAA", Doc: `Return the IPv6 addresses of a host.

nameserver
    The server to ask.`,
		Example: "salt '*' dnsutil.AAAA example.org", Params: []modules.Param{{Name: "host"}, {Name: "nameserver", Optional: true}}, Run: lookupAAAA},
	{Name: "MX", Doc: `Return the mail servers of a domain with their priorities.

resolve : False
    Their addresses rather than their names.

nameserver
    The server to ask.`,
		Example: "salt '*' dnsutil.MX example.org", Params: []modules.Param{{Name: "domain"}, {Name: "resolve", Default: false}, {Name: "nameserver", Optional: true}}, Run: lookupMX},
	{Name: "NS", Doc: `Return the name servers of a domain.

resolve : True
    Their addresses rather than their names.

nameserver
    The server to ask.`,
		Example: "salt '*' dnsutil.NS example.org", Params: []modules.Param{{Name: "domain"}, {Name: "resolve", Default: true}, {Name: "nameserver", Optional: true}}, Run: lookupNS},
	{Name: "SPF", Doc: `Return the addresses that may send mail of a domain.

nameserver
    The server to ask.`,
		Example: "salt '*' dnsutil.SPF example.org", Params: []modules.Param{{Name: "domain"}, {Name: "record", Default: "SPF"}, {Name: "nameserver", Optional: true}}, Run: lookupSPF},
	{Name: "check_ip", Doc: "Tell whether a text is an address.", Example: "salt '*' dnsutil.check_ip 127.0.0.1", Params: []modules.Param{{Name: "ip_addr"}}, Run: checkIP},
	{Name: "hosts_append", Doc: `Append a line to the file of hosts, with those names that the address does not have yet.

entries
    Names with commas between them.`,
		Example: "salt '*' dnsutil.hosts_append /etc/hosts 127.0.0.1 web,www", Params: []modules.Param{{Name: "hostsfile", Default: "/etc/hosts"}, {Name: "ip_addr", Optional: true}, {Name: "entries", Optional: true}}, Run: hostsAppend},
	{Name: "hosts_remove", Doc: `Remove names from the file of hosts.

entries
    Names with commas between them.`,
		Example: "salt '*' dnsutil.hosts_remove /etc/hosts web,www", Params: []modules.Param{{Name: "hostsfile", Default: "/etc/hosts"}, {Name: "entries", Optional: true}}, Run: hostsRemove},
	{Name: "parse_hosts", Doc: `Return the names of each address in the file of hosts.

hosts
    The text of such a file.`,
		Example: "salt '*' dnsutil.parse_hosts", Params: []modules.Param{{Name: "hostsfile", Default: "/etc/hosts"}, {Name: "hosts", Optional: true}}, Run: parseHosts},
	{Name: "parse_zone", Doc: `Return what a zone file says.

zone
    The text of such a file.`,
		Example: "salt '*' dnsutil.parse_zone /var/lib/named/example.org.zone", Params: []modules.Param{{Name: "zonefile", Optional: true}, {Name: "zone", Optional: true}}, Run: parseZone},
	{Name: "serial", Doc: `Return the serial number of a zone, which is kept in a grain.

update : False
    Make it larger.`,
		Example: "salt '*' dnsutil.serial example.org", Params: []modules.Param{{Name: "zone", Default: ""}, {Name: "update", Default: false}}, Run: serial},
}}
