package test

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "test": small functions for trying things out.
var Module = &modules.Module{Name: "test", Doc: "Small functions for trying things out.", Docs: &docs, Funcs: []modules.Def{
	{Name: "arg", Args: "args", Kwargs: "kwargs", Ordered: true, Run: arg},
	{Name: "arg_clean", Args: "args", Kwargs: "kwargs", Ordered: true, Run: argClean},
	{Name: "arg_repr", Args: "args", Kwargs: "kwargs", Run: argRepr},
	{Name: "arg_type", Args: "args", Kwargs: "kwargs", Run: argType},
	{Name: "assertion", Params: []modules.Param{{Name: "assertion"}}, Run: assertion},
	{Name: "attr_call", Run: attrCall},
	{Name: "collatz", Params: []modules.Param{{Name: "start"}}, Run: collatz},
	{Name: "conf_test", Run: confTest},
	{Name: "cross_test", Params: []modules.Param{{Name: "func"}, {Name: "args", Optional: true}}, Run: crossTest},
	{Name: "deprecation_warning", Run: deprecationWarning},
	{Name: "echo", Ordered: true, Params: []modules.Param{{Name: "text"}}, Run: echo},
	{Name: "exception", Params: []modules.Param{{Name: "message", Default: "Test Exception", Type: modules.String}}, Run: exception},
	{Name: "false", Python: "false_", Run: falseFn},
	{Name: "fib", Params: []modules.Param{{Name: "num"}}, Run: fib},
	{Name: "get_opts", Run: getOpts},
	{Name: "kwarg", Kwargs: "kwargs", Run: kwarg},
	{Name: "module_report", Run: moduleReport},
	{Name: "not_loaded", Run: notLoaded},
	{Name: "opts_pkg", Run: optsPkg},
	{Name: "outputter", Params: []modules.Param{{Name: "data"}}, Run: outputter},
	{Name: "ping", Run: ping},
	{Name: "provider", Params: []modules.Param{{Name: "module"}}, Run: provider},
	{Name: "providers", Run: providers},
	{Name: "raise_exception",
		Params: []modules.Param{{Name: "name"}}, Args: "args", Kwargs: "kwargs", Run: raiseException},
	{Name: "rand_sleep", Params: []modules.Param{{Name: "max", Default: int64(60), Type: modules.Int}}, Run: randSleep},
	{Name: "rand_str", Params: []modules.Param{{Name: "size", Default: int64(9999999999), Type: modules.Int}, {Name: "hash_type", Optional: true}}, Run: randStr},
	{Name: "random_hash",
		Params: []modules.Param{{Name: "size", Default: int64(9999999999), Type: modules.Int}, {Name: "hash_type", Optional: true}}, Run: randomHash},
	{Name: "retcode", Params: []modules.Param{{Name: "code", Default: int64(42), Type: modules.Int}}, Run: retcode},
	{Name: "sleep", Params: []modules.Param{{Name: "length"}}, Run: sleep},
	{Name: "stack", Run: stack},
	{Name: "true", Python: "true_", Run: trueFn},
	{Name: "try", Python: "try_",
		Params: []modules.Param{{Name: "module"}, {Name: "return_try_exception", Default: false, Type: modules.Bool}}, Kwargs: "kwargs", Run: tryFn},
	{Name: "tty", Args: "args", Kwargs: "kwargs", Run: tty},
	{Name: "version", Run: version},
	{Name: "versions", Python: "versions_report", Run: versions},
	{Name: "versions_information", Run: versionsInformation},
	{Name: "versions_report", Run: versionsReport},
}}
