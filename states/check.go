package states

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// The conditions of a state: onlyif, unless, creates and check_cmd (State._run_check and what it calls). Each
// returns the keys that replace those of the state's record. A result of true means that the condition is settled
// and the state does not run.

// checkConditions evaluates onlyif, unless and creates before a state. The state is skipped if any of them asks for
// it; the comments of all are kept.
func (r *Run) checkConditions(ctx context.Context, low *Low) (record, error) {
	ret := identifyRecord(low, record{"result": false})
	var comments []any
	opts := r.commandOptions(low)
	steps := [...]struct {
		key string
		run func(context.Context, *Low, map[string]any) (record, error)
	}{{"onlyif", r.checkOnlyif}, {"unless", r.checkUnless}, {"creates", r.checkCreates}}
	for i, step := range steps {
		if !low.Has(step.key) {
			continue
		}
		one, err := step.run(ctx, low, opts)
		if err != nil {
			return nil, err
		}
		comment, ok := one["comment"]
		if !ok {
			return nil, &modules.PythonError{Type: "KeyError", Msg: "'comment'"}
		}
		comments = append(comments, comment)
		if one["result"] == true || i == 0 {
			ret["result"] = one["result"]
		}
		if one["skip_watch"] == true {
			ret["skip_watch"] = true
		}
	}
	ret["comment"] = comments
	return ret, nil
}

// commandOptions returns the arguments of the state that its conditions' commands run with, such as cwd and runas.
// cmd_opts_exclude names those to leave out.
func (r *Run) commandOptions(low *Low) map[string]any {
	exclude := map[string]bool{}
	if v := low.d.Value("cmd_opts_exclude"); v != nil {
		list := listItems(v)
		if s, ok := v.(string); ok {
			list = []any{s}
		}
		for _, x := range list {
			exclude[pyobj.Str(x)] = true
		}
	}
	opts := map[string]any{"ignore_retcode": true, "python_shell": true}
	for _, key := range [...]string{"cwd", "root", "runas", "env", "prepend_path", "umask", "timeout", "success_retcodes"} {
		if !exclude[key] {
			opts[key] = low.Value(key)
		}
	}
	if low.Has("shell") && !exclude["shell"] {
		opts["shell"] = low.Value("shell")
	} else {
		r.addShell(opts)
	}
	return opts
}

// addShell adds the shell that the grains name.
func (r *Run) addShell(opts map[string]any) {
	if shell, ok := r.runGrains()["shell"]; ok {
		opts["shell"] = shell
	}
}

// commandRetcode runs a condition's command. ok is false if the command could not be run at all; onlyif and unless
// then both skip the state, as in Salt.
func (r *Run) commandRetcode(ctx context.Context, cmd string, opts map[string]any) (code any, ok bool, err error) {
	code, err = r.callExec(ctx, "cmd.retcode", []any{cmd}, opts)
	if modules.IsExecError(err) {
		return nil, false, nil
	}
	return code, err == nil, err
}

// isZero reports whether a return code equals Python's 0; False does.
func isZero(v any) bool {
	switch v := v.(type) {
	case int64:
		return v == 0
	case int:
		return v == 0
	case bool:
		return !v
	case float64:
		return v == 0
	}
	return false
}

// conditionEntries returns the members of a condition, which may also be a single one.
func conditionEntries(v any) []any {
	if list, ok := v.(*pyobj.List); ok {
		return list.Items
	}
	return []any{v}
}

// callCondition calls the execution function that a condition names. failed reports whether it set a return code
// other than 0, result is what it returned; get_return picks a part of that.
func (r *Run) callCondition(ctx context.Context, d *pyobj.Dict) (failed bool, result any, err error) {
	d = pyobj.DeepCopy(d).(*pyobj.Dict)
	get, _ := d.Delete("get_return")
	fun, _ := d.Delete("fun")
	argv, ok := d.Delete("args")
	if !ok {
		argv = &pyobj.List{}
	}
	args := map[string]any{"args": argv}
	for k, v := range d.All() {
		args["kw:"+pyobj.Str(k)] = v
	}
	if args, err = r.formatSlots(ctx, args); err != nil {
		return false, nil, err
	}
	kwargs := map[string]any{}
	for k, v := range args {
		if len(k) > 3 && k[:3] == "kw:" {
			kwargs[k[3:]] = pyobj.Plain(v)
		}
	}
	name, err := checkName(fun)
	if err != nil {
		return false, nil, err
	}
	list, err := spreadArgs(args["args"])
	if err != nil {
		return false, nil, err
	}
	result, err = r.callExec(ctx, name, list, kwargs)
	if err != nil {
		return false, nil, err
	}
	if pyobj.Truth(get) {
		result = traversePath(result, pyobj.Str(get), ":")
	}
	return r.parent.Context().Retcode() != 0, result, nil
}

// checkName returns the name of a condition's function. The errors are those of Salt's loader for a key that is not
// a string or has no dot.
func checkName(fun any) (string, error) {
	name, ok := fun.(string)
	if _, err := pyobj.Hash(fun); err != nil {
		return "", &modules.TypeError{Msg: err.Error()}
	}
	switch {
	case !ok:
		return "", &modules.PythonError{Type: "KeyError", Msg: "'The key must be a string.'"}
	case !strings.Contains(name, "."):
		return "", &modules.PythonError{Type: "KeyError", Msg: pytext.Repr("The key " + pytext.Repr(name) + " should contain a '.'")}
	}
	return name, nil
}

// spreadArgs returns the arguments that Python passes for f(*args).
func spreadArgs(args any) (list []any, err error) {
	switch args := args.(type) {
	case string:
		for _, c := range args {
			list = append(list, string(c))
		}
	case *pyobj.Dict:
		for k := range args.All() {
			list = append(list, pyobj.Plain(k))
		}
	case *pyobj.List:
		list, _ = pyobj.Plain(args).([]any)
	case []any:
		list = args
	case map[string]any:
		list = nested.Anys(slices.Sorted(maps.Keys(args)))
	default:
		return nil, &modules.TypeError{Msg: "'" + pyobj.TypeName(args) + "' object is not iterable"}
	}
	return list, nil
}

// checkOnlyif runs the state only if every entry holds. A string is a command that must exit with 0, a dict an
// execution function that must return a true value.
func (r *Run) checkOnlyif(ctx context.Context, low *Low, opts map[string]any) (record, error) {
	ret := identifyRecord(low, record{"result": false})
	skip := func() (record, error) {
		ret["comment"], ret["skip_watch"], ret["result"] = "onlyif condition is false", true, true
		return ret, nil
	}
	run := func() { ret["comment"], ret["result"] = "onlyif condition is true", false }
	for _, entry := range conditionEntries(low.d.Value("onlyif")) {
		switch e := entry.(type) {
		case string:
			code, ok, err := r.commandRetcode(ctx, e, opts)
			if err != nil {
				return nil, err
			}
			if !ok || !isZero(code) {
				return skip()
			}
			run()
		case *pyobj.Dict:
			if !e.Has("fun") {
				ret["comment"] = "no `fun` argument in onlyif: " + pyobj.Str(e)
				return ret, nil
			}
			failed, result, err := r.callCondition(ctx, e)
			if err != nil {
				return nil, err
			}
			if failed || !pytext.Truth(result) {
				return skip()
			}
			run()
		default:
			ret["comment"], ret["result"] = "onlyif execution failed, bad type passed", false
			return ret, nil
		}
	}
	return ret, nil
}

// checkUnless skips the state only if every entry holds; the first that does not lets it run.
func (r *Run) checkUnless(ctx context.Context, low *Low, opts map[string]any) (record, error) {
	ret := identifyRecord(low, record{"result": false})
	skip := func() { ret["comment"], ret["skip_watch"], ret["result"] = "unless condition is true", true, true }
	run := func() (record, error) {
		delete(ret, "skip_watch")
		ret["comment"], ret["result"] = "unless condition is false", false
		return ret, nil
	}
	for _, entry := range conditionEntries(low.d.Value("unless")) {
		switch e := entry.(type) {
		case string:
			code, ok, err := r.commandRetcode(ctx, e, opts)
			if err != nil {
				return nil, err
			}
			if ok && !isZero(code) {
				return run()
			}
			skip()
		case *pyobj.Dict:
			if !e.Has("fun") {
				ret["comment"] = "no `fun` argument in unless: " + pyobj.Str(e)
				return ret, nil
			}
			failed, result, err := r.callCondition(ctx, e)
			if err != nil {
				return nil, err
			}
			if failed {
				return run()
			}
			if pytext.Truth(result) {
				skip()
				continue
			}
			// Salt keeps skip_watch of an earlier entry here, though the state runs; so do we.
			ret["comment"], ret["result"] = "unless condition is false", false
			return ret, nil
		default:
			ret["comment"], ret["result"] = "unless condition is false, bad type passed", false
		}
	}
	return ret, nil
}

// checkCreates skips the state if all the files that it would create exist.
func (r *Run) checkCreates(_ context.Context, low *Low, _ map[string]any) (record, error) {
	ret := identifyRecord(low, record{"result": false, "comment": "Creates files not found"})
	switch v := low.d.Value("creates").(type) {
	case string:
		if r.pathExists(v) {
			ret["comment"], ret["result"], ret["skip_watch"] = v+" exists", true, true
		}
	case *pyobj.List:
		for _, x := range v.Items {
			if s, ok := x.(string); !ok || !r.pathExists(s) {
				return ret, nil
			}
		}
		ret["comment"], ret["result"], ret["skip_watch"] = "All files in creates exist", true, true
	}
	return ret, nil
}

// pathExists reports whether a path of the host exists, below the root of the call if it has one.
func (r *Run) pathExists(path string) bool {
	_, err := os.Stat(r.env.Path(path))
	return err == nil
}

// checkCmd runs the check_cmd commands after a state; the first that fails makes the state fail.
func (r *Run) checkCmd(ctx context.Context, low *Low) (record, error) {
	ret := identifyRecord(low, record{"result": false})
	opts := map[string]any{"ignore_retcode": true, "python_shell": true}
	r.addShell(opts)
	commands := []any{low.d.Value("check_cmd")}
	if _, ok := commands[0].(string); !ok {
		var err error
		if commands, err = iterateValue(commands[0]); err != nil {
			return nil, err
		}
	}
	for _, entry := range commands {
		code, err := r.callExec(ctx, "cmd.retcode", []any{pyobj.Plain(entry)}, opts)
		if err != nil {
			return nil, err
		}
		if !isZero(code) {
			ret["comment"], ret["result"] = "check_cmd determined the state failed", false
			return ret, nil
		}
		ret["comment"], ret["result"] = "check_cmd determined the state succeeded", true
	}
	return ret, nil
}
