package beacons

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

const common = `
test
    Only say what would be done.
timeout
    How many seconds to wait for the minion's answer.
`

// Module is Salt's "beacons": what the minion watches on its host.
var Module = &modules.Module{Name: "beacons", Doc: "What the minion watches on its host.", Funcs: []modules.Def{
	{Name: "add", Doc: `Add a beacon.

name
    The beacon's name, which is its kind unless beacon_data has a beacon_module.
beacon_data
    Its configuration, a list.
` + common,
		Example: `salt '*' beacons.add ps "[{'processes': {'salt-master': 'stopped', 'apache2': 'stopped'}}]"`, Params: []modules.Param{{Name: "name"}, {Name: "beacon_data"}}, Kwargs: "kwargs", Run: add},
	{Name: "delete", Doc: `Delete a beacon. Those of the pillar stay.
` + common,
		Example: "salt '*' beacons.delete ps", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: remove},
	{Name: "disable", Doc: `Disable all beacons.
` + common,
		Example: "salt '*' beacons.disable", Kwargs: "kwargs", Run: disable},
	{Name: "disable_beacon", Doc: `Disable a beacon.
` + common,
		Example: "salt '*' beacons.disable_beacon ps", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: disableBeacon},
	{Name: "enable", Doc: `Enable all beacons.
` + common,
		Example: "salt '*' beacons.enable", Kwargs: "kwargs", Run: enable},
	{Name: "enable_beacon", Doc: `Enable a beacon.
` + common,
		Example: "salt '*' beacons.enable_beacon ps", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: enableBeacon},
	{Name: "list", Python: "list_", Doc: `List the configured beacons.

return_yaml
    Answer with YAML text; else with a map.
include_pillar, include_opts
    Those of the pillar, those of the configuration.`,
		Example: "salt '*' beacons.list", Params: []modules.Param{{Name: "return_yaml", Default: true}, {Name: "include_pillar", Default: true}, {Name: "include_opts", Default: true}},
		Kwargs: "kwargs", Run: list},
	{Name: "list_available", Doc: `List the kinds of beacons that this host can have.

return_yaml
    Answer with YAML text; else with a list.`,
		Example: "salt '*' beacons.list_available", Params: []modules.Param{{Name: "return_yaml", Default: true}}, Kwargs: "kwargs", Run: listAvailable},
	{Name: "modify", Doc: `Replace the configuration of a beacon.
` + common,
		Example: `salt '*' beacons.modify ps "[{'salt-master': 'stopped'}, {'apache2': 'stopped'}]"`, Params: []modules.Param{{Name: "name"}, {Name: "beacon_data"}}, Kwargs: "kwargs", Run: modify},
	{Name: "reset", Doc: `Forget all beacons that are not of the pillar.
` + common,
		Example: "salt '*' beacons.reset", Kwargs: "kwargs", Run: reset},
	{Name: "save", Doc: "Save the beacons that are not of the pillar for the next start of the minion, in beacons.conf.", Example: "salt '*' beacons.save", Kwargs: "kwargs", Run: save},
}}
