package states

import (
	"slices"

	"github.com/brine-salt/brine/modules/pyobj"
)

// A highIndex finds the states of high data that a requisite or an extension names by something other than
// their id. Without it each name would be compared with every state. It handles only strings; other values need
// the walk.
type highIndex struct {
	high *pyobj.Dict
	// states holds, in their order, the states of an SLS file, those with an argument of a value by their state and
	// the value, and those with a name.
	states map[string][]idState
	// added are the values of arguments that high data got since the index was built.
	added map[string]bool
}

const (
	slsKey  = "sls\x00" // treats sls like a state with the file as its argument
	nameKey = "\x00"
)

// newHighIndex returns an index of high data. Arguments that are added to these later must be passed to note.
func newHighIndex(high *pyobj.Dict) *highIndex {
	x := &highIndex{high, map[string][]idState{}, map[string]bool{}}
	for _, id := range high.Keys() {
		b, _ := high.Value(id).(*pyobj.Dict)
		if b == nil {
			continue
		}
		for _, key := range b.Keys() {
			if isHidden(key) {
				continue
			}
			s := idState{id, pyobj.Str(key)}
			x.add(slsKey+bodyText(b, "__sls__"), s)
			for _, arg := range listItems(b.Value(key)) {
				d, _ := arg.(*pyobj.Dict)
				if d == nil {
					continue
				}
				if value, ok := onlyText(d); ok {
					x.add(s.state+"\x00"+value, s)
				}
				if name, ok := d.Value("name").(string); ok {
					x.add(nameKey+name, s)
				}
			}
		}
	}
	return x
}

func (x *highIndex) add(key string, s idState) { x.states[key] = append(x.states[key], s) }

// onlyText returns the value of an argument if that is a text.
func onlyText(d *pyobj.Dict) (string, bool) {
	if d.Len() != 1 {
		return "", false
	}
	s, ok := d.Value(firstKey(d)).(string)
	return s, ok
}

// note records the arguments of an extension that was merged into high data.
func (x *highIndex) note(ext *pyobj.Dict) {
	for _, run := range ext.Values() {
		for _, arg := range listItems(run) {
			if d, ok := arg.(*pyobj.Dict); ok {
				value, _ := onlyText(d)
				x.added[value] = true
			}
		}
	}
}

// findName returns the states that a name stands for (find_name): the id of that name, all states of an SLS file,
// or the states with one argument of that value. With strict the id must have the state as well.
func (x *highIndex) findName(name any, state string, strict bool) []idState {
	body, ok := x.high.Get(name)
	if ok && strict {
		b, _ := body.(*pyobj.Dict)
		ok = b != nil && b.Has(state)
	}
	if ok {
		return []idState{{name, state}}
	}
	var ids []any
	text, ok := name.(string)
	if ok && !x.added[text] {
		var last *pyobj.Dict
		for _, s := range x.states[state+"\x00"+text] { // those of an id follow each other
			if b, _ := x.high.Value(s.id).(*pyobj.Dict); b != last {
				last, ids = b, append(ids, s.id)
			}
		}
	} else {
		ids = x.high.Keys()
	}
	var found []idState
	for _, id := range ids {
		b, _ := x.high.Value(id).(*pyobj.Dict)
		if b == nil {
			continue
		}
		if state == "sls" {
			if pyobj.Equal(b.Value("__sls__"), name) {
				found = append(found, idState{id, pyobj.Str(firstKey(b))})
			}
			continue
		}
		for _, arg := range listItems(b.Value(state)) {
			d, ok := arg.(*pyobj.Dict)
			if ok && d.Len() == 1 && pyobj.Equal(d.Value(firstKey(d)), name) {
				found = append(found, idState{id, state})
			}
		}
	}
	return found
}

// findNamed returns the state that a bare name in a requisite stands for: the first state of that id, or the first
// with that name. It returns nil if there is no such state.
func (x *highIndex) findNamed(name any) *pyobj.Dict {
	body := x.high.Value(name)
	for _, k := range listItems(body) {
		if _, ok := body.(*pyobj.Dict); ok && !isHidden(k) {
			return pyobj.NewDict(k, name)
		}
	}
	text, ok := name.(string)
	if found := x.states[nameKey+text]; ok && found != nil {
		return pyobj.NewDict(found[0].state, found[0].id)
	}
	return nil
}

// addUnique appends the entries of "names" that no earlier one equals. seen holds those so far by their text or only
// key, all others under nil.
func addUnique(names, more []any, seen *pyobj.Dict) []any {
	for _, name := range more {
		var key any
		switch n := name.(type) {
		case string:
			key = n
		case *pyobj.Dict:
			if n.Len() == 1 {
				key = firstKey(n)
			}
		}
		have, _ := seen.Value(key).(*pyobj.List)
		if have == nil {
			have = pyobj.NewList()
			_ = seen.Set(key, have)
		}
		if !slices.ContainsFunc(have.Items, func(x any) bool { return pyobj.Equal(x, name) }) {
			have.Items = append(have.Items, name)
			names = append(names, name)
		}
	}
	return names
}
