package hadoop

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

const pathDoc = `path
    A file or directory of HDFS.
`

// Module is Salt's "hadoop".
var Module = &modules.Module{Name: "hadoop", Doc: "Hadoop's command line.", Available: available, Funcs: []modules.Def{
	{Name: "dfs", Doc: `Run a command on the distributed file system and return its output.

command
    The command, without the hyphen. Further arguments are the command's.`,
		Example: "salt '*' hadoop.dfs ls /", Params: []modules.Param{{Name: "command", Optional: true}}, Args: "args", Run: dfs},
	{Name: "dfs_absent", Doc: "Report whether a file or directory is missing on the distributed file system.\n\n" + pathDoc,
		Example: "salt '*' hadoop.dfs_absent /some_random_file", Params: []modules.Param{{Name: "path"}}, Run: dfsAbsent},
	{Name: "dfs_present", Doc: "Report whether a file or directory exists on the distributed file system.\n\n" + pathDoc,
		Example: "salt '*' hadoop.dfs_present /some_random_file", Params: []modules.Param{{Name: "path"}}, Run: dfsPresent},
	{Name: "dfsadmin_report", Doc: `Return the report of the distributed file system.

arg
    Only these data nodes: live, dead or decommissioning.`,
		Example: "salt '*' hadoop.dfsadmin_report live", Params: []modules.Param{{Name: "arg", Optional: true}}, Run: dfsadminReport},
	{Name: "namenode_format", Doc: `Format a name node and return what the program printed. It asks no questions.

force
    Format a name node that has data, too.`,
		Example: "salt '*' hadoop.namenode_format force=True", Params: []modules.Param{{Name: "force", Optional: true}}, Run: namenodeFormat},
	{Name: "version", Doc: `Return the version of Hadoop.`,
		Example: "salt '*' hadoop.version", Run: version},
}}
