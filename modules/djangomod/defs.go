package djangomod

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

const commonDoc = `settings_module
    The settings, as a Python module.
bin_env
    django-admin, or a virtualenv with django-admin.py in it. Without it the program is looked for in PATH.
database, pythonpath
    Given to django-admin.
env, runas
    The environment and the user of the command.
`

// Module is Salt's "django".
var Module = &modules.Module{Name: "django", Doc: "Commands of django-admin.", Funcs: []modules.Def{
	{Name: "collectstatic", Doc: "Collect the static files of all applications.\n\n" + commonDoc + `ignore
    A pattern of files to leave out.
no_post_process, dry_run, clear, link, no_default_ignore : False
    The options of that name.`,
		Example: "salt '*' django.collectstatic mysite.settings", Params: []modules.Param{
			{Name: "settings_module"}, {Name: "bin_env", Optional: true}, {Name: "no_post_process", Default: false}, {Name: "ignore", Optional: true}, {Name: "dry_run", Default: false}, {Name: "clear", Default: false}, {Name: "link", Default: false}, {Name: "no_default_ignore", Default: false}, {Name: "pythonpath", Optional: true}, {Name: "env", Optional: true}, {Name: "runas", Optional: true},
		}, Run: collectStatic},
	{Name: "command", Doc: "Run any command of django-admin. Further arguments are its options.\n\n" + commonDoc + `command
    The command.`,
		Example: "salt '*' django.command mysite.settings check deploy verbosity=2", Params: []modules.Param{
			{Name: "settings_module"}, {Name: "command"}, {Name: "bin_env", Optional: true}, {Name: "pythonpath", Optional: true}, {Name: "env", Optional: true}, {Name: "runas", Optional: true},
		}, Args: "args", Kwargs: "kwargs", Run: command},
	{Name: "createsuperuser", Doc: "Make a user that may do everything, without a password.\n\n" + commonDoc + `username, email
    The user.`,
		Example: "salt '*' django.createsuperuser mysite.settings user user@example.com", Params: []modules.Param{
			{Name: "settings_module"}, {Name: "username"}, {Name: "email"}, {Name: "bin_env", Optional: true}, {Name: "database", Optional: true}, {Name: "pythonpath", Optional: true}, {Name: "env", Optional: true}, {Name: "runas", Optional: true},
		}, Run: createSuperuser},
	{Name: "loaddata", Doc: "Load fixtures.\n\n" + commonDoc + `fixtures
    Their names, with commas between them.`,
		Example: "salt '*' django.loaddata mysite.settings users,groups", Params: []modules.Param{
			{Name: "settings_module"}, {Name: "fixtures"}, {Name: "bin_env", Optional: true}, {Name: "database", Optional: true}, {Name: "pythonpath", Optional: true}, {Name: "env", Optional: true},
		}, Run: loadData},
	{Name: "migrate", Doc: "Bring the database to the state of the migrations.\n\n" + commonDoc + `app_label, migration_name
    One application, and the migration to end with.
noinput : True
    Ask nothing.`,
		Example: "salt '*' django.migrate mysite.settings", Params: []modules.Param{
			{Name: "settings_module"}, {Name: "app_label", Optional: true}, {Name: "migration_name", Optional: true}, {Name: "bin_env", Optional: true}, {Name: "database", Optional: true}, {Name: "pythonpath", Optional: true}, {Name: "env", Optional: true}, {Name: "noinput", Default: true}, {Name: "runas", Optional: true},
		}, Run: migrate},
	{Name: "syncdb", Doc: "Run syncdb, which Django before 1.9 has.\n\n" + commonDoc + `migrate : False
    Run the migrations of South as well.
noinput : True
    Ask nothing.`,
		Example: "salt '*' django.syncdb mysite.settings", Params: []modules.Param{
			{Name: "settings_module"}, {Name: "bin_env", Optional: true}, {Name: "migrate", Default: false}, {Name: "database", Optional: true}, {Name: "pythonpath", Optional: true}, {Name: "env", Optional: true}, {Name: "noinput", Default: true}, {Name: "runas", Optional: true},
		}, Run: syncDB},
}}
