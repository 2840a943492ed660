// Package states is the state system: the contract of state modules, the compiler from high to low state, requisites and the
// runner. The renderers are in states/render, the state modules in rooms of their own, and the execution functions state.*
// in modules/state.
//
// # How to write a state module
//
// A state module is data, as an execution module is (package modules): names, parameters, documentation, and a Go function
// for each state function.
//
//	package greeting
//
//	func init() { states.Register(Module) }
//
//	// Module is "greeting".
//	var Module = &states.Module{Name: "greeting", Doc: "Files that greet.", Funcs: []states.Def{
//		{Name: "present", Doc: presentDoc, Params: []modules.Param{{Name: "name"}, {Name: "text", Default: "hello"}}, Run: present},
//	}}
//
//	func present(ctx context.Context, c *states.Call) (*states.Result, error) {
//		ret := c.Result()
//		var have any = ""
//		exists, err := c.Exec(ctx, "file.file_exists", c.Name())
//		if err == nil && exists == true {
//			have, err = c.Exec(ctx, "file.read", c.Name())
//		}
//		if err != nil {
//			return nil, err
//		}
//		if have == c.Str("text")+"\n" { // file.write ends each line
//			return ret.As(states.True, "The greeting is in place")
//		}
//		ret.Changes["old"], ret.Changes["new"] = have, c.Str("text")+"\n"
//		if c.Test() {
//			return ret.As(states.None, "The greeting would be written")
//		}
//		if _, err := c.Exec(ctx, "file.write", c.Name(), c.Str("text")); err != nil {
//			return ret.As(states.False, err.Error())
//		}
//		return ret.As(states.True, "The greeting was written")
//	}
//
// The parameters are those of Salt's function, in its order, with its defaults; name is the first one. From them come
// sys.state_argspec, the errors for missing and unknown arguments, and which keys of the SLS reach the function: those of
// the state system itself (require, onlyif, order, …) never do, unless the function declares them. Args and Kwargs are *args
// and **kwargs; the latter are in c.Keywords, their order in c.KeywordNames.
//
// What a function gets is all that an execution function gets ([modules.Call] is embedded: Value, Str, Int, Bool, Strings,
// Map, Given, Exec, ExecKw, Opt, Grain, PillarData, Cmd, Path, Which, Now, Context) and what only states have:
//
//	__opts__["test"]      c.Test(); a prereq runs the function in test mode whatever the options say
//	__env__               c.Saltenv()
//	__sls__, __id__       c.Low.SLS(), c.Low.ID()
//	__low__               c.Low
//	__lowstate__          c.Lowstate()
//	__running__[tag]      c.Running(tag), with [Low.Tag]
//	__reqs__              c.Low.Reqs("watch"): the chunks behind a requisite, in mod_watch
//	__instance_id__       c.InstanceID()
//	__states__["x.y"]     c.State(ctx, "x.y", kwargs)
//	__salt__["x.y"]       c.Exec, c.ExecKw; errors are those that the Python function raises
//
// Values are plain: nil, bool, int64, float64, string, []any, map[string]any (map[any]any where keys are not texts). Where the
// order of a dict matters, c.Low.Ordered has the value as the SLS has it (package internal/pyobj).
//
// A function answers with a [Result]. It returns an error where Salt's function raises an exception that it does not catch:
// the state fails with "An exception occurred in this state: …". Errors that Salt's function catches are comments.
//
// Special functions of a Python state module have these places:
//
//	mod_watch          a [Def] of that name: runs instead of the function's second half when a watched state changed;
//	                   c.Value("sfun") is the function that was declared. Without it watch is require.
//	mod_init           Module.Init, once per run before the first state of the module
//	mod_aggregate      Module.Aggregate
//	mod_run_check_cmd  Module.RunsCheckCmd: functions that declare check_cmd look at it themselves
//	mod_beacon         a [Def] of that name
//
// A module also has its shim in states/all, with the build tag custom or states.<name>, and its cases in
// states/testdata/stock/<name>.yaml: each runs in stock Salt and here, in test mode, for real and again, and must have the same
// results, comments, changes and effects. The head of states/interop_test.go has the format;
//
//	go test -count=1 -tags interop -run 'TestStockStates$' ./states -args -stock '^name/'
//
// statestest.Run checks what every state module must keep, without stock Salt.
//
// Salt's sources: salt/state.py, salt/utils/state.py, salt/utils/requisite.py (3008), salt/utils/args.py (format_call).
package states
