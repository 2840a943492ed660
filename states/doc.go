// Package states is the state system. It holds the contract of state modules, the compiler that turns SLS files
// into low state, the requisites, and the runner. The renderers are in states/render, each state module has a
// package below states/, and the execution functions state.* are in modules/state.
//
// # From the top file to a result
//
// Each stage is a function from data to data, named after the one of salt/state.py that it matches. Nothing runs in
// parallel and nothing touches the host until the last stage, so an error in any file stops the run before it changes
// anything.
//
//	top.sls of each environment
//	   │  HighState.Top, Matches       which SLS files are for this minion, by environment ([Sections])
//	   ▼
//	SLS files
//	   │  renderState                  Jinja and YAML to a dict; short forms to long ones; include, extend, exclude
//	   │                               taken out; every state gets an order (_handle_iorder counts from 10000)
//	   ▼
//	high data                          id → state → list of arguments, with __sls__, __env__, __extend__, __exclude__
//	   │  reconcileExtend, verifyHigh  extensions merged into the states that they name; the form checked
//	   │  requisiteIn                  require_in, watch_in, prereq, use … written into the state at the other end
//	   │  applyExclude
//	   ▼
//	high data, final
//	   │  compileHigh, orderChunks     one chunk per function and name, sorted by order
//	   ▼
//	low state                          a list of [Low], Salt's chunks
//	   │  callChunks → callChunk       requisites, conditions, mod_init, mod_aggregate, the state function, retries
//	   │  callListen, callBeacons      mod_watch of listeners and mod_beacon, after all others
//	   ▼
//	results                            one record per tag: state_|-id_|-name_|-function
//
// A program enters at the stage that it has data for: [HighState.Compile], [Run.CallHigh], [Run.CallLow],
// [Run.Single], or [Reaction] for a reactor's file, which is compiled but run elsewhere.
//
// Errors in the user's files are a list of texts that takes the place of the result, in Salt's words and order. A
// Go error ends the run: the master cannot be reached, the job was cancelled, or Salt raises an exception that it
// does not catch.
//
// # One chunk
//
// callChunk decides by the records of the chunks that a chunk depends on (checkRequisite) what becomes of it:
//
//	unmet              run what it waits for, then look again (callUnmet); a circle ends after 20 rounds
//	failed             not run: "One or more requisite failed"
//	met, unwatched     run
//	watched            run, then mod_watch if the state itself changed nothing (callWatched)
//	nothing            a prereq whose target would change nothing
//	noFail, noChange   onfail and onchanges whose condition does not hold
//	skipped            a requisite asked its dependents to be left out (Salt 3008)
//
// A prereq looks ahead: its chunk runs first in test mode, and that record goes to Run.pre and not to the results,
// because what would be done is not what was done.
//
// # How to write a state module
//
// A state module is data, like an execution module (package modules): names, parameters, documentation, and a Go
// function for each state function.
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
// The parameters are those of Salt's function, in its order and with its defaults; name comes first. They decide
// what sys.state_argspec shows, which errors a missing or unknown argument raises, and which keys of the SLS reach
// the function. The keys of the state system itself (require, onlyif, order, …) reach it only if it declares them.
// Args and Kwargs stand for *args and **kwargs; the latter arrive in c.Keywords, their order in c.KeywordNames.
//
// A state function has everything that an execution function has, because [modules.Call] is embedded (Value, Str,
// Int, Bool, Strings, Map, Given, Exec, ExecKw, Opt, Grain, PillarData, Cmd, Path, Which, Now, Context). Only
// states have these:
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
// Values are plain: nil, bool, int64, float64, string, []any, map[string]any (map[any]any if a key is not a
// string). Where the order of a dict matters, c.Low.Ordered returns the value in the order of the SLS (package
// modules/pyobj).
//
// A function returns a [Result]. It returns an error where Salt's function raises an exception that it does not
// catch; the state then fails with "An exception occurred in this state: …". Errors that Salt's function catches
// become comments.
//
// The special functions of a Python state module are declared here:
//
//	mod_watch          a [Def] of that name: runs after the function when a watched state changed and the function itself
//	                   changed nothing; c.Value("sfun") is the declared function. Without it watch acts as require.
//	mod_init           Module.Init, once per run before the first state of the module
//	mod_aggregate      Module.Aggregate
//	mod_run_check_cmd  Module.RunsCheckCmd: functions that declare check_cmd evaluate it themselves
//	mod_beacon         a [Def] of that name
//
// A module also needs a shim in states/all, with the build tag custom or states.<name>, and cases in
// states/testdata/stock/<name>.yaml. Each case runs in stock Salt and here, in test mode, for real, and again;
// results, comments, changes and effects must be equal. The head of states/interop_test.go describes the format:
//
//	go test -count=1 -tags interop -run 'TestStockStates$' ./states -args -stock '^name/'
//
// Without stock Salt, statestest.Run checks the rules that every state module must keep.
//
// Salt's sources: salt/state.py, salt/utils/state.py, salt/utils/requisite.py (3008), salt/utils/args.py
// (format_call).
package states
