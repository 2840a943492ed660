package ansiblegate

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "ansible": modules and playbooks of the Ansible of this host. Each module of Ansible is a function too.
var Module = &modules.Module{
	Name: "ansiblegate", Virtual: "ansible", Doc: `Modules and playbooks of the Ansible of this host.`, Available: available, Discover: discover,
	Funcs: []modules.Def{
		{Name: "call", Doc: `Run a module of Ansible on this host and return its answer.

module
    The module. Further arguments are those of the module.

The option ansible_timeout is how many seconds the module may take (1200).`,
			Example: "salt '*' ansible.call ping data=foobar", Params: []modules.Param{{Name: "module"}}, Args: "args", Kwargs: "kwargs", Run: callModule},
		{Name: "discover_playbooks", Doc: `List the playbooks in directories of this host and in the directories right below them, with the
inventory beside each.

path
    The directory.
locations
    Several directories, instead of path.
playbook_extension
    What the names of playbooks end with, without the dot; yml when not given. Several, with their dots, in a list.
hosts_filename
    The name of inventories; hosts when not given.
syntax_check
    Leave out those that ansible-playbook --syntax-check refuses.`,
			Example: `salt '*' ansible.discover_playbooks path=/srv/playbooks/
salt '*' ansible.discover_playbooks locations='["/srv/playbooks/", "/srv/foobar"]'`, Params: []modules.Param{
				{Name: "path", Optional: true}, {Name: "locations", Optional: true}, {Name: "playbook_extension", Optional: true},
				{Name: "hosts_filename", Optional: true}, {Name: "syntax_check", Default: false, Type: modules.Bool},
			}, Run: discoverPlaybooks},
		{Name: "help", Doc: `Return the documentation of a module of Ansible.

module
    The module. Further arguments are the parts to return, such as doc, examples, return or metadata.`,
			Example: "salt '*' ansible.help ping", Params: []modules.Param{{Name: "module", Optional: true}}, Args: "args", Run: help},
		{Name: "list", Python: "list_", Doc: `List the functions of this module: Ansible's modules and a few of Salt's.

pattern
    A shell pattern of the names to list.`,
			Example: `salt '*' ansible.list
salt '*' ansible.list '*win*'`, Params: []modules.Param{{Name: "pattern", Optional: true}}, Run: list},
		{Name: "playbooks", Doc: `Run a playbook of this host, and return what Ansible did.

playbook
    The file, as ansible-playbook finds it from rundir. It is a file of this host; nothing is fetched.
rundir
    The directory to run ansible-playbook in.
check
    Only say what would change.
diff
    Return the differences of files.
extra_vars
    Variables: a map, or @ and the name of a file.
flush_cache
    Forget the facts of the hosts first.
forks
    How many hosts to work on at once.
inventory
    The inventory: a file, or hosts with commas.
limit
    A pattern of the hosts to work on.
list_hosts, list_tags, list_tasks
    Only list these.
module_path
    Directories of modules, with colons.
skip_tags, tags
    The tags of tasks to leave out, or to run alone.
start_at_task
    The name of the task to begin with.
syntax_check
    Only check the syntax.
playbook_kwargs
    Further options of ansible-playbook, as a map: True for one without a value.`,
			Example: "salt '*' ansible.playbooks playbook=/srv/playbooks/play.yml", Params: []modules.Param{
				{Name: "playbook"}, {Name: "rundir", Optional: true}, {Name: "check", Default: false, Type: modules.Bool},
				{Name: "diff", Default: false, Type: modules.Bool}, {Name: "extra_vars", Optional: true},
				{Name: "flush_cache", Default: false, Type: modules.Bool}, {Name: "forks", Default: int64(5), Type: modules.Int},
				{Name: "inventory", Optional: true}, {Name: "limit", Optional: true},
				{Name: "list_hosts", Default: false, Type: modules.Bool}, {Name: "list_tags", Default: false, Type: modules.Bool},
				{Name: "list_tasks", Default: false, Type: modules.Bool}, {Name: "module_path", Optional: true},
				{Name: "skip_tags", Optional: true}, {Name: "start_at_task", Optional: true},
				{Name: "syntax_check", Default: false, Type: modules.Bool}, {Name: "tags", Optional: true},
				{Name: "playbook_kwargs", Optional: true},
			}, Run: playbooks},
		{Name: "targets", Doc: `Return an inventory, as ansible-inventory lists it.

inventory
    The file of the inventory.
yaml
    Return the inventory as YAML text.
export
    Return what ansible-inventory --export does.
inventories
    Several files, as a list. The answer has an inventory for each.`,
			Example: `salt '*' ansible.targets
salt '*' ansible.targets inventory=/srv/inventory`, Params: []modules.Param{
				{Name: "inventory", Default: defaultInventory, Type: modules.String}, {Name: "yaml", Default: false, Type: modules.Bool},
				{Name: "export", Default: false, Type: modules.Bool}, {Name: "inventories", Optional: true, KeywordOnly: true},
			}, Run: targets},
	},
}
