package test

import (
	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

// Module is Salt's "test": small functions for trying things out.
var Module = &modules.Module{Name: "test", Doc: "Small functions for trying things out.", Funcs: []modules.Def{
	{Name: "arg", Doc: "Return the positional and keyword arguments as they arrived, with the fields of the job.", Example: `salt '*' test.arg 1 "two" 3.1 txt="hello" wow='{a: 1, b: "hello"}'`, Args: "args", Kwargs: "kwargs", Ordered: true, Run: arg},
	{Name: "arg_clean", Doc: "Return the positional and keyword arguments as they arrived, without the fields of the job.", Example: `salt '*' test.arg_clean 1 "two" txt="hello"`, Args: "args", Kwargs: "kwargs", Ordered: true, Run: argClean},
	{Name: "arg_repr", Doc: "Return the arguments in Python's notation.", Example: `salt '*' test.arg_repr 1 "two" txt="hello"`, Args: "args", Kwargs: "kwargs", Run: argRepr},
	{Name: "arg_type", Doc: "Return the Python types of the arguments.", Example: "salt '*' test.arg_type 1 'two' three=3.0", Args: "args", Kwargs: "kwargs", Run: argType},
	{Name: "assertion", Doc: "Fail unless the argument is true.", Example: "salt '*' test.assertion False", Params: []modules.Param{{Name: "assertion"}}, Run: assertion},
	{Name: "attr_call", Doc: "Return all grains, by a call from one module to another.", Example: "salt '*' test.attr_call", Run: attrCall},
	{Name: "collatz", Doc: "Count down from a positive number by the Collatz rule. The answer is the list of steps and the seconds it took.", Example: "salt '*' test.collatz 3", Params: []modules.Param{{Name: "start"}}, Run: collatz},
	{Name: "conf_test", Doc: `Return the option "test.foo" of the minion's configuration, or its default.`, Example: "salt '*' test.conf_test", Run: confTest},
	{Name: "cross_test", Doc: `Call another function from inside this one.

func
    The name of the function.
args
    A list of positional arguments for it.`,
		Example: "salt '*' test.cross_test test.echo '[hello]'", Params: []modules.Param{{Name: "func"}, {Name: "args", Optional: true}}, Run: crossTest},
	{Name: "deprecation_warning", Doc: "Return True. Stock Salt warns twice in its log meanwhile; there is nothing to warn about here.", Example: "salt '*' test.deprecation_warning", Run: deprecationWarning},
	{Name: "echo", Doc: "Return the text.", Example: "salt '*' test.echo 'foo bar'", Ordered: true, Params: []modules.Param{{Name: "text"}}, Run: echo},
	{Name: "exception", Doc: "Fail with an exception that carries the message.", Example: "salt '*' test.exception 'Oh noes!'", Params: []modules.Param{{Name: "message", Default: "Test Exception", Type: modules.String}}, Run: exception},
	{Name: "false", Python: "false_", Doc: "Return False.", Example: "salt '*' test.false", Run: falseFn},
	{Name: "fib", Doc: "Return a Fibonacci number and the seconds it took to find it.", Example: "salt '*' test.fib 3", Params: []modules.Param{{Name: "num"}}, Run: fib},
	{Name: "get_opts", Doc: "Return the minion's whole configuration.", Example: "salt '*' test.get_opts", Run: getOpts},
	{Name: "kwarg", Doc: "Return the keyword arguments as they arrived, with the fields of the job.", Example: `salt '*' test.kwarg num=1 txt="two" env='{a: 1, b: "hello"}'`, Kwargs: "kwargs", Run: kwarg},
	{Name: "module_report", Doc: "List all modules and functions, and by which ways they can be reached.", Example: "salt '*' test.module_report", Run: moduleReport},
	{Name: "not_loaded", Doc: "List the modules of this program that are not available on this host.", Example: "salt '*' test.not_loaded", Run: notLoaded},
	{Name: "opts_pkg", Doc: "Return the minion's whole configuration with its grains.", Example: "salt '*' test.opts_pkg", Run: optsPkg},
	{Name: "outputter", Doc: "Return the data, to see what an outputter makes of it.", Example: "salt '*' test.outputter foobar", Params: []modules.Param{{Name: "data"}}, Run: outputter},
	{Name: "ping", Doc: "Return True: the minion is there and takes jobs. This is not ICMP.", Example: "salt '*' test.ping", Run: ping},
	{Name: "provider", Doc: `Tell which module stands behind a name ("aptpkg" behind "pkg"), or an empty text.`, Example: "salt '*' test.provider service", Params: []modules.Param{{Name: "module"}}, Run: provider},
	{Name: "providers", Doc: "Tell for every available module which name it is called by.", Example: "salt '*' test.providers", Run: providers},
	{Name: "raise_exception", Doc: `Fail with one of Python's or Salt's exceptions; False when there is none of that name.

name
    The exception: a built-in one, or "salt.exceptions." and its name. Further arguments go to the exception.`,
		Example: `salt '*' test.raise_exception TypeError "An integer is required"
salt '*' test.raise_exception salt.exceptions.CommandExecutionError "Something went wrong"`, Params: []modules.Param{{Name: "name"}}, Args: "args", Kwargs: "kwargs", Run: raiseException},
	{Name: "rand_sleep", Doc: "Wait a random number of whole seconds, at most max.", Example: "salt '*' test.rand_sleep 60", Params: []modules.Param{{Name: "max", Default: int64(60), Type: modules.Int}}, Run: randSleep},
	{Name: "rand_str", Doc: "The old name of test.random_hash.", Example: "salt '*' test.rand_str", Params: []modules.Param{{Name: "size", Default: int64(9999999999), Type: modules.Int}, {Name: "hash_type", Optional: true}}, Run: randStr},
	{Name: "random_hash", Doc: `Return the hash of a random number between 0 and size.

hash_type
    The hash function; the minion's hash_type when not given.`,
		Example: `salt '*' test.random_hash
salt '*' test.random_hash hash_type=sha512`, Params: []modules.Param{{Name: "size", Default: int64(9999999999), Type: modules.Int}, {Name: "hash_type", Optional: true}}, Run: randomHash},
	{Name: "retcode", Doc: "Return True with the given return code.", Example: "salt '*' test.retcode 42", Params: []modules.Param{{Name: "code", Default: int64(42), Type: modules.Int}}, Run: retcode},
	{Name: "sleep", Doc: "Wait a number of seconds and return True.", Example: "salt '*' test.sleep 20", Params: []modules.Param{{Name: "length"}}, Run: sleep},
	{Name: "stack", Doc: "Return the call stack of the running function.", Example: "salt '*' test.stack", Run: stack},
	{Name: "true", Python: "true_", Doc: "Return True.", Example: "salt '*' test.true", Run: trueFn},
	{Name: "try", Python: "try_", Doc: `Call a function and return None if it fails.

module
    The name of the function. Further keyword arguments are its arguments.
return_try_exception
    Return the text of the error rather than None.`,
		Example: "salt '*' test.try module=test.echo text=hello", Params: []modules.Param{{Name: "module"}, {Name: "return_try_exception", Default: false, Type: modules.Bool}}, Kwargs: "kwargs", Run: tryFn},
	{Name: "tty", Doc: "Moved: see cmd.tty.", Example: "salt '*' test.tty tty0 'This is a test'", Args: "args", Kwargs: "kwargs", Run: tty},
	{Name: "version", Doc: "Return the version of Salt that the minion corresponds to.", Example: "salt '*' test.version", Run: version},
	{Name: "versions", Python: "versions_report", Doc: "The same as test.versions_report.", Example: "salt '*' test.versions", Run: versions},
	{Name: "versions_information", Doc: "Return the versions of the program, of the libraries in it and of the system, as data.", Example: "salt '*' test.versions_information", Run: versionsInformation},
	{Name: "versions_report", Doc: "Return the versions of the program, of the libraries in it and of the system, as text.", Example: "salt '*' test.versions_report", Run: versionsReport},
}}
