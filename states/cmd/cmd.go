// Package cmd is Salt's state module "cmd": commands and scripts (salt/states/cmd.py).
package cmd

import (
	"context"
	"maps"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "cmd".
var Module = &states.Module{Name: "cmd", Doc: "Commands and scripts.", Funcs: []states.Def{
	{Name: "call", Doc: callDoc, Params: []modules.Param{{Name: "name"}, {Name: "func"}, {Name: "args", Default: []any{}}, {Name: "kws", Optional: true},
		{Name: "output_loglevel", Default: "debug"}, {Name: "hide_output", Default: false}, {Name: "use_vt", Default: false}}, Kwargs: "kwargs", Run: call},
	{Name: "mod_watch", Doc: watchDoc, Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: modWatch},
	{Name: "run", Doc: runDoc, Params: []modules.Param{{Name: "name"}, {Name: "cwd", Optional: true}, {Name: "root", Optional: true}, {Name: "runas", Optional: true},
		{Name: "password", Optional: true, Secret: true}, {Name: "shell", Optional: true}, {Name: "env", Optional: true}, {Name: "prepend_path", Optional: true},
		{Name: "stateful", Default: false}, {Name: "output_loglevel", Default: "debug"}, {Name: "hide_output", Default: false}, {Name: "timeout", Optional: true},
		{Name: "ignore_timeout", Default: false}, {Name: "use_vt", Default: false}, {Name: "success_retcodes", Optional: true},
		{Name: "success_stdout", Optional: true}, {Name: "success_stderr", Optional: true}}, Kwargs: "kwargs", Run: run},
	{Name: "script", Doc: scriptDoc, Params: []modules.Param{{Name: "name"}, {Name: "source", Optional: true}, {Name: "template", Optional: true},
		{Name: "cwd", Optional: true}, {Name: "runas", Optional: true}, {Name: "password", Optional: true, Secret: true}, {Name: "shell", Optional: true},
		{Name: "env", Optional: true}, {Name: "stateful", Default: false}, {Name: "timeout", Optional: true}, {Name: "use_vt", Default: false},
		{Name: "output_loglevel", Default: "debug"}, {Name: "hide_output", Default: false}, {Name: "defaults", Optional: true}, {Name: "context", Optional: true},
		{Name: "success_retcodes", Optional: true}, {Name: "success_stdout", Optional: true}, {Name: "success_stderr", Optional: true}}, Kwargs: "kwargs", Run: script},
	{Name: "wait", Doc: waitDoc, Params: []modules.Param{{Name: "name"}, {Name: "cwd", Optional: true}, {Name: "root", Optional: true}, {Name: "runas", Optional: true},
		{Name: "shell", Optional: true}, {Name: "env", Default: []any{}}, {Name: "stateful", Default: false}, {Name: "output_loglevel", Default: "debug"},
		{Name: "hide_output", Default: false}, {Name: "use_vt", Default: false}, {Name: "success_retcodes", Optional: true},
		{Name: "success_stdout", Optional: true}, {Name: "success_stderr", Optional: true}}, Kwargs: "kwargs", Run: wait},
	{Name: "wait_call", Doc: waitCallDoc, Params: []modules.Param{{Name: "name"}, {Name: "func"}, {Name: "args", Default: []any{}}, {Name: "kws", Optional: true},
		{Name: "stateful", Default: false}, {Name: "use_vt", Default: false}, {Name: "output_loglevel", Default: "debug"}, {Name: "hide_output", Default: false}},
		Kwargs: "kwargs", Run: wait},
	{Name: "wait_script", Doc: waitScriptDoc, Params: []modules.Param{{Name: "name"}, {Name: "source", Optional: true}, {Name: "template", Optional: true},
		{Name: "cwd", Optional: true}, {Name: "runas", Optional: true}, {Name: "shell", Optional: true}, {Name: "env", Optional: true}, {Name: "stateful", Default: false},
		{Name: "use_vt", Default: false}, {Name: "output_loglevel", Default: "debug"}, {Name: "hide_output", Default: false},
		{Name: "success_retcodes", Optional: true}, {Name: "success_stdout", Optional: true}, {Name: "success_stderr", Optional: true}}, Kwargs: "kwargs", Run: wait},
	{Name: "watch", Python: "wait", Doc: waitDoc, Params: []modules.Param{{Name: "name"}, {Name: "cwd", Optional: true}, {Name: "root", Optional: true}, {Name: "runas", Optional: true},
		{Name: "shell", Optional: true}, {Name: "env", Default: []any{}}, {Name: "stateful", Default: false}, {Name: "output_loglevel", Default: "debug"},
		{Name: "hide_output", Default: false}, {Name: "use_vt", Default: false}, {Name: "success_retcodes", Optional: true},
		{Name: "success_stdout", Optional: true}, {Name: "success_stderr", Optional: true}}, Kwargs: "kwargs", Run: wait},
}}

const (
	runDoc = `Run a command. It runs each time; onlyif, unless and creates say when it has nothing to do.

name
    the command, for the shell
cwd
    the directory to run it in
root
    a directory to change the root to
runas, password
    the user to run it as
shell
    the shell, if not the minion's
env
    environment variables, a dict or a list of dicts
prepend_path
    what to put before PATH
stateful
    the command tells by its last line of output, name=value pairs or JSON, whether it changed anything; with
    test_name in a list, this command runs in test mode
timeout, ignore_timeout
    seconds after which it is ended, and whether that is a failure
success_retcodes, success_stdout, success_stderr
    return codes and lines of output that are no failure`
	waitDoc = `Run a command when a watched state changes.

The arguments are those of cmd.run.`
	scriptDoc = `Fetch a script and run it.

name
    the script's URL, or its name if there is a source; arguments may follow
source
    the script's URL
template, context, defaults
    the template engine for the script, and names for it
cwd, runas, password, shell, env, stateful, timeout
    as for cmd.run
args
    arguments of the script`
	waitScriptDoc = `Fetch a script and run it when a watched state changes.

The arguments are those of cmd.script.`
	callDoc = `Call a function that a state file in Python has given.

name
    the state's name
func
    the function; only renderers that make Python objects can give one`
	waitCallDoc = `Call a function that a state file in Python has given when a watched state changes.

name
    the state's name
func
    the function`
	watchDoc = `Do what the watching state is for.

name
    the state's name
sfun
    the function that watches`
)

func wait(_ context.Context, c *states.Call) (*states.Result, error) {
	return c.Result().As(states.True, "")
}

func call(_ context.Context, c *states.Call) (*states.Result, error) {
	return nil, &modules.TypeError{Msg: "'" + modules.TypeName(c.Value("func")) + "' object is not callable"}
}

// args are the arguments of run or script, from wherever they come.
type args struct {
	c     *states.Call
	value func(name string) any
	more  map[string]any // further keyword arguments
}

func declared(c *states.Call) args { return args{c, c.Value, c.Keywords} }

// watched takes the arguments that mod_watch got for a function.
func watched(c *states.Call, names ...string) args {
	more := maps.Clone(c.Keywords)
	delete(more, "__reqs__")
	given := map[string]any{"name": c.Value("name")}
	for _, name := range names {
		if v, ok := more[name]; ok {
			given[name] = v
			delete(more, name)
		}
	}
	return args{c, func(name string) any { return given[name] }, more}
}

func run(ctx context.Context, c *states.Call) (*states.Result, error) {
	return runWith(ctx, declared(c))
}

// common picks the arguments that the execution function takes as they are.
func (a args) common(names ...string) map[string]any {
	kw := maps.Clone(a.more)
	if kw == nil {
		kw = map[string]any{}
	}
	for _, name := range names {
		kw[name] = a.value(name)
	}
	if _, ok := kw["output_loglevel"]; !ok || kw["output_loglevel"] == nil {
		kw["output_loglevel"] = "debug"
	}
	for _, name := range [...]string{"hide_output", "use_vt"} {
		kw[name] = pytext.Truth(kw[name])
	}
	return kw
}

// shell returns the shell that the command runs in.
func (a args) shell() (any, error) {
	if v := a.value("shell"); pytext.Truth(v) {
		return v, nil
	}
	if v, ok := a.c.GrainData()["shell"]; ok {
		return v, nil
	}
	return nil, &modules.PythonError{Type: "KeyError", Msg: "'shell'"}
}

// stateful reads the argument stateful: whether the output describes the changes, and the command for test mode.
func (a args) stateful() (on bool, testName string, err error) {
	list, ok := a.value("stateful").([]any)
	if !ok {
		return a.value("stateful") == true, "", nil
	}
	if len(list) == 0 {
		return false, "", modules.IndexError()
	}
	if m, ok := list[0].(map[string]any); ok && m["test_name"] != nil {
		testName = pytext.Str(m["test_name"])
	}
	return true, testName, nil
}

func envOK(v any) bool {
	switch v.(type) {
	case nil, []any, map[string]any, map[any]any:
		return true
	}
	return false
}

// missing reports whether the directory does not exist.
func (a args) missing(cwd any) bool {
	if !pytext.Truth(cwd) {
		return false
	}
	info, err := os.Stat(a.c.Path(pytext.Str(cwd)))
	return err != nil || !info.IsDir()
}

func runWith(ctx context.Context, a args) (*states.Result, error) {
	ret := a.c.Result()
	name := pytext.Str(a.value("name"))
	stateful, testName, err := a.stateful()
	if err != nil {
		return nil, err
	}
	if a.c.Test() && testName != "" {
		name = testName
	}
	if !envOK(a.value("env")) {
		return ret.As(states.False, "Invalidly-formatted 'env' parameter. See documentation.")
	}
	kw := a.common("cwd", "root", "runas", "password", "use_vt", "env", "prepend_path", "output_loglevel", "hide_output", "success_retcodes",
		"success_stdout", "success_stderr")
	if kw["shell"], err = a.shell(); err != nil {
		return nil, err
	}
	if a.c.Test() && testName == "" {
		ret.Result, ret.Comment = states.None, `Command "`+name+`" would have been executed`
		ret.Changes["cmd"] = name
		if stateful {
			return reinterpret(ret)
		}
		return ret, nil
	}
	if cwd := a.value("cwd"); a.missing(cwd) {
		return ret.As(states.False, `Desired working directory "`+pytext.Str(cwd)+`" is not available`)
	}
	fun := "cmd.run_all"
	if pytext.Truth(a.value("root")) {
		fun = "cmd.run_chroot"
	}
	kw["cmd"], kw["timeout"], kw["python_shell"] = name, a.value("timeout"), true
	out, err := a.c.ExecKw(ctx, fun, nil, kw)
	if err != nil {
		return ret.As(states.False, states.ErrorText(err))
	}
	all, _ := out.(map[string]any)
	ret.Changes, ret.Comment = all, `Command "`+name+`" run`
	ret.Result = states.OutcomeOf(!pytext.Truth(all["retcode"]))
	if pytext.Truth(a.value("ignore_timeout")) {
		if stdout, _ := all["stdout"].(string); all["retcode"] == int64(1) && strings.Contains(stdout, "Timed out after") {
			all["retcode"] = int64(0)
			ret.Result = states.True
		}
	}
	return a.end(ret, stateful, all["retcode"])
}

// end reads what the output says, and gives a success with changes in test mode no result.
func (a args) end(ret *states.Result, stateful bool, code any) (*states.Result, error) {
	if stateful {
		var err error
		if ret, err = reinterpret(ret); err != nil {
			return nil, err
		}
	}
	if a.c.Test() && !pytext.Truth(code) && ret.Changed() {
		ret.Result = states.None
	}
	return ret, nil
}

func script(ctx context.Context, c *states.Call) (*states.Result, error) {
	return scriptWith(ctx, declared(c))
}

func scriptWith(ctx context.Context, a args) (*states.Result, error) {
	name := pytext.Str(a.value("name"))
	stateful, testName, err := a.stateful()
	if err != nil {
		return nil, err
	}
	if a.c.Test() && testName != "" {
		name = testName
	}
	ret := a.c.Result()
	ret.Name = name
	if !envOK(a.value("env")) {
		return ret.As(states.False, "Invalidly-formatted 'env' parameter. See documentation.")
	}
	names := map[string]any{}
	for _, key := range [...]string{"defaults", "context"} {
		v := a.value(key)
		m, ok := v.(map[string]any)
		if pytext.Truth(v) && !ok {
			return ret.As(states.False, "Invalidly-formatted '"+key+"' parameter. Must be formed as a dict.")
		}
		for k := range m { // in the order of the file, which a loop of the script shows
			dict, _ := a.c.Low.Ordered(key).(*pyobj.Dict)
			if names[k], ok = dict.Text(k); !ok {
				names[k] = m[k]
			}
		}
	}
	kw := a.common("runas", "password", "env", "cwd", "template", "timeout", "output_loglevel", "hide_output", "use_vt", "success_retcodes",
		"success_stdout", "success_stderr")
	kw["context"], kw["saltenv"] = names, a.c.Saltenv()
	if kw["shell"], err = a.shell(); err != nil {
		return nil, err
	}
	source := a.value("source")
	if source == nil {
		source = name
	}
	if !pytext.Truth(kw["args"]) && len(strings.Fields(name)) > 1 {
		if _, rest, ok := strings.Cut(name, " "); ok {
			kw["args"] = rest
		}
	}
	if a.c.Test() && testName == "" {
		ret.Result, ret.Comment = states.None, "Command '"+name+"' would have been executed"
		if stateful {
			return reinterpret(ret)
		}
		return ret, nil
	}
	if cwd := a.value("cwd"); a.missing(cwd) {
		return ret.As(states.False, `Desired working directory "`+pytext.Str(cwd)+`" is not available`)
	}
	kw["python_shell"] = true
	out, err := a.c.ExecKw(ctx, "cmd.script", []any{source}, kw)
	if err != nil {
		if caught(err) {
			return ret.As(states.False, states.ErrorText(err))
		}
		return nil, err
	}
	all, ok := out.(map[string]any)
	if !ok {
		return nil, &modules.TypeError{Msg: "'" + modules.TypeName(out) + "' object is not subscriptable"}
	}
	ret.Changes = all
	code, ran := all["retcode"]
	ret.Result = states.OutcomeOf(!pytext.Truth(code))
	if pytext.Truth(a.more["retcode"]) {
		ret.Result = states.OutcomeOf(len(all) == 0)
	} else if !ran { // cmd.script only logs why a script cannot be started
		return nil, &modules.PythonError{Type: "KeyError", Msg: "'retcode'"}
	}
	ret.Comment = "Command '" + name + "' run"
	if pytext.Truth(all["cache_error"]) {
		ret.Comment = "Unable to cache script " + pytext.Str(source) + " from saltenv '" + a.c.Saltenv() + "'"
	}
	return a.end(ret, stateful, code)
}

func modWatch(ctx context.Context, c *states.Call) (*states.Result, error) {
	sfun := pytext.Str(c.Keywords["sfun"])
	var (
		ret *states.Result
		err error
	)
	stateful := pytext.Truth(c.Keywords["stateful"])
	switch sfun {
	case "wait", "run", "watch":
		a := watched(c, "cwd", "root", "runas", "password", "shell", "env", "prepend_path", "stateful", "output_loglevel", "hide_output", "timeout",
			"ignore_timeout", "use_vt", "success_retcodes", "success_stdout", "success_stderr")
		ret, err = runWith(ctx, a.plainly(stateful))
	case "wait_script", "script":
		a := watched(c, "source", "template", "cwd", "runas", "password", "shell", "env", "stateful", "timeout", "use_vt", "output_loglevel", "hide_output",
			"defaults", "context", "success_retcodes", "success_stdout", "success_stderr")
		ret, err = scriptWith(ctx, a.plainly(stateful))
	case "wait_call", "call":
		if f, ok := c.Keywords["func"]; ok && pytext.Truth(f) {
			return nil, &modules.TypeError{Msg: "'" + modules.TypeName(f) + "' object is not callable"}
		}
		return c.Result().As(states.False, "cmd."+sfun+" needs a named parameter func")
	default:
		return c.Result().As(states.False, "cmd."+sfun+" does not work with the watch requisite, please use cmd.wait or cmd.wait_script")
	}
	if err != nil || !stateful {
		return ret, err
	}
	return reinterpret(ret)
}

// plainly takes stateful away: mod_watch reads the output itself.
func (a args) plainly(stateful bool) args {
	if !stateful {
		return a
	}
	value := a.value
	a.value = func(name string) any {
		if name == "stateful" {
			return nil
		}
		return value(name)
	}
	return a
}
