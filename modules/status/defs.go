package status

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "status": how the host is doing.
var Module = &modules.Module{Name: "status", Doc: "How the host is doing.", Available: available, Funcs: []modules.Def{
	{Name: "all_status", Doc: "Return what most functions of this module tell, in one map. This is a lot.", Example: "salt '*' status.all_status", Run: allStatus},
	{Name: "cpuinfo", Doc: "Return what the kernel tells about the processors.", Example: "salt '*' status.cpuinfo", Run: cpuinfo},
	{Name: "cpustats", Doc: "Return how the processors have spent their time.", Example: "salt '*' status.cpustats", Run: cpustats},
	{Name: "custom", Doc: `Return a choice of values as the configuration asks for: an option "status.cpustats.custom" lists the keys of
status.cpustats that are wanted, and so on.`,
		Example: "salt '*' status.custom", Run: custom},
	{Name: "diskstats", Doc: "Return the input and output of the disks.", Example: "salt '*' status.diskstats", Run: diskstats},
	{Name: "diskusage", Doc: `Return how many bytes file systems have in total, and how many are available.

Arguments are paths, or shell patterns for types of file systems; without any, all mounted file systems are told.`,
		Example: `salt '*' status.diskusage
salt '*' status.diskusage / /tmp
salt '*' status.diskusage ext?`, Args: "args", Run: diskusage},
	{Name: "loadavg", Doc: "Return the load averages of the last one, five and fifteen minutes.", Example: "salt '*' status.loadavg", Run: loadavg},
	{Name: "master", Doc: `Tell whether the minion is connected to a master, None if that cannot be resolved.

master
    The master's name or address.
connected
    Taken for compatibility.`,
		Example: "salt '*' status.master master=salt", Params: []modules.Param{
			{Name: "master", Optional: true}, {Name: "connected", Default: true, Type: modules.Bool},
		}, Run: master},
	{Name: "meminfo", Doc: "Return what the kernel tells about the memory.", Example: "salt '*' status.meminfo", Run: meminfo},
	{Name: "netdev", Doc: "Return what the network interfaces have sent and received.", Example: "salt '*' status.netdev", Run: netdev},
	{Name: "netstats", Doc: "Return the counters of the network protocols.", Example: "salt '*' status.netstats", Run: netstats},
	{Name: "nproc", Doc: "Return the number of processors.", Example: "salt '*' status.nproc", Run: nproc},
	{Name: "pid", Doc: "Return the ids of the processes whose line in the process list matches a regular expression, one per line.", Example: "salt '*' status.pid salt", Params: []modules.Param{{Name: "sig"}}, Run: pid},
	{Name: "ping_master", Doc: "Tell whether a master takes connections on its request port.", Example: "salt '*' status.ping_master localhost", Params: []modules.Param{{Name: "master"}}, Run: pingMaster},
	{Name: "procs", Doc: "Return all processes: by id, the user and the command.", Example: "salt '*' status.procs", Run: procs},
	{Name: "proxy_reconnect", Doc: `Return False: this minion has no proxies.

proxy_name
    The proxy.
opts
    Taken for compatibility.`,
		Example: "salt '*' status.proxy_reconnect rest_sample", Params: []modules.Param{{Name: "proxy_name"}, {Name: "opts", Optional: true}}, Run: proxyReconnect},
	{Name: "time", Python: "time_", Doc: `Return the minion's local time.

format
    Python's strftime directives.`,
		Example: `salt '*' status.time
salt '*' status.time '%s'`, Params: []modules.Param{{Name: "format", Default: "%A, %d. %B %Y %I:%M%p", Type: modules.String}}, Run: timeFn},
	{Name: "uptime", Doc: "Return since when the system is up, and how many users are logged in.", Example: "salt '*' status.uptime", Run: uptime},
	{Name: "version", Doc: "Return the version of the kernel.", Example: "salt '*' status.version", Run: version},
	{Name: "vmstats", Doc: "Return the counters of the virtual memory.", Example: "salt '*' status.vmstats", Run: vmstats},
	{Name: "w", Doc: "List the users that are logged in.", Example: "salt '*' status.w", Run: w},
}}
