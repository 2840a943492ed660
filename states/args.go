package states

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// A target is a state function as the run found it, or the reason why it cannot be called.
type target struct {
	function
	decl *modules.Def
	err  error // why it cannot be called
	// watch reports whether the module has mod_watch; without it watch acts as require.
	watch bool
}

// findFunction looks a state function up and remembers the answer for the run, because each chunk needs it several
// times: to verify it, for its requisites, and to call it. A module that needs an execution function which is
// missing fails as Salt's __virtual__ would; reloadModules clears what was remembered.
func (r *Run) findFunction(state, fun string) *target {
	full := state + "." + fun
	r.mu.Lock()
	t, ok := r.targets[full]
	r.mu.Unlock()
	if ok {
		return t
	}
	t = &target{}
	t.function, t.decl, t.err = r.reg.lookupFunction(full, r.env)
	if t.err != nil {
		t.err = r.env.NoteRefusal(full, t.err)
	}
	if t.err == nil && t.module.Needs != "" && !r.isCallable(t.module.Needs) {
		why := "'" + state + "' __virtual__ returned False"
		if t.module.Otherwise != "" {
			why += ": " + t.module.Otherwise
		}
		t.err = &modules.NotAvailableError{Fun: full, Virtual: why}
	}
	t.watch = r.reg.hasFunction(state+".mod_watch", r.env)
	r.mu.Lock()
	r.targets[full] = t
	r.mu.Unlock()
	return t
}

// isCallable reports whether an execution function exists and suits this host.
func (r *Run) isCallable(fun string) bool {
	reg := r.exec
	if reg == nil {
		reg = r.parent.Registry()
	}
	_, err := reg.Lookup(fun, r.env)
	return err == nil
}

// verifyChunk returns what is wrong with a chunk, in Salt's words (State.verify_data); nil if it can run. It also
// converts two arguments to the form that the rest of the run expects: umask becomes the number __umask__, and
// watch becomes require where the module cannot watch.
func (r *Run) verifyChunk(low *Low) []string {
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
	t := r.findFunction(low.state, low.fun)
	switch {
	case t.err != nil:
		if low.Has("__sls__") {
			errs = append(errs, fmt.Sprintf("State '%s' was not found in SLS '%s'", full, low.sls), "Reason: "+t.err.Error())
		} else {
			errs = append(errs, fmt.Sprintf("Specified state '%s' was not found", full))
		}
		if why := r.shippedState(low.state); why != "" {
			errs = append(errs, why)
		}
	default:
		for _, p := range t.decl.Params {
			if p.Required() && !p.KeywordOnly && !low.Has(p.Name) {
				errs = append(errs, fmt.Sprintf("Missing parameter %s for state %s", p.Name, full))
			}
		}
	}
	return append(errs, r.findRecursion(low, t)...)
}

// findRecursion returns an error for each requisite that names the chunk itself. Salt checks only require and watch
// here; longer circles are found while they run (callUnmet).
func (r *Run) findRecursion(low *Low, t *target) []string {
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
	for _, req := range listItems(low.d.Value(kind)) {
		key, val := firstOf(req)
		pattern, ok := val.(string)
		if key != low.state || !ok {
			continue
		}
		if matchesGlob(low.name, pattern) || matchesGlob(low.id, pattern) {
			errs = append(errs, fmt.Sprintf("Recursive require detected in SLS %s for require %s in ID %s", low.sls, pyobj.Str(req), low.id))
		}
	}
	return errs
}

// watchIsRequire moves the entries of watch to require, for a module without mod_watch.
func watchIsRequire(low *Low, watch, require string) {
	list := listItems(low.d.Value(watch))
	low.Delete(watch)
	if have, ok := low.d.Value(require).(*pyobj.List); ok {
		have.Items = append(have.Items, list...)
		return
	}
	low.Set(require, pyobj.NewList(list...))
}

// iterateValue iterates a value as Python's for loop does: a string by characters, a dict by keys. The error is the
// TypeError that Python raises for any other value.
func iterateValue(v any) ([]any, error) {
	if list, ok := pyobj.Iterate(v); ok {
		return list, nil
	}
	return nil, &modules.PythonError{Type: "TypeError", Msg: "'" + pyobj.TypeName(v) + "' object is not iterable"}
}

// listItems returns the members of a value that an SLS should have as a list. Unlike iterateValue it never fails: a
// value of another kind has no members.
func listItems(v any) []any {
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

// firstOf returns the first entry of a requisite. Of a bare string it returns the first character as the key, which
// is what Salt's next(iter(req)) yields.
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

// matchesGlob implements fnmatch.Match. It first compares the strings, because nearly all names in requisites have no
// wildcard and a run compares them thousands of times.
func matchesGlob(name, pattern string) bool {
	if name == pattern && !strings.ContainsAny(pattern, "[]") {
		return true
	}
	if !strings.ContainsAny(pattern, "*?[") {
		return false
	}
	return fnmatch.Match(pattern, name)
}

// callArguments picks the arguments of a chunk that its function takes (salt/utils/args.py: format_call). extra are
// the names of those that go to **kwargs, in the order of the SLS. The error ends the whole run, as in Salt.
func (t *target) callArguments(low *Low) (kwargs map[string]any, extra []string, err error) {
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
		if isInternal(key) || t.declaresParam(key) {
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

// declaresParam reports whether the function has a parameter of that name.
func (t *target) declaresParam(name string) bool {
	for i := range t.decl.Params {
		if t.decl.Params[i].Name == name {
			return true
		}
	}
	return false
}
