package states

import (
	"fmt"
	"strings"

	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

// High data is what SLS files say: a dict of ids, each a dict of states ("file": [arguments, "managed"]) with __sls__ and
// __env__. The functions of this file are those of salt/state.py's class State that read and change it.

// hidden tells whether a key is bookkeeping.
func hidden(key any) bool {
	s, ok := key.(string)
	return ok && strings.HasPrefix(s, "__")
}

// part is an entry of a body, "" for one that is missing.
func part(body *pyobj.Dict, key string) string {
	v, ok := body.Get(key)
	if !ok {
		return ""
	}
	return pyobj.Str(v)
}

// firstKey is the first key of a dict; nil for an empty one.
func firstKey(d *pyobj.Dict) any {
	for k := range d.All() {
		return k
	}
	return nil
}

// verifier collects what is wrong with high data.
type verifier struct {
	errs []string
	reqs pyobj.Dict // for requisites that name each other
}

func (v *verifier) fail(format string, args ...any) {
	v.errs = append(v.errs, fmt.Sprintf(format, args...))
}

// VerifyHigh tells what is wrong with high data.
func verifyHigh(high any) []string {
	v := &verifier{}
	d, ok := high.(*pyobj.Dict)
	if !ok {
		return []string{"High data is not a dictionary and is invalid"}
	}
	for name, body := range d.All() {
		if hidden(name) {
			continue
		}
		b, ok := body.(*pyobj.Dict)
		if _, text := name.(string); !text {
			sls := ""
			if ok {
				sls = part(b, "__sls__")
			}
			v.fail("ID '%s' in SLS '%s' is not formed as a string, but is a %s. It may need to be quoted.", pyobj.Str(name), sls, pyobj.TypeName(name))
		}
		if !ok {
			v.fail("The type %s in %s is not formatted as a dictionary", pyobj.Str(name), pyobj.Str(body))
			continue
		}
		for state, run := range b.All() {
			if !hidden(state) {
				v.state(name, b, pyobj.Str(state), run)
			}
		}
	}
	return v.errs
}

// state looks at one state of an id.
func (v *verifier) state(id any, body *pyobj.Dict, state string, run any) {
	name, sls := pyobj.Str(id), part(body, "__sls__")
	if run == nil {
		v.fail("ID '%s' in SLS '%s' contains a short declaration (%s) with a trailing colon. When not passing any arguments to a "+
			"state, the colon must be omitted.", name, sls, state)
		return
	}
	list, ok := run.(*pyobj.List)
	if !ok {
		v.fail("State '%s' in SLS '%s' is not formed as a list", name, sls)
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
				v.fail(`The function "%s" in state "%s" in SLS "%s" has whitespace, a function with whitespace is not supported, perhaps `+
					`this is an argument that is missing a ":"`, arg, name, sls)
			}
		case *pyobj.Dict:
			v.argument(id, sls, state, arg)
		}
	}
	switch {
	case len(funs) == 0 && state != "require" && state != "watch":
		v.fail("No function declared in state '%s' in SLS '%s'", name, sls)
	case len(funs) > 1:
		v.fail("Too many functions declared in state '%s' in SLS '%s'. Please choose one of the following: %s", name, sls, strings.Join(funs, ", "))
	}
}

// argument looks at one argument of a state: requisites must be lists of single key dicts.
func (v *verifier) argument(id any, sls, state string, arg *pyobj.Dict) {
	name := pyobj.Str(id)
	key := pyobj.Str(firstKey(arg))
	value := arg.Value(firstKey(arg))
	list, isList := value.(*pyobj.List)
	switch key {
	case "names":
		if !isList {
			v.fail("The 'names' argument in state '%s' in SLS '%s' needs to be formed as a list", name, sls)
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
			v.requisite(id, sls, state, mine, req)
		}
	} else {
		v.fail("The %s statement in state '%s' in SLS '%s' needs to be formed as a list", key, name, sls)
	}
	if arg.Len() != 1 {
		v.fail("Multiple dictionaries defined in argument of state '%s' in SLS '%s'", name, sls)
	}
}

func (v *verifier) requisite(id any, sls, state string, mine *pyobj.Dict, req any) {
	name := pyobj.Str(id)
	if s, ok := req.(string); ok {
		req = pyobj.NewDict("id", s)
	}
	d, ok := req.(*pyobj.Dict)
	if !ok || d.Len() == 0 {
		v.fail("Requisite declaration %s in SLS %s is not formed as a single key dictionary", pyobj.Str(req), sls)
		return
	}
	key, val := pyobj.Str(firstKey(d)), d.Value(firstKey(d))
	if head, _, dotted := strings.Cut(key, "."); dotted {
		v.fail("Invalid requisite type '%s' in state '%s', in SLS '%s'. Requisite types must not contain dots, did you mean '%s'?", key, name, sls, head)
	}
	if mine.Set(val, key) != nil {
		v.fail("Illegal requisite \"%s\", please check your syntax.\n", pyobj.Str(val))
		return
	}
	other, _ := v.reqs.Value(val).(*pyobj.Dict)
	if other == nil {
		return
	}
	if back, ok := other.Get(id); ok && back == any(state) && pyobj.Equal(other.Value("state"), mine.Value(val)) {
		v.fail(`A recursive requisite was found, SLS "%s" ID "%s" ID "%s"`, sls, name, pyobj.Str(val))
	}
}

// idState names a state of an id.
type idState struct {
	id    any
	state string
}

// findName finds the ids that a name stands for: an id, all of an SLS, or those with an argument of that value.
func findName(name any, state string, high *pyobj.Dict, strict bool) []idState {
	body, ok := high.Get(name)
	if ok && strict {
		b, _ := body.(*pyobj.Dict)
		ok = b != nil && b.Has(state)
	}
	if ok {
		return []idState{{name, state}}
	}
	var found []idState
	for id, body := range high.All() {
		b, ok := body.(*pyobj.Dict)
		if !ok {
			continue
		}
		if state == "sls" {
			if pyobj.Equal(b.Value("__sls__"), name) {
				found = append(found, idState{id, pyobj.Str(firstKey(b))})
			}
			continue
		}
		list, _ := b.Value(state).(*pyobj.List)
		if list == nil {
			continue
		}
		for _, arg := range list.Items {
			if d, ok := arg.(*pyobj.Dict); ok && d.Len() == 1 && pyobj.Equal(d.Value(firstKey(d)), name) {
				found = append(found, idState{id, state})
			}
		}
	}
	return found
}

// excludedSLS are the SLS files that an exclude names.
func excludedSLS(high *pyobj.Dict) []string {
	var list []string
	for _, x := range items(high.Value("__exclude__")) {
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

// reconcileExtend puts what extend says into the states it is about (State.reconcile_extend).
func (r *Run) reconcileExtend(high *pyobj.Dict, strict bool) (errs []string, err error) {
	ext, ok := high.Delete("__extend__")
	if !ok {
		return nil, nil
	}
	excluded := map[string]bool{}
	for _, sls := range excludedSLS(high) {
		excluded[sls] = true
	}
	for _, chunk := range items(ext) {
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
				if !hidden(k) {
					state = pyobj.Str(k)
					break
				}
			}
			if state == "" {
				continue
			}
			env, sls := "base", "base"
			if b.Has("__env__") {
				env = part(b, "__env__")
			}
			if b.Has("__sls__") {
				sls = part(b, "__sls__")
			}
			have, _ := high.Value(name).(*pyobj.Dict)
			if have == nil || !have.Has(state) {
				ids := findName(name, state, high, strict)
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
		}
	}
	return errs, nil
}

// extendBody adds the states and arguments of an extension to a body.
func extendBody(have, ext *pyobj.Dict) error {
	for k, run := range ext.All() {
		if hidden(k) {
			continue
		}
		if !have.Has(k) {
			_ = have.Set(k, run)
			continue
		}
		args, err := iterate(run)
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

// extendOdd is what Python says of a state that is not a list of arguments when such are added.
func extendOdd(have any) error {
	if _, err := iterate(have); err != nil {
		return err
	}
	return &modules.PythonError{Type: "AttributeError", Msg: "'" + pyobj.TypeName(have) + "' object has no attribute 'append'"}
}

// extendArgument replaces or, for requisites, lengthens an argument; false if there is none like it.
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
				more, err := iterate(arg.Value(first))
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

// applyExclude takes out what exclude names (State.apply_exclude).
func applyExclude(high *pyobj.Dict) {
	exclude, ok := high.Delete("__exclude__")
	if !ok {
		return
	}
	var sls []string
	var ids []any
	for _, x := range items(exclude) {
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
		if !ok || hidden(name) {
			continue
		}
		from := part(b, "__sls__")
		for _, pattern := range sls {
			if from != "" && globs(from, pattern) {
				ids = append(ids, name)
				break
			}
		}
	}
	for _, id := range ids {
		high.Delete(id)
	}
}
