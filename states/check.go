package states

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

// The conditions of a state: onlyif, unless, creates and check_cmd (State._run_check and what it calls). Each answers with keys
// that replace those of the state's record; result true means that the state does not run.

// check looks at the conditions before a state.
func (r *Run) check(ctx context.Context, low *Low) (record, error) {
	ret := identify(low, record{"result": false})
	var comments []any
	opts := r.commandOptions(low)
	steps := [...]struct {
		key string
		run func(context.Context, *Low, map[string]any) (record, error)
	}{{"onlyif", r.onlyif}, {"unless", r.unless}, {"creates", r.creates}}
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

// commandOptions are the arguments of the state that its conditions' commands share.
func (r *Run) commandOptions(low *Low) map[string]any {
	exclude := map[string]bool{}
	if v := low.d.Value("cmd_opts_exclude"); v != nil {
		list := items(v)
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
		r.shell(opts)
	}
	return opts
}

// shell adds the shell that the grains name.
func (r *Run) shell(opts map[string]any) {
	if shell, ok := r.grains()["shell"]; ok {
		opts["shell"] = shell
	}
}

// retcode runs a command of a condition. ok is false when it could not run.
func (r *Run) retcode(ctx context.Context, cmd string, opts map[string]any) (code any, ok bool, err error) {
	code, err = r.callExec(ctx, "cmd.retcode", []any{cmd}, opts)
	if modules.IsExecError(err) {
		return nil, false, nil
	}
	return code, err == nil, err
}

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

// entries are the members of a condition, which may be a single one.
func entries(v any) []any {
	if list, ok := v.(*pyobj.List); ok {
		return list.Items
	}
	return []any{v}
}

// function runs a condition that names an execution function. said is its answer's truth, or that of the return code it set.
func (r *Run) function(ctx context.Context, d *pyobj.Dict) (failed bool, result any, err error) {
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
	if args, err = r.slots(ctx, args); err != nil {
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
	list, err := spread(args["args"])
	if err != nil {
		return false, nil, err
	}
	result, err = r.callExec(ctx, name, list, kwargs)
	if err != nil {
		return false, nil, err
	}
	if pyobj.Truth(get) {
		result = traverse(result, pyobj.Str(get), ":")
	}
	return r.parent.Context().Retcode() != 0, result, nil
}

// checkName is the name of a condition's function. Stock looks it up in its loader, which says these things of what is no name.
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

// spread is what Python makes of f(*args).
func spread(args any) (list []any, err error) {
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

func (r *Run) onlyif(ctx context.Context, low *Low, opts map[string]any) (record, error) {
	ret := identify(low, record{"result": false})
	skip := func() (record, error) {
		ret["comment"], ret["skip_watch"], ret["result"] = "onlyif condition is false", true, true
		return ret, nil
	}
	run := func() { ret["comment"], ret["result"] = "onlyif condition is true", false }
	for _, entry := range entries(low.d.Value("onlyif")) {
		switch e := entry.(type) {
		case string:
			code, ok, err := r.retcode(ctx, e, opts)
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
			failed, result, err := r.function(ctx, e)
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

func (r *Run) unless(ctx context.Context, low *Low, opts map[string]any) (record, error) {
	ret := identify(low, record{"result": false})
	skip := func() { ret["comment"], ret["skip_watch"], ret["result"] = "unless condition is true", true, true }
	run := func() (record, error) {
		delete(ret, "skip_watch")
		ret["comment"], ret["result"] = "unless condition is false", false
		return ret, nil
	}
	for _, entry := range entries(low.d.Value("unless")) {
		switch e := entry.(type) {
		case string:
			code, ok, err := r.retcode(ctx, e, opts)
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
			failed, result, err := r.function(ctx, e)
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
			// Salt leaves skip_watch of an earlier entry here.
			ret["comment"], ret["result"] = "unless condition is false", false
			return ret, nil
		default:
			ret["comment"], ret["result"] = "unless condition is false, bad type passed", false
		}
	}
	return ret, nil
}

func (r *Run) creates(_ context.Context, low *Low, _ map[string]any) (record, error) {
	ret := identify(low, record{"result": false, "comment": "Creates files not found"})
	switch v := low.d.Value("creates").(type) {
	case string:
		if r.exists(v) {
			ret["comment"], ret["result"], ret["skip_watch"] = v+" exists", true, true
		}
	case *pyobj.List:
		for _, x := range v.Items {
			if s, ok := x.(string); !ok || !r.exists(s) {
				return ret, nil
			}
		}
		ret["comment"], ret["result"], ret["skip_watch"] = "All files in creates exist", true, true
	}
	return ret, nil
}

func (r *Run) exists(path string) bool {
	_, err := os.Stat(r.env.Path(path))
	return err == nil
}

// checkCmd decides by commands whether a state that ran succeeded.
func (r *Run) checkCmd(ctx context.Context, low *Low) (record, error) {
	ret := identify(low, record{"result": false})
	opts := map[string]any{"ignore_retcode": true, "python_shell": true}
	r.shell(opts)
	commands := []any{low.d.Value("check_cmd")}
	if _, ok := commands[0].(string); !ok {
		var err error
		if commands, err = iterate(commands[0]); err != nil {
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
