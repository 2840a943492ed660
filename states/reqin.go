package states

import (
	"fmt"
	"slices"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// isReqIn reports whether requisiteIn must process a requisite: it belongs to another state, or needs an entry
// there.
func isReqIn(key string) bool {
	switch key {
	case "require_in", "watch_in", "onfail_in", "onchanges_in", "use", "use_in", "prereq", "prereq_in":
		return true
	}
	return false
}

// notUsed reports whether use leaves an argument out.
func notUsed(key string) bool {
	switch key {
	case "require", "watch", "onfail", "onfail_stop", "onchanges", "name", "names":
		return true
	}
	return isReqIn(key)
}

// An extension collects what the requisites of some states add to others. It has the form of an extend
// declaration and is merged like one.
type extension struct {
	r    *Run
	high *pyobj.Dict
	ext  *pyobj.Dict
	errs []string
	by   *highIndex // see index
}

// maxRepeated is the maximum number of members of a requisite for which each is repeated as in Salt. The
// repetitions only affect what state.show_lowstate prints, and for 10,000 members they would be 50 million.
const maxRepeated = 100

// index returns the index of the high data, which does not change until everything is collected.
func (x *extension) index() *highIndex {
	if x.by == nil {
		x.by = newHighIndex(x.high)
	}
	return x.by
}

// requisiteIn turns the *_in requisites, prereq and use into entries of the states that they name
// (State.requisite_in). Afterwards every state declares all that it waits for, so that the run need only look at
// one end. The texts are errors for the user.
func (r *Run) requisiteIn(high *pyobj.Dict) ([]string, error) {
	x := &extension{r: r, high: high, ext: &pyobj.Dict{}}
	for id, body := range high.All() {
		b, ok := body.(*pyobj.Dict)
		if !ok {
			continue
		}
		for state, run := range b.All() {
			if isHidden(state) {
				continue
			}
			args, err := iterateValue(run)
			if err != nil {
				return nil, err
			}
			for _, arg := range args {
				d, ok := arg.(*pyobj.Dict)
				if !ok || d.Len() == 0 {
					continue
				}
				key, _ := firstKey(d).(string)
				if !isReqIn(key) {
					continue
				}
				if slices.Contains(r.disabled, key) {
					r.env.Logger().Warn("The " + key + " requisite has been disabled, Ignoring.")
					continue
				}
				switch v := d.Value(key).(type) {
				case *pyobj.Dict:
					x.addSingle(id, pyobj.Str(state), b, key, v)
				case *pyobj.List:
					x.addList(id, pyobj.Str(state), b, key, v)
				}
			}
		}
	}
	all := pyobj.NewList()
	for id, body := range x.ext.All() {
		all.Items = append(all.Items, pyobj.NewDict(id, body))
	}
	_ = high.Set("__extend__", all)
	errs, err := r.reconcileExtend(high, true)
	return append(x.errs, errs...), err
}

// entryList returns the list of one id and state in the extension, which it creates if need be.
func (x *extension) entryList(id any, state string) *pyobj.List {
	body, _ := x.ext.Value(id).(*pyobj.Dict)
	if body == nil {
		body = &pyobj.Dict{}
		if x.ext.Set(id, body) != nil {
			return pyobj.NewList() // the id cannot be a key
		}
	}
	list, _ := body.Value(state).(*pyobj.List)
	if list == nil {
		list = pyobj.NewList()
		_ = body.Set(state, list)
	}
	return list
}

// addRequisite adds a requisite to a state of another id. It lengthens the list if an earlier entry created one, as
// Salt does.
func (x *extension) addRequisite(name any, state, rkey string, from *pyobj.Dict, body *pyobj.Dict) {
	list := x.entryList(name, state)
	if target, ok := x.ext.Value(name).(*pyobj.Dict); ok {
		_ = target.Set("__env__", body.Value("__env__"))
		_ = target.Set("__sls__", body.Value("__sls__"))
	}
	found := false
	for _, have := range list.Items {
		if d, ok := have.(*pyobj.Dict); ok && firstKey(d) == rkey {
			if reqs, ok := d.Value(rkey).(*pyobj.List); ok {
				reqs.Items = append(reqs.Items, from)
				found = true
			}
		}
	}
	if !found {
		list.Items = append(list.Items, pyobj.NewDict(rkey, pyobj.NewList(from)))
	}
}

// dropDots returns the state of a requisite without its function, and reports a dotted one as an error.
func (x *extension) dropDots(rkey, state, name string, body *pyobj.Dict) string {
	head, _, dots := strings.Cut(state, ".")
	if dots {
		x.errs = append(x.errs, fmt.Sprintf("Invalid requisite in %s: %s for %s, in SLS '%s'. Requisites must not contain dots, did you mean '%s'?",
			rkey, state, name, bodyText(body, "__sls__"), head))
	}
	return head
}

// addSingle adds a requisite that is a dict rather than a list.
func (x *extension) addSingle(id any, state string, body *pyobj.Dict, key string, d *pyobj.Dict) {
	rkey, _, _ := strings.Cut(key, "_")
	for k, name := range d.All() {
		other := x.dropDots(rkey, pyobj.Str(k), pyobj.Str(name), body)
		x.addRequisite(name, other, rkey, pyobj.NewDict(state, id), body)
	}
}

// addList adds a requisite in its usual form, a list.
func (x *extension) addList(id any, state string, body *pyobj.Dict, key string, list *pyobj.List) {
	rkey, _, _ := strings.Cut(key, "_")
	// hinges grows by one with each member and is processed whole each time, as in Salt. Requisites are thus
	// repeated in the low state.
	var hinges []idState
	for _, ind := range list.Items {
		if len(list.Items) > maxRepeated {
			hinges = nil
		}
		d, ok := ind.(*pyobj.Dict)
		if !ok {
			if d = x.index().findNamed(ind); d == nil {
				continue
			}
		}
		if d.Len() == 0 {
			continue
		}
		pstate, pname := pyobj.Str(firstKey(d)), d.Value(firstKey(d))
		if pstate == "sls" {
			hinges = slices.Clone(x.index().states[slsKey+pyobj.Str(pname)])
		} else {
			hinges = append(hinges, idState{pname, pstate})
		}
		x.dropDots(rkey, pstate, pyobj.Str(pname), body)
		for _, h := range hinges {
			x.addTarget(id, state, body, key, rkey, h)
		}
	}
}

// addTarget adds one requisite for one target. prereq needs an entry at both ends: the target must run before the
// state that looks ahead.
func (x *extension) addTarget(id any, state string, body *pyobj.Dict, key, rkey string, h idState) {
	switch key {
	case "prereq_in":
		list := x.entryList(id, state)
		list.Items = append(list.Items, pyobj.NewDict("prerequired", pyobj.NewList(pyobj.NewDict(h.state, h.id))))
	case "prereq":
		for _, found := range x.index().findName(h.id, h.state, true) {
			list := x.entryList(found.id, found.state)
			list.Items = append(list.Items, pyobj.NewDict("prerequired", pyobj.NewList(pyobj.NewDict(state, id))))
		}
		return
	case "use_in":
		for _, found := range x.index().findName(h.id, h.state, true) {
			if pyobj.Truth(found.id) {
				x.copyArguments(idState{id, state}, found, stateArgs(found.id, h.state, x.high))
			}
		}
		return
	case "use":
		for _, found := range x.index().findName(h.id, h.state, true) {
			if pyobj.Truth(found.id) {
				x.copyArguments(found, idState{id, state}, stateArgs(id, state, x.high))
			}
		}
		return
	}
	x.addRequisite(h.id, h.state, rkey, pyobj.NewDict(state, id), body)
}

// copyArguments copies the arguments of a state to another, except requisites, names, and those that the other has
// itself.
func (x *extension) copyArguments(from, to idState, own map[string]bool) {
	source, _ := x.high.Value(from.id).(*pyobj.Dict)
	list := x.entryList(to.id, to.state)
	if source == nil {
		return
	}
	for _, arg := range listItems(source.Value(from.state)) {
		d, ok := arg.(*pyobj.Dict)
		if !ok || d.Len() != 1 {
			continue
		}
		if key := pyobj.Str(firstKey(d)); !notUsed(key) && !own[key] {
			list.Items = append(list.Items, d)
		}
	}
}

// stateArgs returns the names of the arguments of a state.
func stateArgs(id any, state string, high *pyobj.Dict) map[string]bool {
	args := map[string]bool{}
	body, _ := high.Value(id).(*pyobj.Dict)
	if body == nil {
		return args
	}
	for _, arg := range listItems(body.Value(state)) {
		if d, ok := arg.(*pyobj.Dict); ok && d.Len() == 1 {
			args[pyobj.Str(firstKey(d))] = true
		}
	}
	return args
}
