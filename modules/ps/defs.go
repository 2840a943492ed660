package ps

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "ps".
var Module = &modules.Module{Name: "ps", Doc: "Processes and what the host is doing, as Python's psutil tells it.", Available: available, Funcs: []modules.Def{
	{Name: "boot_time", Doc: `Return when the host was booted, in seconds since 1970.

time_format
    A format of strftime to show it in.`,
		Example: "salt '*' ps.boot_time", Params: []modules.Param{{Name: "time_format", Optional: true}}, Run: bootTime},
	{Name: "cpu_percent", Doc: `Return how busy the processors are.

interval : 0.1
    Seconds to measure.
per_cpu : False
    Each processor for itself.`,
		Example: "salt '*' ps.cpu_percent", Params: []modules.Param{{Name: "interval", Default: 0.1}, {Name: "per_cpu", Default: false}}, Run: cpuPercent},
	{Name: "cpu_times", Doc: `Return how the processors have spent their time.

per_cpu : False
    Each processor for itself.`,
		Example: "salt '*' ps.cpu_times", Params: []modules.Param{{Name: "per_cpu", Default: false}}, Run: cpuTimes},
	{Name: "disk_io_counters", Doc: "Return the input and output of the disks, or of one.", Example: "salt '*' ps.disk_io_counters device=sda1", Params: []modules.Param{{Name: "device", Optional: true}}, Run: diskIO},
	{Name: "disk_partition_usage", Doc: `Return the partitions and how full they are.

all : False
    Also those without a device.`,
		Example: "salt '*' ps.disk_partition_usage", Params: []modules.Param{{Name: "all", Default: false}}, Run: partitionUsage},
	{Name: "disk_partitions", Doc: `Return the partitions.

all : False
    Also those without a device.`,
		Example: "salt '*' ps.disk_partitions", Params: []modules.Param{{Name: "all", Default: false}}, Run: partitions},
	{Name: "disk_usage", Doc: "Return how full the file system of a path is.", Example: "salt '*' ps.disk_usage /home", Params: []modules.Param{{Name: "path"}}, Run: diskUsage},
	{Name: "get_pid_list", Doc: "Return the numbers of all processes.", Example: "salt '*' ps.get_pid_list", Run: pidList},
	{Name: "get_users", Doc: "Return who is logged in.", Example: "salt '*' ps.get_users", Run: users},
	{Name: "kill_pid", Doc: "Send a signal to a process and tell whether there is one.", Example: "salt '*' ps.kill_pid 2000 signal=9", Params: []modules.Param{{Name: "pid"}, {Name: "signal", Default: int64(15)}}, Run: killPID},
	{Name: "lsof", Doc: "Return what lsof tells of programs whose name begins with a text.", Example: "salt '*' ps.lsof apache2", Params: []modules.Param{{Name: "name"}}, Run: lsof},
	{Name: "netstat", Doc: "Return the lines of netstat that have a text in them.", Example: "salt '*' ps.netstat apache2", Params: []modules.Param{{Name: "name"}}, Run: netstat},
	{Name: "network_io_counters", Doc: "Return the traffic of the interfaces, or of one.", Example: "salt '*' ps.network_io_counters interface=eth0", Params: []modules.Param{{Name: "interface", Optional: true}}, Run: networkIO},
	{Name: "num_cpus", Doc: "Return the number of processors.", Example: "salt '*' ps.num_cpus", Run: numCPUs},
	{Name: "pgrep", Doc: `Return the numbers of the processes with a text in their names.

user
    Only those of a user.
full : False
    Look at the whole command line.
pattern_is_regex : False
    The text is a regular expression.`,
		Example: "salt '*' ps.pgrep httpd", Params: []modules.Param{{Name: "pattern"}, {Name: "user", Optional: true}, {Name: "full", Default: false}, {Name: "pattern_is_regex", Default: false}}, Run: pgrep},
	{Name: "pkill", Doc: `Send a signal to the processes with a text in their names.

user
    Only those of a user.
signal : 15
    The signal.
full : False
    Look at the whole command line.`,
		Example: "salt '*' ps.pkill httpd signal=9", Params: []modules.Param{{Name: "pattern"}, {Name: "user", Optional: true}, {Name: "signal", Default: int64(15)}, {Name: "full", Default: false}}, Run: pkill},
	{Name: "proc_info", Doc: `Return what is known of a process.

attrs
    The names of what is wanted; everything if not given.`,
		Example: "salt '*' ps.proc_info 2322 attrs=[pid,name]", Params: []modules.Param{{Name: "pid"}, {Name: "attrs", Optional: true}}, Run: procInfo},
	{Name: "psaux", Doc: "Return the lines of ps aux that a regular expression fits.", Example: "salt '*' ps.psaux www-data.+apache2", Params: []modules.Param{{Name: "name"}}, Run: psaux},
	{Name: "ss", Doc: "Return the lines of ss that have a text in them.", Example: "salt '*' ps.ss apache2", Params: []modules.Param{{Name: "name"}}, Run: ss},
	{Name: "status", Doc: "Return the processes with a status, such as running or zombie.", Example: "salt '*' ps.status STATUS", Params: []modules.Param{{Name: "status"}}, Run: status},
	{Name: "swap_memory", Doc: "Return how much swap is used.", Example: "salt '*' ps.swap_memory", Run: swapMemory},
	{Name: "top", Doc: `Return the processes that use the processors most.

num_processes : 5
    How many.
interval : 3
    Seconds to measure.`,
		Example: "salt '*' ps.top", Params: []modules.Param{{Name: "num_processes", Default: int64(5)}, {Name: "interval", Default: int64(3)}}, Run: top},
	{Name: "total_physical_memory", Doc: "Return how much memory the host has, in bytes.", Example: "salt '*' ps.total_physical_memory", Run: totalMemory},
	{Name: "virtual_memory", Doc: "Return how much memory is used.", Example: "salt '*' ps.virtual_memory", Run: virtualMemory},
}}
