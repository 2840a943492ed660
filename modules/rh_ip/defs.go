package rh_ip

import "github.com/brine-salt/brine/modules"

// Compatibility.
//
// ip.build_interface differs: the members of team_config and team_port_config are sorted.

func init() { modules.Register(Module) }

// Module is Salt's "ip" of Red Hat.
var Module = &modules.Module{Name: "rh_ip", Virtual: "ip", Doc: "Interfaces, routes and settings of the network in the files of Red Hat.", Available: available, Funcs: []modules.Def{
	{Name: "apply_network_settings", Doc: `Restart the network and set the name of the host.

require_reboot, apply_hostname, hostname
    Leave the network as it is until the next boot; set this name.`,
		Example: "salt '*' ip.apply_network_settings require_reboot=True", Kwargs: "settings", Run: applyNetworkSettings},
	{Name: "build_interface", Doc: `Write the script of an interface.

test
    Only return what would be written.`,
		Example: "salt '*' ip.build_interface eth0 eth True proto=dhcp", Params: []modules.Param{{Name: "iface"}, {Name: "iface_type"}, {Name: "enabled"}}, Kwargs: "settings", Run: buildInterface},
	{Name: "build_network_settings", Doc: `Write the settings of the whole host.

enabled, hostname, nozeroconf, gateway, gatewaydev, nisdomain
    Whether the network is set up, the name of the host, and so on.
retain_settings
    Keep the settings that are there and not given.
test
    Only return what would be written. It must be given.`,
		Example: "salt '*' ip.build_network_settings enabled=yes hostname=web1 test=False", Kwargs: "settings", Run: buildNetworkSettings},
	{Name: "build_routes", Doc: `Write the routes of an interface.

routes
    The routes, each with ipaddr, netmask, gateway, metric and name.
test
    Only return what would be written. It must be given.`,
		Example: "salt '*' ip.build_routes eth0 routes='[{ipaddr: 10.0.0.0, netmask: 8, gateway: 10.1.0.1}]' test=False", Params: []modules.Param{{Name: "iface"}}, Kwargs: "settings", Run: buildRoutes},
	{Name: "down", Doc: "Stop an interface.", Example: "salt '*' ip.down eth0 eth", Params: []modules.Param{{Name: "iface"}, {Name: "iface_type"}}, Run: down},
	{Name: "get_interface", Doc: "Return the script of an interface.", Example: "salt '*' ip.get_interface eth0", Params: []modules.Param{{Name: "iface"}}, Run: getInterface},
	{Name: "get_network_settings", Doc: "Return the settings of the whole host.", Example: "salt '*' ip.get_network_settings", Run: getNetworkSettings},
	{Name: "get_routes", Doc: "Return the routes of an interface.", Example: "salt '*' ip.get_routes eth0", Params: []modules.Param{{Name: "iface"}}, Run: getRoutes},
	{Name: "up", Doc: "Start an interface.", Example: "salt '*' ip.up eth0 eth", Params: []modules.Param{{Name: "iface"}, {Name: "iface_type"}}, Run: up},
}}
