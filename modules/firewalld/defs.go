package firewalld

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "firewalld".
var Module = &modules.Module{Name: "firewalld", Doc: "Zones and services of the firewall daemon firewalld.", Available: available, Funcs: []modules.Def{
	{Name: "add_interface", Doc: `Bind an interface to a zone.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.add_interface work eth0", Params: []modules.Param{{Name: "zone"}, {Name: "interface"}, {Name: "permanent", Default: true}}, Run: addInterface},
	{Name: "add_masquerade", Doc: `Let a zone masquerade.

zone
    The zone; without it the default zone.
permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.add_masquerade dmz", Params: []modules.Param{{Name: "zone", Optional: true}, {Name: "permanent", Default: true}}, Run: addMasquerade},
	{Name: "add_port", Doc: `Open a port in a zone.

permanent : True
    The permanent configuration rather than the running one.
force_masquerade : False
    Make the zone masquerade too.`,
		Example: "salt '*' firewalld.add_port internal 443/tcp", Params: []modules.Param{{Name: "zone"}, {Name: "port"}, {Name: "permanent", Default: true}, {Name: "force_masquerade", Default: false}}, Run: addPort},
	{Name: "add_port_fwd", Doc: `Forward a port.

permanent : True
    The permanent configuration rather than the running one.
force_masquerade : False
    Make the zone masquerade too.`,
		Example: "salt '*' firewalld.add_port_fwd public 80 8080 tcp", Params: []modules.Param{{Name: "zone"}, {Name: "src"}, {Name: "dest"}, {Name: "proto", Default: "tcp"}, {Name: "dstaddr", Default: ""}, {Name: "permanent", Default: true}, {Name: "force_masquerade", Default: false}}, Run: addPortFwd},
	{Name: "add_rich_rule", Doc: `Add a rule in the rich language to a zone.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: `salt '*' firewalld.add_rich_rule public 'rule service name="ftp" accept'`, Params: []modules.Param{{Name: "zone"}, {Name: "rule"}, {Name: "permanent", Default: true}}, Run: addRichRule},
	{Name: "add_service", Doc: `Let a service through a zone.

zone
    The zone; without it the default zone.
permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.add_service ssh dmz", Params: []modules.Param{{Name: "service"}, {Name: "zone", Optional: true}, {Name: "permanent", Default: true}}, Run: addService},
	{Name: "add_service_port", Doc: "Add a port to a service.", Example: "salt '*' firewalld.add_service_port web 80/tcp", Params: []modules.Param{{Name: "service"}, {Name: "port"}}, Run: addServicePort},
	{Name: "add_service_protocol", Doc: "Add a protocol to a service.", Example: "salt '*' firewalld.add_service_protocol vpn esp", Params: []modules.Param{{Name: "service"}, {Name: "protocol"}}, Run: addServiceProtocol},
	{Name: "add_source", Doc: `Bind a source of packets to a zone.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.add_source internal 192.168.1.0/24", Params: []modules.Param{{Name: "zone"}, {Name: "source"}, {Name: "permanent", Default: true}}, Run: addSource},
	{Name: "allow_icmp", Doc: `Let a kind of ICMP message through a zone again.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.allow_icmp public echo-reply", Params: []modules.Param{{Name: "zone"}, {Name: "icmp"}, {Name: "permanent", Default: true}}, Run: allowICMP},
	{Name: "block_icmp", Doc: `Block a kind of ICMP message in a zone.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.block_icmp public echo-reply", Params: []modules.Param{{Name: "zone"}, {Name: "icmp"}, {Name: "permanent", Default: true}}, Run: blockICMP},
	{Name: "default_zone", Doc: "Return the zone of connections that have none of their own.", Example: "salt '*' firewalld.default_zone", Run: defaultZone},
	{Name: "delete_service", Doc: `Delete a service.

restart : True
    Reload the firewall afterwards.`,
		Example: "salt '*' firewalld.delete_service web", Params: []modules.Param{{Name: "name"}, {Name: "restart", Default: true}}, Run: deleteService},
	{Name: "delete_zone", Doc: `Delete a zone.

restart : True
    Reload the firewall afterwards.`,
		Example: "salt '*' firewalld.delete_zone mine", Params: []modules.Param{{Name: "zone"}, {Name: "restart", Default: true}}, Run: deleteZone},
	{Name: "get_icmp_types", Doc: `Return the kinds of ICMP messages that the firewall knows.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.get_icmp_types", Params: []modules.Param{{Name: "permanent", Default: true}}, Run: getICMPTypes},
	{Name: "get_interfaces", Doc: `Return the interfaces of a zone.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.get_interfaces public", Params: []modules.Param{{Name: "zone"}, {Name: "permanent", Default: true}}, Run: getInterfaces},
	{Name: "get_masquerade", Doc: `Tell whether a zone masquerades.

zone
    The zone; without it the default zone.
permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.get_masquerade external", Params: []modules.Param{{Name: "zone", Optional: true}, {Name: "permanent", Default: true}}, Run: getMasquerade},
	{Name: "get_rich_rules", Doc: `Return the rich rules of a zone.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.get_rich_rules public", Params: []modules.Param{{Name: "zone"}, {Name: "permanent", Default: true}}, Run: getRichRules},
	{Name: "get_service_ports", Doc: "Return the ports of a service.", Example: "salt '*' firewalld.get_service_ports ssh", Params: []modules.Param{{Name: "service"}}, Run: getServicePorts},
	{Name: "get_service_protocols", Doc: "Return the protocols of a service.", Example: "salt '*' firewalld.get_service_protocols vpn", Params: []modules.Param{{Name: "service"}}, Run: getServiceProtocols},
	{Name: "get_services", Doc: `Return the services that the firewall knows.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.get_services", Params: []modules.Param{{Name: "permanent", Default: true}}, Run: getServices},
	{Name: "get_sources", Doc: `Return the sources that are bound to a zone.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.get_sources internal", Params: []modules.Param{{Name: "zone"}, {Name: "permanent", Default: true}}, Run: getSources},
	{Name: "get_zones", Doc: `Return the names of the zones.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.get_zones", Params: []modules.Param{{Name: "permanent", Default: true}}, Run: getZones},
	{Name: "list_all", Doc: `Return all about a zone.

zone
    The zone; without it the default zone.
permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.list_all public", Params: []modules.Param{{Name: "zone", Optional: true}, {Name: "permanent", Default: true}}, Run: listAll},
	{Name: "list_icmp_block", Doc: `Return the kinds of ICMP messages that a zone blocks.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.list_icmp_block public", Params: []modules.Param{{Name: "zone"}, {Name: "permanent", Default: true}}, Run: listICMPBlock},
	{Name: "list_port_fwd", Doc: `Return the forwarded ports of a zone.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.list_port_fwd public", Params: []modules.Param{{Name: "zone"}, {Name: "permanent", Default: true}}, Run: listPortFwd},
	{Name: "list_ports", Doc: `Return the open ports of a zone.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.list_ports public", Params: []modules.Param{{Name: "zone"}, {Name: "permanent", Default: true}}, Run: listPorts},
	{Name: "list_services", Doc: `Return the services that a zone lets through.

zone
    The zone; without it the default zone.
permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.list_services public", Params: []modules.Param{{Name: "zone", Optional: true}, {Name: "permanent", Default: true}}, Run: listServices},
	{Name: "list_zones", Doc: `Return all about all zones.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.list_zones", Params: []modules.Param{{Name: "permanent", Default: true}}, Run: listZones},
	{Name: "make_permanent", Doc: "Make the running configuration the permanent one.", Example: "salt '*' firewalld.make_permanent", Run: makePermanent},
	{Name: "new_service", Doc: `Make a service.

restart : True
    Reload the firewall afterwards.`,
		Example: "salt '*' firewalld.new_service web", Params: []modules.Param{{Name: "name"}, {Name: "restart", Default: true}}, Run: newService},
	{Name: "new_zone", Doc: `Make a zone.

restart : True
    Reload the firewall afterwards.`,
		Example: "salt '*' firewalld.new_zone mine", Params: []modules.Param{{Name: "zone"}, {Name: "restart", Default: true}}, Run: newZone},
	{Name: "reload_rules", Doc: "Make the permanent configuration the running one, keeping connections.", Example: "salt '*' firewalld.reload_rules", Run: reloadRules},
	{Name: "remove_interface", Doc: `Take an interface out of a zone.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.remove_interface work eth0", Params: []modules.Param{{Name: "zone"}, {Name: "interface"}, {Name: "permanent", Default: true}}, Run: removeInterface},
	{Name: "remove_masquerade", Doc: `Let a zone masquerade no longer.

zone
    The zone; without it the default zone.
permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.remove_masquerade dmz", Params: []modules.Param{{Name: "zone", Optional: true}, {Name: "permanent", Default: true}}, Run: removeMasquerade},
	{Name: "remove_port", Doc: `Close a port in a zone.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.remove_port internal 443/tcp", Params: []modules.Param{{Name: "zone"}, {Name: "port"}, {Name: "permanent", Default: true}}, Run: removePort},
	{Name: "remove_port_fwd", Doc: `Forward a port no longer.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.remove_port_fwd public 80 8080 tcp", Params: []modules.Param{{Name: "zone"}, {Name: "src"}, {Name: "dest"}, {Name: "proto", Default: "tcp"}, {Name: "dstaddr", Default: ""}, {Name: "permanent", Default: true}}, Run: removePortFwd},
	{Name: "remove_rich_rule", Doc: `Take a rich rule out of a zone.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: `salt '*' firewalld.remove_rich_rule public 'rule service name="ftp" accept'`, Params: []modules.Param{{Name: "zone"}, {Name: "rule"}, {Name: "permanent", Default: true}}, Run: removeRichRule},
	{Name: "remove_service", Doc: `Let a service through a zone no longer.

zone
    The zone; without it the default zone.
permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.remove_service ssh dmz", Params: []modules.Param{{Name: "service"}, {Name: "zone", Optional: true}, {Name: "permanent", Default: true}}, Run: removeService},
	{Name: "remove_service_port", Doc: "Take a port from a service.", Example: "salt '*' firewalld.remove_service_port web 80/tcp", Params: []modules.Param{{Name: "service"}, {Name: "port"}}, Run: removeServicePort},
	{Name: "remove_service_protocol", Doc: "Take a protocol from a service.", Example: "salt '*' firewalld.remove_service_protocol vpn esp", Params: []modules.Param{{Name: "service"}, {Name: "protocol"}}, Run: removeServiceProtocol},
	{Name: "remove_source", Doc: `Take a source of packets out of a zone.

permanent : True
    The permanent configuration rather than the running one.`,
		Example: "salt '*' firewalld.remove_source internal 192.168.1.0/24", Params: []modules.Param{{Name: "zone"}, {Name: "source"}, {Name: "permanent", Default: true}}, Run: removeSource},
	{Name: "set_default_zone", Doc: "Set the zone of connections that have none of their own.", Example: "salt '*' firewalld.set_default_zone home", Params: []modules.Param{{Name: "zone"}}, Run: setDefaultZone},
	{Name: "version", Doc: "Return the version of firewalld.", Example: "salt '*' firewalld.version", Run: version},
}}
