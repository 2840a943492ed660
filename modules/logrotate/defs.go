package logrotate

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "logrotate": the configuration of logrotate(8).
var Module = &modules.Module{Name: "logrotate", Doc: "The configuration of logrotate.", Available: available, Funcs: []modules.Def{
	{Name: "get", Doc: `Return a directive or a block, False if there is none.

key
    The directive, or the log file whose block it is.
value
    A directive of the block.
conf_file
    The file.`,
		Example: "salt '*' logrotate.get /var/log/wtmp rotate", Params: []modules.Param{{Name: "key"}, {Name: "value", Optional: true}, {Name: "conf_file", Default: "/etc/logrotate.conf"}}, Run: get},
	{Name: "set", Python: "set_", Doc: `Set a directive, of the file or of a block.

key
    The directive, or the log file whose block it is.
value
    The value, or a directive of the block.
setting
    The value of the directive of the block; one that is false removes the directive.
conf_file
    The file.`,
		Example: `salt '*' logrotate.set rotate 2
salt '*' logrotate.set /var/log/wtmp rotate 2`, Params: []modules.Param{{Name: "key"}, {Name: "value"}, {Name: "setting", Optional: true}, {Name: "conf_file", Default: "/etc/logrotate.conf"}}, Run: set},
	{Name: "show_conf", Doc: `Show the configuration with the files that it includes.

conf_file
    The file.`,
		Example: "salt '*' logrotate.show_conf", Params: []modules.Param{{Name: "conf_file", Default: "/etc/logrotate.conf"}}, Run: showConf},
}}
