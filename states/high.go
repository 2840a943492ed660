package states

import (
	"fmt"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// High data is what the SLS files contain: a dict of ids, each a dict of states ("file": [arguments, "managed"])
// with __sls__ and __env__. The functions of this file read and change it as those of salt/state.py's class State
// do.

// isHidden reports whether a key is bookkeeping of the compiler, such as __sls__, and not a state.
func isHidden(key any) bool {
	s, ok := key.(string)
	return ok && strings.HasPrefix(s, "__")
}

// bodyText returns an entry of a body as text, "" if it is missing.
func bodyText(body *pyobj.Dict, key string) string {
	v, ok := body.Get(key)
	if !ok {
		return ""
	}
	return pyobj.Str(v)
}

// firstKey returns the first key of a dict, nil if it is empty. Requisites and arguments are dicts of one key.
func firstKey(d *pyobj.Dict) any {
	for k := range d.All() {
		return k
	}
	return nil
}

// A verifier collects what is wrong with high data. All errors are reported at once, so that a user need not run
// again for each.
type verifier struct {
	errs []string
	reqs pyobj.Dict // for requisites that name each other
}

func (v *verifier) addError(format string, args ...any) {
	v.errs = append(v.errs, fmt.Sprintf(format, args...))
}

// verifyHigh returns what is wrong with the form of high data, in Salt's words (State.verify_high).
func verifyHigh(high any) []string {
	v := &verifier{}
	d, ok := high.(*pyobj.Dict)
	if !ok {
		return []string{"High data is not a dictionary and is invalid"}
	}
	for name, body := range d.All() {
		if isHidden(name) {
			continue
		}
		b, ok := body.(*pyobj.Dict)
		if _, text := name.(string); !text {
			sls := ""
			if ok {
				sls = bodyText(b, "__sls__")
			}
			v.addError("ID '%s' in SLS '%s' is not formed as a string, but is a %s. It may need to be quoted.", pyobj.Str(name), sls, pyobj.TypeName(name))
		}
		if !ok {
			v.addError("The type %s in %s is not formatted as a dictionary", pyobj.Str(name), pyobj.Str(body))
			continue
		}
		for state, run := range b.All() {
			if !isHidden(state) {
				v.verifyState(name, b, pyobj.Str(state), run)
			}
		}
	}
	return v.errs
}

// verifyState checks one state of an id: a list with exactly one function. require and watch need no function,
// because Salt reads a requisite that is indented too little as a state.
func (v *verifier) verifyState(id any, body *pyobj.Dict, state string, run any) {
	name, sls := pyobj.Str(id), bodyText(body, "__sls__")
	if run == nil {
		v.addError("ID '%s' in SLS '%s' contains a short declaration (%s) with a trailing colon. When not passing any arguments to a "+
			"state, the colon must be omitted.", name, sls, state)
		return
	}
	list, ok := run.(*pyobj.List)
	if !ok {
		v.addError("State '%s' in SLS '%s' is not formed as a list", name, sls)
		return
	}
	var funs []string
	if _, fun, dotted := strings.Cut(state, "."); dotted {
		funs = append(funs, fun)
	}
	for _, arg := range list.Items {
		switch arg := arg.(type) {
		case string:
			funs = append(funs, arg)
			if strings.Contains(pytext.Strip(arg), " ") {
				v.addError(`The function "%s" in state "%s" in SLS "%s" has whitespace, a function with whitespace is not supported, perhaps `+
					`this is an argument that is missing a ":"`, arg, name, sls)
			}
		case *pyobj.Dict:
			v.verifyArgument(id, sls, state, arg)
		}
	}
	switch {
	case len(funs) == 0 && state != "require" && state != "watch":
		v.addError("No function declared in state '%s' in SLS '%s'", name, sls)
	case len(funs) > 1:
		v.addError("Too many functions declared in state '%s' in SLS '%s'. Please choose one of the following: %s", name, sls, strings.Join(funs, ", "))
	}
}

// verifyArgument checks one argument of a state: requisites must be lists of dicts with one key.
func (v *verifier) verifyArgument(id any, sls, state string, arg *pyobj.Dict) {
	name := pyobj.Str(id)
	key := pyobj.Str(firstKey(arg))
	value := arg.Value(firstKey(arg))
	list, isList := value.(*pyobj.List)
	switch key {
	case "names":
		if !isList {
			v.addError("The 'names' argument in state '%s' in SLS '%s' needs to be formed as a list", name, sls)
		}
		return
	case "require", "watch", "prereq", "onchanges":
	default:
		return
	}
	if isList {
		mine := pyobj.NewDict("state", state)
		_ = v.reqs.Set(id, mine) // an id is a key already
		for _, req := range list.Items {
			v.verifyRequisite(id, sls, state, mine, req)
		}
	} else {
		v.addError("The %s statement in state '%s' in SLS '%s' needs to be formed as a list", key, name, sls)
	}
	if arg.Len() != 1 {
		v.addError("Multiple dictionaries defined in argument of state '%s' in SLS '%s'", name, sls)
	}
}

// verifyRequisite checks one target of a requisite and notes it, so that two states that require each other are
// reported.
func (v *verifier) verifyRequisite(id any, sls, state string, mine *pyobj.Dict, req any) {
	name := pyobj.Str(id)
	if s, ok := req.(string); ok {
		req = pyobj.NewDict("id", s)
	}
	d, ok := req.(*pyobj.Dict)
	if !ok || d.Len() == 0 {
		v.addError("Requisite declaration %s in SLS %s is not formed as a single key dictionary", pyobj.Str(req), sls)
		return
	}
	key, val := pyobj.Str(firstKey(d)), d.Value(firstKey(d))
	if head, _, dotted := strings.Cut(key, "."); dotted {
		v.addError("Invalid requisite type '%s' in state '%s', in SLS '%s'. Requisite types must not contain dots, did you mean '%s'?", key, name, sls, head)
	}
	if mine.Set(val, key) != nil {
		v.addError("Illegal requisite \"%s\", please check your syntax.\n", pyobj.Str(val))
		return
	}
	other, _ := v.reqs.Value(val).(*pyobj.Dict)
	if other == nil {
		return
	}
	if back, ok := other.Get(id); ok && back == any(state) && pyobj.Equal(other.Value("state"), mine.Value(val)) {
		v.addError(`A recursive requisite was found, SLS "%s" ID "%s" ID "%s"`, sls, name, pyobj.Str(val))
	}
}

// An idState names one state of an id.
type idState struct {
	id    any
	state string
}

// excludedSLS returns the SLS files that exclude names.
func excludedSLS(high *pyobj.Dict) []string {
	var list []string
	for _, x := range listItems(high.Value("__exclude__")) {
		switch x := x.(type) {
		case string:
			list = append(list, x)
		case *pyobj.Dict:
			if v := x.Value("sls"); pyobj.Truth(v) {
				list = append(list, pyobj.Str(v))
			}
		}
	}
	return list
}

// reconcileExtend merges each extension into the state that it names (State.reconcile_extend). The texts are
// extensions whose target does not exist; extensions of excluded files are dropped without an error.
func (r *Run) reconcileExtend(high *pyobj.Dict, strict bool) (errs []string, err error) {
	ext, ok := high.Delete("__extend__")
	if !ok {
		return nil, nil
	}
	excluded := map[string]bool{}
	for _, sls := range excludedSLS(high) {
		excluded[sls] = true
	}
	var index *highIndex // built when a name is no id
	for _, chunk := range listItems(ext) {
		d, ok := chunk.(*pyobj.Dict)
		if !ok {
			continue
		}
		for name, body := range d.All() {
			b, ok := body.(*pyobj.Dict)
			if !ok {
				continue
			}
			state := ""
			for k := range b.All() {
				if !isHidden(k) {
					state = pyobj.Str(k)
					break
				}
			}
			if state == "" {
				continue
			}
			env, sls := "base", "base"
			if b.Has("__env__") {
				env = bodyText(b, "__env__")
			}
			if b.Has("__sls__") {
				sls = bodyText(b, "__sls__")
			}
			have, _ := high.Value(name).(*pyobj.Dict)
			if have == nil || !have.Has(state) {
				if index == nil {
					index = newHighIndex(high)
				}
				ids := index.findName(name, state, strict)
				if len(ids) != 1 {
					id := pyobj.Str(name)
					errs = append(errs, fmt.Sprintf("Cannot extend ID '%[1]s' in '%[2]s:%[3]s'. It is not part of the high state.\nThis is likely due to a "+
						"missing include statement or an incorrectly typed ID.\nEnsure that a state with an ID of '%[1]s' is available\nin "+
						"environment '%[2]s' and to SLS '%[3]s'", id, env, sls))
					continue
				}
				have, _ = high.Value(ids[0].id).(*pyobj.Dict)
			}
			if have == nil || b.Has("__sls__") && excluded[sls] {
				continue
			}
			if err := extendBody(have, b); err != nil {
				return nil, err
			}
			if index != nil {
				index.note(b)
			}
		}
	}
	return errs, nil
}

// extendBody adds the states and arguments of an extension to a body.
func extendBody(have, ext *pyobj.Dict) error {
	for k, run := range ext.All() {
		if isHidden(k) {
			continue
		}
		if !have.Has(k) {
			_ = have.Set(k, run)
			continue
		}
		args, err := iterateValue(run)
		if err != nil {
			return err
		}
		list, ok := have.Value(k).(*pyobj.List)
		if !ok && len(args) > 0 {
			return extendOdd(have.Value(k))
		}
		for _, arg := range args {
			updated, err := extendArgument(list, arg)
			if err != nil {
				return err
			}
			if !updated {
				list.Items = append(list.Items, arg)
			}
		}
	}
	return nil
}

// extendOdd returns Python's exception for a state that is not a list and is extended.
func extendOdd(have any) error {
	if _, err := iterateValue(have); err != nil {
		return err
	}
	return &modules.PythonError{Type: "AttributeError", Msg: "'" + pyobj.TypeName(have) + "' object has no attribute 'append'"}
}

// extendArgument replaces an argument of the same name; a requisite is lengthened instead, so that extend never
// drops one. It returns false if there is no argument of that name.
func extendArgument(list *pyobj.List, arg any) (updated bool, err error) {
	for i, val := range list.Items {
		switch arg := arg.(type) {
		case string:
			if _, ok := val.(string); ok {
				list.Items[i] = arg
				updated = true
			}
		case *pyobj.Dict:
			d, ok := val.(*pyobj.Dict)
			if !ok || d.Len() == 0 || arg.Len() == 0 {
				continue
			}
			first := firstKey(arg)
			if !pyobj.Equal(first, firstKey(d)) {
				if first == "name" && firstKey(d) == "names" {
					list.Items[i] = arg
				}
				continue
			}
			if key, _ := first.(string); isRequisite(key) {
				have, ok := d.Value(first).(*pyobj.List)
				if !ok {
					return false, &modules.PythonError{Type: "AttributeError",
						Msg: "'" + pyobj.TypeName(d.Value(first)) + "' object has no attribute 'extend'"}
				}
				more, err := iterateValue(arg.Value(first))
				if err != nil {
					return false, err
				}
				have.Items = append(have.Items, more...)
			} else {
				list.Items[i] = arg
			}
			updated = true
		}
	}
	return updated, nil
}

// applyExclude removes the ids and SLS files that exclude names (State.apply_exclude). Salt applies it after
// requisite_in, so a state that is excluded may still add its requisites to others.
func applyExclude(high *pyobj.Dict) {
	exclude, ok := high.Delete("__exclude__")
	if !ok {
		return
	}
	var sls []string
	var ids []any
	for _, x := range listItems(exclude) {
		switch x := x.(type) {
		case string:
			sls = append(sls, x)
		case *pyobj.Dict:
			if x.Len() != 1 {
				continue
			}
			switch firstKey(x) {
			case "sls":
				sls = append(sls, pyobj.Str(x.Value("sls")))
			case "id":
				ids = append(ids, x.Value("id"))
			}
		}
	}
	for name, body := range high.All() {
		b, ok := body.(*pyobj.Dict)
		if !ok || isHidden(name) {
			continue
		}
		from := bodyText(b, "__sls__")
		for _, pattern := range sls {
			if from != "" && matchesGlob(from, pattern) {
				ids = append(ids, name)
				break
			}
		}
	}
	for _, id := range ids {
		high.Delete(id)
	}
}
