package minemod

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "mine": leaving data with the master for other minions.
var Module = &modules.Module{Name: "mine", Doc: "Leaving data with the master for other minions.", Funcs: []modules.Def{
	{Name: "delete", Doc: "Remove a function's data from the minion's mine.", Example: "salt '*' mine.delete 'network.interfaces'", Params: []modules.Param{{Name: "fun"}}, Run: remove},
	{Name: "flush", Doc: "Remove everything from the minion's mine.", Example: "salt '*' mine.flush", Run: flush},
	{Name: "get", Doc: `Return data from the mines of minions.

tgt
    The minions.
fun
    The function whose data is wanted; several as a list or separated by commas.
tgt_type
    How tgt names minions: glob, list, grain, compound and so on.
exclude_minion
    Leave out the minion that asks.`,
		Example: `salt '*' mine.get '*' network.interfaces
salt '*' mine.get 'G@os:Debian and S@192.0.2.0/24' network.ip_addrs compound`, Params: []modules.Param{
			{Name: "tgt"}, {Name: "fun"}, {Name: "tgt_type", Default: "glob", Type: modules.String},
			{Name: "exclude_minion", Default: false, Type: modules.Bool},
		}, Run: get},
	{Name: "get_docker", Doc: `Tell from the mines where the ports of Docker containers can be reached, sorted by image and port.

interfaces
    The interfaces of the hosts whose addresses count; all when not given.
cidrs
    The subnets that the addresses of the hosts must be in.
with_container_id
    Tell the containers' ids as well.`,
		Example: `salt '*' mine.get_docker
salt '*' mine.get_docker interfaces='["eth0", "eth1"]' cidrs='["198.51.100.0/24"]'`, Params: []modules.Param{
			{Name: "interfaces", Optional: true}, {Name: "cidrs", Optional: true},
			{Name: "with_container_id", Default: false, Type: modules.Bool},
		}, Run: getDocker},
	{Name: "send", Doc: `Call a function and put what it returns into the minion's mine. The answer is False if that was not possible.

name
    The name of the data in the mine, and of the function unless mine_function names another.
mine_function
    The function.
allow_tgt, allow_tgt_type
    The minions that may read the data.

Further arguments are those of the function.`,
		Example: `salt '*' mine.send network.ip_addrs interface=eth0
salt '*' mine.send eth0_ip_addrs mine_function=network.ip_addrs interface=eth0`, Params: []modules.Param{{Name: "name"}}, Args: "args", Kwargs: "kwargs", Run: send},
	{Name: "update", Doc: `Call the functions of the option mine_functions and put what they return into the minion's mine.

clear
    Remove what else is in the mine.
mine_functions
    Call these functions instead.`,
		Example: "salt '*' mine.update", Params: []modules.Param{
			{Name: "clear", Default: false, Type: modules.Bool}, {Name: "mine_functions", Optional: true},
		}, Run: update},
	{Name: "valid", Doc: "List the functions of the option mine_functions that are available.", Example: "salt '*' mine.valid", Run: valid},
}}
