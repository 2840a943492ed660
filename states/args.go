package states

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/fnmatch"
	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/modules"
)

// target is a state function that was found.
type target struct {
	function
	decl *modules.Def
	err  error // why it was not found
	// watch tells whether its module has mod_watch.
	watch bool
}

// find looks a state function up, once per run.
func (r *Run) find(state, fun string) *target {
	full := state + "." + fun
	r.mu.Lock()
	t, ok := r.targets[full]
	r.mu.Unlock()
	if ok {
		return t
	}
	t = &target{}
	t.function, t.decl, t.err = r.reg.lookup(full, r.env)
	if t.err == nil && t.module.Needs != "" && !r.callable(t.module.Needs) {
		why := "'" + state + "' __virtual__ returned False"
		if t.module.Otherwise != "" {
			why += ": " + t.module.Otherwise
		}
		t.err = &modules.NotAvailableError{Fun: full, Virtual: why}
	}
	t.watch = r.reg.has(state+".mod_watch", r.env)
	r.mu.Lock()
	r.targets[full] = t
	r.mu.Unlock()
	return t
}

// callable tells whether there is such an execution function.
func (r *Run) callable(fun string) bool {
	reg := r.exec
	if reg == nil {
		reg = r.parent.Registry()
	}
	_, err := reg.Lookup(fun, r.env)
	return err == nil
}

// verify tells what is wrong with a chunk (State.verify_data). It also brings umask and watch into their final form.
func (r *Run) verify(low *Low) []string {
	var errs []string
	for _, key := range [...]string{"state", "fun"} {
		if !low.Has(key) {
			errs = append(errs, `Missing "`+key+`" data`)
		}
	}
	if !low.Has("name") {
		errs = append(errs, `Missing "name" data`)
	}
	if name := low.d.Value("name"); pyobj.Truth(name) {
		if _, ok := name.(string); !ok {
			where := ""
			if low.Has("__sls__") {
				where = "in SLS '" + low.sls + "' "
			}
			errs = append(errs, fmt.Sprintf("ID '%s' %sis not formed as a string, but is a %s", low.name, where, pyobj.TypeName(name)))
		}
	}
	if umask, ok := low.d.Get("umask"); ok {
		low.Delete("umask")
		if mask, err := strconv.ParseInt(strings.TrimPrefix(strings.TrimSpace(pyobj.Str(umask)), "0o"), 8, 32); err == nil && mask >= 0 {
			low.Set("__umask__", mask)
		} else {
			errs = append(errs, "Invalid umask: "+pyobj.Str(umask))
		}
	}
	if errs != nil {
		return errs
	}
	full := low.state + "." + low.fun
	t := r.find(low.state, low.fun)
	switch {
	case t.err != nil && low.Has("__sls__"):
		errs = append(errs, fmt.Sprintf("State '%s' was not found in SLS '%s'", full, low.sls), "Reason: "+t.err.Error())
	case t.err != nil:
		errs = append(errs, fmt.Sprintf("Specified state '%s' was not found", full))
	default:
		for _, p := range t.decl.Params {
			if p.Required() && !p.KeywordOnly && !low.Has(p.Name) {
				errs = append(errs, fmt.Sprintf("Missing parameter %s for state %s", p.Name, full))
			}
		}
	}
	return append(errs, r.recursive(low, t)...)
}

// recursive finds a chunk that requires itself.
func (r *Run) recursive(low *Low, t *target) []string {
	kind := ""
	if low.Has("require") {
		kind = "require"
	}
	if low.Has("watch") {
		if t.watch {
			kind = "watch"
		} else {
			watchIsRequire(low, "watch", "require")
			kind = "require"
		}
	}
	if kind == "" {
		return nil
	}
	var errs []string
	for _, req := range items(low.d.Value(kind)) {
		key, val := firstOf(req)
		pattern, ok := val.(string)
		if key != low.state || !ok {
			continue
		}
		if globs(low.name, pattern) || globs(low.id, pattern) {
			errs = append(errs, fmt.Sprintf("Recursive require detected in SLS %s for require %s in ID %s", low.sls, pyobj.Str(req), low.id))
		}
	}
	return errs
}

// watchIsRequire makes a requisite of a module that cannot watch the one it can have.
func watchIsRequire(low *Low, watch, require string) {
	list := items(low.d.Value(watch))
	low.Delete(watch)
	if have, ok := low.d.Value(require).(*pyobj.List); ok {
		have.Items = append(have.Items, list...)
		return
	}
	low.Set(require, pyobj.NewList(list...))
}

// iterate is Python's iteration of a value that should be a list; an error is what Python raises.
func iterate(v any) ([]any, error) {
	if list, ok := pyobj.Iterate(v); ok {
		return list, nil
	}
	return nil, &modules.PythonError{Type: "TypeError", Msg: "'" + pyobj.TypeName(v) + "' object is not iterable"}
}

// items are the members of what an SLS has in place of a list.
func items(v any) []any {
	switch v := v.(type) {
	case *pyobj.List:
		return v.Items
	case pyobj.Tuple:
		return v
	case *pyobj.Dict:
		return v.Keys()
	case []any:
		return v
	}
	return nil
}

// firstOf is the first entry of a requisite; a bare text has only a key.
func firstOf(req any) (key string, val any) {
	switch req := req.(type) {
	case string:
		if req == "" {
			return "", nil
		}
		return req[:1], nil
	case *pyobj.Dict:
		for k, v := range req.All() {
			return pyobj.Str(k), v
		}
	}
	return "", nil
}

// globs is fnmatch with a short way for patterns that are none.
func globs(name, pattern string) bool {
	if name == pattern && !strings.ContainsAny(pattern, "[]") {
		return true
	}
	if !strings.ContainsAny(pattern, "*?[") {
		return false
	}
	return fnmatch.Match(pattern, name)
}

// arguments picks from a chunk what the function takes (salt/utils/args.py: format_call). The error is the one that ends the run.
func (t *target) arguments(low *Low) (kwargs map[string]any, extra []string, err error) {
	d := t.decl
	kwargs = make(map[string]any, low.d.Len())
	var missing, required, used int
	for i := range d.Params {
		p := &d.Params[i]
		v, ok := low.d.Text(p.Name)
		if ok {
			kwargs[p.Name] = v
		}
		if p.Required() && !p.KeywordOnly {
			required++
			if ok {
				used++
			} else {
				missing++
			}
		}
	}
	if missing > 0 {
		plural := ""
		if required > 1 {
			plural = "s"
		}
		return nil, nil, modules.Usagef("%s takes at least %d argument%s (%d given)", d.Name, required, plural, used)
	}
	for k, v := range low.d.All() {
		key := pyobj.Str(k)
		if isInternal(key) || t.declares(key) {
			continue
		}
		if d.Kwargs != "" {
			kwargs[key] = v
		}
		extra = append(extra, key)
	}
	if d.Kwargs != "" || extra == nil {
		return kwargs, extra, nil
	}
	full := low.state + "." + low.fun
	if len(extra) == 1 {
		return nil, nil, modules.Usagef("'%s' is an invalid keyword argument for '%s'", extra[0], full)
	}
	last := len(extra) - 1
	return nil, nil, modules.Usagef("'%s' and '%s' are invalid keyword arguments for '%s'", strings.Join(extra[:last], "', '"), extra[last], full)
}

// declares tells whether the function has a parameter of that name. A required one is never among the further arguments.
func (t *target) declares(name string) bool {
	for i := range t.decl.Params {
		if t.decl.Params[i].Name == name {
			return true
		}
	}
	return false
}
