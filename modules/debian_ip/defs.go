package debian_ip

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "ip" of Debian.
var Module = &modules.Module{Name: "debian_ip", Virtual: "ip", Doc: "Interfaces, routes and settings of the network in the files of Debian.", Available: available, Funcs: []modules.Def{
	{Name: "apply_network_settings", Doc: `Restart the network and set the name of the host.

require_reboot, apply_hostname, hostname
    Leave the network as it is until the next boot; set this name.`,
		Example: "salt '*' ip.apply_network_settings require_reboot=True", Kwargs: "settings", Run: applyNetworkSettings},
	{Name: "build_bond", Doc: `Write the options of a bond for modprobe and load the driver.

test
    Only return what would be written.`,
		Example: "salt '*' ip.build_bond bond0 mode=balance-alb", Params: []modules.Param{{Name: "iface"}}, Kwargs: "settings", Run: buildBond},
	{Name: "build_interface", Doc: `Write an interface into /etc/network/interfaces.

test
    Only return what would be written.`,
		Example: "salt '*' ip.build_interface eth0 eth True proto=dhcp", Params: []modules.Param{{Name: "iface"}, {Name: "iface_type"}, {Name: "enabled"}}, Kwargs: "settings", Run: buildInterface},
	{Name: "build_network_settings", Doc: `Write the settings of the whole host.

enabled, hostname, search
    Whether interfaces are set up, the name of the host, the domains to search.`,
		Example: "salt '*' ip.build_network_settings enabled=yes", Kwargs: "settings", Run: buildNetworkSettings},
	{Name: "build_routes", Doc: `Write the scripts that set the routes of an interface.

routes
    The routes, each with ipaddr, netmask, gateway, metric and name.`,
		Example: "salt '*' ip.build_routes eth0 routes='[{ipaddr: 10.0.0.0, netmask: 8, gateway: 10.1.0.1}]'", Params: []modules.Param{{Name: "iface"}}, Kwargs: "settings", Run: buildRoutes},
	{Name: "down", Doc: "Stop an interface.", Example: "salt '*' ip.down eth0 eth", Params: []modules.Param{{Name: "iface"}, {Name: "iface_type"}}, Run: down},
	{Name: "get_bond", Doc: "Return the options of a bond for modprobe.", Example: "salt '*' ip.get_bond bond0", Params: []modules.Param{{Name: "iface"}}, Run: getBond},
	{Name: "get_interface", Doc: "Return what /etc/network/interfaces says of an interface.", Example: "salt '*' ip.get_interface eth0", Params: []modules.Param{{Name: "iface"}}, Run: getInterface},
	{Name: "get_network_settings", Doc: "Return the settings of the whole host.", Example: "salt '*' ip.get_network_settings", Run: getNetworkSettings},
	{Name: "get_routes", Doc: "Return the scripts that set the routes of an interface.", Example: "salt '*' ip.get_routes eth0", Params: []modules.Param{{Name: "iface"}}, Run: getRoutes},
	{Name: "up", Doc: "Start an interface.", Example: "salt '*' ip.up eth0 eth", Params: []modules.Param{{Name: "iface"}, {Name: "iface_type"}}, Run: up},
}}
