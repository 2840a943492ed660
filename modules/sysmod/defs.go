package sysmod

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "sys": what the minion can do, and how to call it.
var Module = &modules.Module{Name: "sysmod", Virtual: "sys", Doc: "What the minion can do, and how to call it.", Funcs: []modules.Def{
	{Name: "argspec", Doc: `Tell which arguments functions take.

module
    A module, a function, or a shell pattern of functions.`,
		Example: `salt '*' sys.argspec pkg.install
salt '*' sys.argspec 'pkg.*'`, Params: []modules.Param{{Name: "module", Default: "", Type: modules.String}}, Run: argspec},
	{Name: "doc", Doc: "Return the documentation of functions: of all of them, or of modules, functions and shell patterns of functions.",
		Example: `salt '*' sys.doc
salt '*' sys.doc sys
salt '*' sys.doc 'sys.list_*'`, Args: "args", Run: doc},
	{Name: "list_functions", Doc: "List functions: all of them, or those of modules and those that match shell patterns.",
		Example: `salt '*' sys.list_functions
salt '*' sys.list_functions sys user
salt '*' sys.list_functions 'sys.list_*'`, Args: "args", Kwargs: "kwargs", Run: listFunctions},
	{Name: "list_modules", Doc: "List modules: all of them, or those named and those with functions that match a shell pattern.",
		Example: `salt '*' sys.list_modules
salt '*' sys.list_modules 's*'`, Args: "args", Run: listModules},
	{Name: "list_renderers", Doc: "List the renderers, all or those that match shell patterns.", Example: "salt '*' sys.list_renderers", Args: "args", Run: listRenderers},
	{Name: "list_returner_functions", Doc: "List the functions of returners, all or those of the returners and patterns named.", Example: "salt '*' sys.list_returner_functions", Args: "args", Kwargs: "kwargs", Run: listReturnerFunctions},
	{Name: "list_returners", Doc: "List the returners, all or those named.", Example: "salt '*' sys.list_returners", Args: "args", Run: listReturners},
	{Name: "list_runner_functions", Doc: "List the functions of runners, all or those of the runners and patterns named.", Example: "salt '*' sys.list_runner_functions", Args: "args", Kwargs: "kwargs", Run: listRunnerFunctions},
	{Name: "list_runners", Doc: "List the runners, all or those named.", Example: "salt '*' sys.list_runners", Args: "args", Run: listRunners},
	{Name: "list_state_functions", Doc: "List the functions of state modules, all or those of the modules and patterns named.", Example: "salt '*' sys.list_state_functions file", Args: "args", Kwargs: "kwargs", Run: listStateFunctions},
	{Name: "list_state_modules", Doc: "List the state modules, all or those named.", Example: "salt '*' sys.list_state_modules", Args: "args", Run: listStateModules},
	{Name: "reload_modules", Doc: "Look anew which modules this host can use.", Example: "salt '*' sys.reload_modules", Params: []modules.Param{{Name: "initial_load", Default: false, Type: modules.Bool}, {Name: "context", Optional: true}}, Run: reloadModules},
	{Name: "renderer_doc", Doc: "Return the documentation of renderers.", Example: "salt '*' sys.renderer_doc", Args: "args", Run: rendererDoc},
	{Name: "returner_argspec", Doc: "Tell which arguments functions of returners take.", Example: "salt '*' sys.returner_argspec xmpp", Params: []modules.Param{{Name: "module", Default: "", Type: modules.String}}, Run: returnerArgspec},
	{Name: "returner_doc", Doc: "Return the documentation of returners.", Example: "salt '*' sys.returner_doc", Args: "args", Run: returnerDoc},
	{Name: "runner_argspec", Doc: "Tell which arguments functions of runners take.", Example: "salt '*' sys.runner_argspec state", Params: []modules.Param{{Name: "module", Default: "", Type: modules.String}}, Run: runnerArgspec},
	{Name: "runner_doc", Doc: "Return the documentation of runners.", Example: "salt '*' sys.runner_doc", Args: "args", Run: runnerDoc},
	{Name: "state_argspec", Doc: "Tell which arguments functions of state modules take.", Example: "salt '*' sys.state_argspec pkg.installed", Params: []modules.Param{{Name: "module", Default: "", Type: modules.String}}, Run: stateArgspec},
	{Name: "state_doc", Doc: "Return the documentation of state modules and their functions.", Example: "salt '*' sys.state_doc service", Args: "args", Run: stateDoc},
	{Name: "state_schema", Doc: "Return JSON schemas of the arguments of state functions.", Example: "salt '*' sys.state_schema pkg.installed", Params: []modules.Param{{Name: "module", Default: "", Type: modules.String}}, Run: stateSchema},
}}
