package states

import (
	"fmt"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/pyobj"
)

// requisiteIn are the requisites that say something about another state, or need an entry there.
func isReqIn(key string) bool {
	switch key {
	case "require_in", "watch_in", "onfail_in", "onchanges_in", "use", "use_in", "prereq", "prereq_in":
		return true
	}
	return false
}

// notUsed are arguments that use does not take over.
func notUsed(key string) bool {
	switch key {
	case "require", "watch", "onfail", "onfail_stop", "onchanges", "name", "names":
		return true
	}
	return isReqIn(key)
}

// extension collects what the requisites of one side say about the other.
type extension struct {
	r    *Run
	high *pyobj.Dict
	ext  *pyobj.Dict
	errs []string
}

// requisiteIn turns the *_in requisites, prereq and use into entries of the states they are about (State.requisite_in).
func (r *Run) requisiteIn(high *pyobj.Dict) ([]string, error) {
	x := &extension{r: r, high: high, ext: &pyobj.Dict{}}
	for id, body := range high.All() {
		b, ok := body.(*pyobj.Dict)
		if !ok {
			continue
		}
		for state, run := range b.All() {
			if hidden(state) {
				continue
			}
			args, err := iterate(run)
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
					x.single(id, pyobj.Str(state), b, key, v)
				case *pyobj.List:
					x.list(id, pyobj.Str(state), b, key, v)
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

// entry is the list of an id and a state in the extension.
func (x *extension) entry(id any, state string) *pyobj.List {
	body, _ := x.ext.Value(id).(*pyobj.Dict)
	if body == nil {
		body = &pyobj.Dict{}
		if x.ext.Set(id, body) != nil {
			return pyobj.NewList() // a name that cannot be one
		}
	}
	list, _ := body.Value(state).(*pyobj.List)
	if list == nil {
		list = pyobj.NewList()
		_ = body.Set(state, list)
	}
	return list
}

// add adds a requisite to a state of another id, or lengthens one that was added before.
func (x *extension) add(name any, state, rkey string, from *pyobj.Dict, body *pyobj.Dict) {
	list := x.entry(name, state)
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

func (x *extension) dotted(rkey, state, name string, body *pyobj.Dict) string {
	head, _, dots := strings.Cut(state, ".")
	if dots {
		x.errs = append(x.errs, fmt.Sprintf("Invalid requisite in %s: %s for %s, in SLS '%s'. Requisites must not contain dots, did you mean '%s'?",
			rkey, state, name, part(body, "__sls__"), head))
	}
	return head
}

// single is a requisite that is a dict rather than a list.
func (x *extension) single(id any, state string, body *pyobj.Dict, key string, d *pyobj.Dict) {
	rkey, _, _ := strings.Cut(key, "_")
	for k, name := range d.All() {
		other := x.dotted(rkey, pyobj.Str(k), pyobj.Str(name), body)
		x.add(name, other, rkey, pyobj.NewDict(state, id), body)
	}
}

// list is a requisite in its usual form.
func (x *extension) list(id any, state string, body *pyobj.Dict, key string, list *pyobj.List) {
	rkey, _, _ := strings.Cut(key, "_")
	// What earlier members stand for is gone through again with each later one, as in Salt; lists of requisites have such
	// repetitions.
	var hinges []idState
	for _, ind := range list.Items {
		d, ok := ind.(*pyobj.Dict)
		if !ok {
			if d = x.named(ind); d == nil {
				continue
			}
		}
		if d.Len() == 0 {
			continue
		}
		pstate, pname := pyobj.Str(firstKey(d)), d.Value(firstKey(d))
		if pstate == "sls" {
			hinges = idsOfSLS(pyobj.Str(pname), x.high)
		} else {
			hinges = append(hinges, idState{pname, pstate})
		}
		x.dotted(rkey, pstate, pyobj.Str(pname), body)
		for _, h := range hinges {
			x.hinge(id, state, body, key, rkey, h)
		}
	}
}

// named finds the state that a bare text in a requisite means.
func (x *extension) named(ind any) *pyobj.Dict {
	if body, ok := x.high.Value(ind).(*pyobj.Dict); ok {
		for k := range body.All() {
			if !hidden(k) {
				return pyobj.NewDict(k, ind)
			}
		}
	}
	for id, body := range x.high.All() {
		b, ok := body.(*pyobj.Dict)
		if !ok {
			continue
		}
		for state, run := range b.All() {
			if hidden(state) {
				continue
			}
			for _, arg := range items(run) {
				if d, ok := arg.(*pyobj.Dict); ok && d.Has("name") && pyobj.Equal(d.Value("name"), ind) {
					return pyobj.NewDict(state, id)
				}
			}
		}
	}
	return nil
}

// idsOfSLS are all states of an SLS file.
func idsOfSLS(sls string, high *pyobj.Dict) []idState {
	var list []idState
	for id, body := range high.All() {
		b, ok := body.(*pyobj.Dict)
		if !ok || part(b, "__sls__") != sls {
			continue
		}
		for state := range b.All() {
			if !hidden(state) {
				list = append(list, idState{id, pyobj.Str(state)})
			}
		}
	}
	return list
}

// hinge does for one target what a requisite says.
func (x *extension) hinge(id any, state string, body *pyobj.Dict, key, rkey string, h idState) {
	switch key {
	case "prereq_in":
		list := x.entry(id, state)
		list.Items = append(list.Items, pyobj.NewDict("prerequired", pyobj.NewList(pyobj.NewDict(h.state, h.id))))
	case "prereq":
		for _, found := range findName(h.id, h.state, x.high, true) {
			list := x.entry(found.id, found.state)
			list.Items = append(list.Items, pyobj.NewDict("prerequired", pyobj.NewList(pyobj.NewDict(state, id))))
		}
		return
	case "use_in":
		for _, found := range findName(h.id, h.state, x.high, true) {
			if pyobj.Truth(found.id) {
				x.use(idState{id, state}, found, stateArgs(found.id, h.state, x.high))
			}
		}
		return
	case "use":
		for _, found := range findName(h.id, h.state, x.high, true) {
			if pyobj.Truth(found.id) {
				x.use(found, idState{id, state}, stateArgs(id, state, x.high))
			}
		}
		return
	}
	x.add(h.id, h.state, rkey, pyobj.NewDict(state, id), body)
}

// use gives a state the arguments of another that it has not itself.
func (x *extension) use(from, to idState, own map[string]bool) {
	source, _ := x.high.Value(from.id).(*pyobj.Dict)
	list := x.entry(to.id, to.state)
	if source == nil {
		return
	}
	for _, arg := range items(source.Value(from.state)) {
		d, ok := arg.(*pyobj.Dict)
		if !ok || d.Len() != 1 {
			continue
		}
		if key := pyobj.Str(firstKey(d)); !notUsed(key) && !own[key] {
			list.Items = append(list.Items, d)
		}
	}
}

// stateArgs are the names of the arguments of a state.
func stateArgs(id any, state string, high *pyobj.Dict) map[string]bool {
	args := map[string]bool{}
	body, _ := high.Value(id).(*pyobj.Dict)
	if body == nil {
		return args
	}
	for _, arg := range items(body.Value(state)) {
		if d, ok := arg.(*pyobj.Dict); ok && d.Len() == 1 {
			args[pyobj.Str(firstKey(d))] = true
		}
	}
	return args
}
