package dig

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "dig".
var Module = &modules.Module{Name: "dig", Doc: "Looking names up with dig.", Available: available, Funcs: []modules.Def{
	{Name: "A", Doc: `Return the IPv4 addresses of a host.

` + nameserverDoc,
		Example: "salt '*' dig.A example.org", Params: []modules.Param{{Name: "host"}, nameserverParam}, Run: lookupA},
	{Name: "AAAA", Doc: `Return the IPv6 addresses of a host.

` + nameserverDoc,
		Example: "salt '*' dig.AAAA example.org", Params: []modules.Param{{Name: "host"}, nameserverParam}, Run: lookupAAAA},
	{Name: "CNAME", Doc: `Return the name that an alias stands for.

` + nameserverDoc,
		Example: "salt '*' dig.CNAME example.org", Params: []modules.Param{{Name: "host"}, nameserverParam}, Run: lookupCNAME},
	{Name: "MX", Doc: `Return the mail servers of a domain with their priorities.

resolve : False
    Their addresses rather than their names.

` + nameserverDoc,
		Example: "salt '*' dig.MX example.org", Params: []modules.Param{{Name: "domain"}, {Name: "resolve", Default: false}, nameserverParam}, Run: lookupMX},
	{Name: "NS", Doc: `Return the name servers of a domain.

resolve : True
    Their addresses rather than their names.

` + nameserverDoc,
		Example: "salt '*' dig.NS example.org", Params: []modules.Param{{Name: "domain"}, {Name: "resolve", Default: true}, nameserverParam}, Run: lookupNS},
	{Name: "PTR", Doc: `Return the names of an address.

` + nameserverDoc,
		Example: "salt '*' dig.PTR 192.0.2.1", Params: []modules.Param{{Name: "host"}, nameserverParam}, Run: lookupPTR},
	{Name: "SPF", Doc: `Return the addresses that may send mail of a domain.

record : SPF
    The kind of record to ask for first; then TXT.

` + nameserverDoc,
		Example: "salt '*' dig.SPF example.org", Params: []modules.Param{{Name: "domain"}, {Name: "record", Default: "SPF"}, nameserverParam}, Run: lookupSPF},
	{Name: "TXT", Doc: `Return the texts of a name.

` + nameserverDoc,
		Example: "salt '*' dig.TXT example.org", Params: []modules.Param{{Name: "host"}, nameserverParam}, Run: lookupTXT},
	{Name: "a", Python: "A", Doc: `Return the IPv4 addresses of a host.

` + nameserverDoc,
		Example: "salt '*' dig.a example.org", Params: []modules.Param{{Name: "host"}, nameserverParam}, Run: lookupA},
	{Name: "aaaa", Python: "AAAA", Doc: `Return the IPv6 addresses of a host.

` + nameserverDoc,
		Example: "salt '*' dig.aaaa example.org", Params: []modules.Param{{Name: "host"}, nameserverParam}, Run: lookupAAAA},
	{Name: "check_ip", Doc: "Tell whether a text is an address, also with a number of bits.", Example: "salt '*' dig.check_ip 192.0.2.1/24", Params: []modules.Param{{Name: "addr"}}, Run: checkIP},
	{Name: "cname", Python: "CNAME", Doc: `Return the name that an alias stands for.

` + nameserverDoc,
		Example: "salt '*' dig.cname example.org", Params: []modules.Param{{Name: "host"}, nameserverParam}, Run: lookupCNAME},
	{Name: "mx", Python: "MX", Doc: `Return the mail servers of a domain with their priorities.

resolve : False
    Their addresses rather than their names.

` + nameserverDoc,
		Example: "salt '*' dig.mx example.org", Params: []modules.Param{{Name: "domain"}, {Name: "resolve", Default: false}, nameserverParam}, Run: lookupMX},
	{Name: "ns", Python: "NS", Doc: `Return the name servers of a domain.

resolve : True
    Their addresses rather than their names.

` + nameserverDoc,
		Example: "salt '*' dig.ns example.org", Params: []modules.Param{{Name: "domain"}, {Name: "resolve", Default: true}, nameserverParam}, Run: lookupNS},
	{Name: "ptr", Python: "PTR", Doc: `Return the names of an address.

` + nameserverDoc,
		Example: "salt '*' dig.ptr example.org", Params: []modules.Param{{Name: "host"}, nameserverParam}, Run: lookupPTR},
	{Name: "spf", Python: "SPF", Doc: `Return the addresses that may send mail of a domain.

record : SPF
    The kind of record to ask for first; then TXT.

` + nameserverDoc,
		Example: "salt '*' dig.spf example.org", Params: []modules.Param{{Name: "domain"}, {Name: "record", Default: "SPF"}, nameserverParam}, Run: lookupSPF},
}}

// What the functions share: the documentation of parameters, and parameters that may be absent.
const (
	nameserverDoc = `nameserver
    The server to ask.
`
)

var (
	nameserverParam = modules.Param{Name: "nameserver", Optional: true}
)
