package selinux

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "selinux".
var Module = &modules.Module{Name: "selinux", Doc: "SELinux: mode, booleans, modules, labels of files and ports.", Available: available, Funcs: []modules.Def{
	{Name: "fcontext_add_policy", Doc: `Add the labels of files to the policy, or change them. The result is as of cmd.run_all.

name
    The path, or an expression for paths.
filetype
    a: all files, f: regular ones, d, c, b, s, l, p: as find calls them.
sel_type, sel_user, sel_level
    The parts of the label.`,
		Example: "salt '*' selinux.fcontext_add_policy '/srv/web(/.*)?' sel_type=httpd_sys_content_t", Params: []modules.Param{{Name: "name"}, {Name: "filetype", Optional: true}, {Name: "sel_type", Optional: true}, {Name: "sel_user", Optional: true}, {Name: "sel_level", Optional: true}}, Run: fcontextAdd},
	{Name: "fcontext_apply_policy", Doc: `Give files the labels of the policy.

recursive : False
    And everything below.`,
		Example: "salt '*' selinux.fcontext_apply_policy /srv/web recursive=True", Params: []modules.Param{{Name: "name"}, {Name: "recursive", Default: false}}, Run: fcontextApply},
	{Name: "fcontext_delete_policy", Doc: "Remove the labels of files from the policy.", Example: "salt '*' selinux.fcontext_delete_policy '/srv/web(/.*)?'", Params: []modules.Param{{Name: "name"}, {Name: "filetype", Optional: true}, {Name: "sel_type", Optional: true}, {Name: "sel_user", Optional: true}, {Name: "sel_level", Optional: true}}, Run: fcontextDelete},
	{Name: "fcontext_get_policy", Doc: "Return the labels of files in the policy, None if there are none.", Example: "salt '*' selinux.fcontext_get_policy '/srv/web(/.*)?'", Params: []modules.Param{{Name: "name"}, {Name: "filetype", Optional: true}, {Name: "sel_type", Optional: true}, {Name: "sel_user", Optional: true}, {Name: "sel_level", Optional: true}}, Run: fcontextGet},
	{Name: "fcontext_policy_is_applied", Doc: `Return what restorecon would change, an empty text if nothing.

recursive : False
    And everything below.`,
		Example: "salt '*' selinux.fcontext_policy_is_applied /srv/web", Params: []modules.Param{{Name: "name"}, {Name: "recursive", Default: false}}, Run: fcontextApplied},
	{Name: "filetype_id_to_string", Doc: "Return the name of a type of files that is called by a letter.", Example: "salt '*' selinux.filetype_id_to_string f", Params: []modules.Param{{Name: "filetype", Default: "a"}}, Run: filetypeName},
	{Name: "getconfig", Doc: "Return the mode that the configuration asks for.", Example: "salt '*' selinux.getconfig", Run: getconfig},
	{Name: "getenforce", Doc: "Return the mode: Enforcing, Permissive or Disabled.", Example: "salt '*' selinux.getenforce", Run: getenforce},
	{Name: "getsebool", Doc: "Return what is known of a boolean.", Example: "salt '*' selinux.getsebool virt_use_usb", Params: []modules.Param{{Name: "boolean"}}, Run: getsebool},
	{Name: "getsemod", Doc: "Return what is known of a module of the policy.", Example: "salt '*' selinux.getsemod mysql", Params: []modules.Param{{Name: "module"}}, Run: getsemod},
	{Name: "install_semod", Doc: "Install a module of the policy from a file, also salt://.", Example: "salt '*' selinux.install_semod salt://mymod.pp", Params: []modules.Param{{Name: "module_path"}}, Run: installSemod},
	{Name: "list_sebool", Doc: "Return all booleans.", Example: "salt '*' selinux.list_sebool", Run: listSebool},
	{Name: "list_semod", Doc: "Return all modules of the policy.", Example: "salt '*' selinux.list_semod", Run: listSemod},
	{Name: "port_add_policy", Doc: `Add a label of ports to the policy. The result is as of cmd.run_all.

name
    tcp/8080 or udp/1000-2000; else protocol and port say so.
sel_type, sel_range
    The parts of the label.`,
		Example: "salt '*' selinux.port_add_policy tcp/8080 http_port_t", Params: []modules.Param{{Name: "name"}, {Name: "sel_type", Optional: true}, {Name: "protocol", Optional: true}, {Name: "port", Optional: true}, {Name: "sel_range", Optional: true}}, Run: portAdd},
	{Name: "port_delete_policy", Doc: "Remove a label of ports from the policy.", Example: "salt '*' selinux.port_delete_policy tcp/8080", Params: []modules.Param{{Name: "name"}, {Name: "protocol", Optional: true}, {Name: "port", Optional: true}}, Run: portDelete},
	{Name: "port_get_policy", Doc: "Return the label of ports in the policy, None if there is none.", Example: "salt '*' selinux.port_get_policy tcp/80", Params: []modules.Param{{Name: "name"}, {Name: "sel_type", Optional: true}, {Name: "protocol", Optional: true}, {Name: "port", Optional: true}}, Run: portGet},
	{Name: "port_modify_policy", Doc: "Change a label of ports in the policy.", Example: "salt '*' selinux.port_modify_policy tcp/8080 http_port_t", Params: []modules.Param{{Name: "name"}, {Name: "sel_type", Optional: true}, {Name: "protocol", Optional: true}, {Name: "port", Optional: true}, {Name: "sel_range", Optional: true}}, Run: portModify},
	{Name: "remove_semod", Doc: "Remove a module of the policy.", Example: "salt '*' selinux.remove_semod mymod", Params: []modules.Param{{Name: "module"}}, Run: removeSemod},
	{Name: "selinux_fs_path", Doc: "Return where the file system of SELinux is mounted.", Example: "salt '*' selinux.selinux_fs_path", Run: fsPath},
	{Name: "setenforce", Doc: "Set the mode, now and for every boot: enforcing, permissive or disabled.", Example: "salt '*' selinux.setenforce enforcing", Params: []modules.Param{{Name: "mode"}}, Run: setenforce},
	{Name: "setsebool", Doc: `Set a boolean.

persist : False
    For every boot, too.`,
		Example: "salt '*' selinux.setsebool virt_use_usb off", Params: []modules.Param{{Name: "boolean"}, {Name: "value"}, {Name: "persist", Default: false}}, Run: setsebool},
	{Name: "setsebools", Doc: `Set several booleans, given as a map.

persist : False
    For every boot, too.`,
		Example: "salt '*' selinux.setsebools '{virt_use_usb: on, squid_use_tproxy: off}'", Params: []modules.Param{{Name: "pairs"}, {Name: "persist", Default: false}}, Run: setsebools},
	{Name: "setsemod", Doc: "Enable or disable a module of the policy.", Example: "salt '*' selinux.setsemod nagios disabled", Params: []modules.Param{{Name: "module"}, {Name: "state"}}, Run: setsemod},
}}
