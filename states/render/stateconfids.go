package render

import (
	"slices"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// The functions below visit high data. They return errShape for a wrong shape, for which Python would raise an
// exception.

// pairsOf calls f with the first key and value of every dict in a list. If names are given, it does so for those
// keys only.
func pairsOf(list any, names []string, f func(item *pyobj.Dict, key, value any) error) error {
	if !isIterable(list) {
		return errShape
	}
	for _, item := range iterMembers(list) {
		d, ok := item.(*pyobj.Dict)
		if !ok {
			continue
		}
		// Only the first key is used, because such a dict has one key.
		key, value, ok := firstPair(d)
		if !ok {
			return errShape
		}
		if name, isText := key.(string); names != nil && (!isText || !slices.Contains(names, name)) {
			continue
		}
		if err := f(d, key, value); err != nil {
			return err
		}
	}
	return nil
}

// requisitesOf calls f with every requisite of the given kinds that a state has.
func requisitesOf(args any, kinds []string, f func(item *pyobj.Dict, state, id any) error) error {
	return pairsOf(args, kinds, func(_ *pyobj.Dict, _, list any) error { return pairsOf(list, nil, f) })
}

// firstPair returns the first entry of a dict.
func firstPair(d *pyobj.Dict) (key, value any, ok bool) {
	for k, v := range d.All() {
		return k, v, true
	}
	return nil, nil, false
}

// statesOf calls f with every state of high data, except for the ids in without and those that begin with two
// underscores.
func statesOf(data *pyobj.Dict, without []string, f func(id string, body *pyobj.Dict, state string, args any) error) error {
	for _, key := range data.Keys() {
		id, ok := key.(string)
		if !ok {
			return errShape
		}
		if strings.HasPrefix(id, "__") || slices.Contains(without, id) {
			continue
		}
		body, ok := data.Value(key).(*pyobj.Dict)
		if !ok {
			return errShape
		}
		// A state may have several functions.
		for name, args := range body.All() {
			state, ok := name.(string)
			if !ok {
				return errShape
			}
			if strings.HasPrefix(state, "__") {
				continue
			}
			if err := f(id, body, state, args); err != nil {
				return err
			}
		}
	}
	return nil
}

// stateName returns the module of "module.function".
func stateName(v any) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", errShape
	}
	s, _, _ = strings.Cut(s, ".")
	return s, nil
}

// stateLabel returns the name of a state in errors and in the tables of inOrder.
func stateLabel(id, state any) (string, error) {
	name, err := stateName(state)
	return pyobj.Str(id) + ":" + name, err
}

// includeKeys returns the ids of high data that are not states.
func includeKeys() []string { return []string{"include", "exclude"} }

// withNames returns the first id that has the argument names.
func (s *stateconf) withNames(data *pyobj.Dict) (string, error) {
	found := ""
	err := statesOf(data, includeKeys(), func(id string, _ *pyobj.Dict, _ string, args any) error {
		if found != "" || id == "extend" {
			return nil
		}
		return pairsOf(args, []string{"names"}, func(*pyobj.Dict, any, any) error { found = id; return nil })
	})
	if found != "" {
		return found, nil
	}
	return "", err
}

// inOrder makes every state require the one before it (add_implicit_requires). before and after hold the labels of
// the states on either side, since a requisite against the order would be a cycle.
func (s *stateconf) inOrder(data *pyobj.Dict) error {
	backward := []string{"require", "watch", "listen", "onchanges", "onfail"}
	forward := []string{"require_in", "watch_in", "listen_in", "onchanges_in", "onfail_in"}
	// A label is the id and the state, because two states may share an id.
	before, after := map[string]bool{}, map[string]bool{}
	for id, body := range data.All() {
		if !isIterable(body) {
			return errShape
		}
		for _, state := range iterMembers(body) {
			tag, err := stateLabel(id, state)
			if err != nil {
				return err
			}
			after[tag] = true
		}
	}
	var prev *pyobj.Dict
	return statesOf(data, includeKeys(), func(id string, body *pyobj.Dict, state string, args any) error {
		if id == "extend" {
			if state != firstText(body) {
				return nil // the body of extend is read once, below, and not for each of its ids
			}
			return s.extendedRequisites(body, backward, forward)
		}
		tag, err := stateLabel(id, state)
		if err != nil {
			return err
		}
		if !after[tag] {
			return errShape
		}
		delete(after, tag)
		check := func(kinds []string, more []requisite, among map[string]bool, text string) error {
			one := func(_ *pyobj.Dict, rstate, rid any) error {
				other, err := stateLabel(rid, rstate)
				if err == nil && among[other] {
					err = renderError("State(" + tag + ") can't" + strings.ReplaceAll(text, "%", "state("+other+")"))
				}
				return err
			}
			// The requisites of the state and those that other files add are both checked.
			if err := requisitesOf(args, kinds, one); err != nil {
				return err
			}
			for _, r := range more {
				if err := one(nil, r.state, r.id); err != nil {
					return err
				}
			}
			return nil
		}
		if err := check(backward, s.requires[tag], after, " require/watch/listen/onchanges/onfail a % defined after it!"); err != nil {
			return err
		}
		if err := check(forward, s.requiresIn[tag], before,
			" require_in/watch_in/listen_in/onchanges_in/onfail_in a % defined before it!"); err != nil {
			return err
		}
		if prev != nil {
			if err := requirePrevious(args, prev); err != nil {
				return err
			}
		}
		before[tag] = true
		name, _ := stateName(state)
		prev = pyobj.NewDict(name, id)
		return nil
	})
}

// firstText returns the first key that is a text, without those that begin with two underscores.
func firstText(d *pyobj.Dict) string {
	for k := range d.All() {
		if s, ok := k.(string); ok && !strings.HasPrefix(s, "__") {
			return s
		}
	}
	return ""
}

// extendedRequisites notes the requisites that extend adds to states of other files.
func (s *stateconf) extendedRequisites(body *pyobj.Dict, backward, forward []string) error {
	return statesOf(body, includeKeys(), func(id string, _ *pyobj.Dict, _ string, args any) error {
		for _, side := range [...]struct {
			kinds []string
			table map[string][]requisite
		}{{backward, s.requires}, {forward, s.requiresIn}} {
			if err := requisitesOf(args, side.kinds, func(_ *pyobj.Dict, rstate, rid any) error {
				tag, err := stateLabel(id, rstate)
				if err == nil {
					side.table[tag] = append(side.table[tag], requisite{rstate, rid})
				}
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// requirePrevious adds the previous state at the front of the first require in the arguments, or adds a require.
func requirePrevious(args any, prev *pyobj.Dict) error {
	done := false
	err := pairsOf(args, []string{"require"}, func(_ *pyobj.Dict, _, value any) error {
		if done {
			return nil
		}
		list, ok := value.(*pyobj.List)
		// The first require of the list is extended.
		if !ok {
			return errShape
		}
		list.Items = slices.Insert(list.Items, 0, any(prev))
		done = true
		return nil
	})
	if done {
		return nil
	}
	list, ok := args.(*pyobj.List)
	if err != nil || !ok {
		return errShape
	}
	list.Items = append(list.Items, pyobj.NewDict("require", pyobj.NewList(prev)))
	return nil
}

// addStart adds the state that runs before the first one of this file (add_start_state).
func (s *stateconf) addStart(data *pyobj.Dict) error {
	if data.Has(s.startID) {
		return renderError("Can't generate start state(" + s.startID + ")! The same state id already exists!")
	}
	if data.Len() == 0 {
		return nil
	}
	for key, body := range data.All() {
		id, ok := key.(string)
		if !ok && key != nil {
			return errShape
		}
		if id == "include" || id == "exclude" || id == "extend" || strings.HasPrefix(id, "__") {
			continue
		}
		b, ok := body.(*pyobj.Dict)
		if !ok {
			return errShape
		}
		// Include has merged the states of other files into the data.
		if v, ok := b.Get("__sls__"); ok && v != s.sls {
			continue
		}
		state, _, ok := firstPair(b)
		if !ok {
			return errShape
		}
		name, err := stateName(state)
		if err != nil {
			return err
		}
		return data.Set(s.startID, pyobj.NewDict(s.fun, pyobj.NewList(pyobj.NewDict("require_in", pyobj.NewList(pyobj.NewDict(name, id))))))
	}
	return renderError("Can't determine the first state in the sls file!")
}

// addGoal adds the state that requires all others (add_goal_state).
func (s *stateconf) addGoal(data *pyobj.Dict) error {
	if data.Has(s.goalID) {
		return renderError("Can't generate goal state(" + s.goalID + ")! The same state id already exists!")
	}
	list := pyobj.NewList()
	if err := statesOf(data, append(includeKeys(), "extend"), func(id string, body *pyobj.Dict, state string, _ any) error {
		if body.Has("__sls__") {
			return nil // from another file
		}
		name, err := stateName(state)
		list.Items = append(list.Items, pyobj.NewDict(name, id))
		return err
	}); err != nil {
		return err
	}
	return data.Set(s.goalID, pyobj.NewDict(s.fun, pyobj.NewList(pyobj.NewDict("require", list))))
}

// renameIDs adds the name of the file to ids and requisites that begin with a dot (rename_state_ids). A renamed state
// keeps its short id as its name argument.
func (s *stateconf) renameIDs(data *pyobj.Dict, isExtend bool) error {
	// extend contains ids of its own, which are renamed first.
	if v, ok := data.Get("extend"); ok && !isExtend {
		ext, ok := v.(*pyobj.Dict)
		if !ok {
			return errShape
		}
		if err := s.renameIDs(ext, true); err != nil {
			return err
		}
	}
	kinds := []string{"require", "require_in", "watch", "watch_in", "use", "use_in", "listen", "listen_in", "onchanges", "onchanges_in",
		"onfail", "onfail_in"}
	if err := statesOf(data, includeKeys(), func(_ string, _ *pyobj.Dict, _ string, args any) error {
		return requisitesOf(args, kinds, func(item *pyobj.Dict, state, id any) error {
			name, ok := id.(string)
			if !ok {
				return errShape
			}
			if !strings.HasPrefix(name, ".") {
				return nil
			}
			name, err := s.absoluteID(name)
			if err != nil {
				return err
			}
			return item.Set(state, name)
		})
	}); err != nil {
		return err
	}
	own, _ := stateName(s.fun)
	// The keys are collected first, because the dict changes.
	for _, key := range data.Keys() {
		id, ok := key.(string)
		if !ok {
			return errShape
		}
		if !strings.HasPrefix(id, ".") {
			continue
		}
		renamed, err := s.absoluteID(id)
		if err != nil {
			return err
		}
		if data.Has(renamed) {
			return renderError("Can't rename state id(" + id + ") into " + renamed + " because the later already exists!")
		}
		body, ok := data.Value(id).(*pyobj.Dict)
		if !ok {
			return errShape
		}
		for state, args := range body.All() {
			name, err := stateName(state)
			if err != nil {
				return err
			}
			if name == own {
				continue
			}
			if err := nameArgument(args, id[1:]); err != nil {
				return err
			}
		}
		data.Delete(id)
		_ = data.Set(renamed, body)
	}
	return nil
}

// nameArgument adds the argument name to a state that does not have it.
func nameArgument(args any, name string) error {
	if !isIterable(args) {
		return errShape
	}
	for _, arg := range iterMembers(args) {
		d, ok := arg.(*pyobj.Dict)
		if !ok {
			continue
		}
		key, _, ok := firstPair(d)
		if !ok {
			return errShape
		}
		if key == "name" {
			return nil
		}
	}
	list, ok := args.(*pyobj.List)
	if !ok {
		return errShape
	}
	list.Items = slices.Insert(list.Items, 0, any(pyobj.NewDict("name", name)))
	return nil
}

// rememberSets stores the arguments of stateconf.set for the templates (extract_state_confs).
func (s *stateconf) rememberSets(data *pyobj.Dict, isExtend bool) error {
	own, _ := stateName(s.fun)
	for id, v := range data.All() {
		if id == "extend" && !isExtend {
			ext, ok := v.(*pyobj.Dict)
			if !ok {
				return errShape
			}
			if err := s.rememberSets(ext, true); err != nil {
				return err
			}
			continue
		}
		body, ok := v.(*pyobj.Dict)
		if !ok {
			if !isIterable(v) || hasWord(v, own) || hasWord(v, s.fun) {
				return errShape
			}
			continue
		}
		// The short form "stateconf: …" and the long one have the same meaning.
		args, ok := body.Get(own)
		if !ok {
			if args, ok = body.Get(s.fun); !ok {
				continue
			}
		}
		to := &s.set
		if isExtend {
			to = &s.extended
		}
		conf, _ := to.Value(id).(*pyobj.Dict)
		if conf == nil {
			conf = &pyobj.Dict{Bunch: true}
			if err := to.Set(id, conf); err != nil {
				return errShape
			}
		}
		if err := pairsOf(args, nil, func(_ *pyobj.Dict, key, value any) error { return conf.Set(key, value) }); err != nil {
			return err
		}
		// The extensions of other files take precedence over the file's own arguments.
		if ext, ok := s.extended.Value(id).(*pyobj.Dict); ok && !isExtend {
			if err := extendConf(conf, ext); err != nil {
				return err
			}
		}
	}
	return nil
}

// extendConf applies the extensions of other files to the arguments of a stateconf.set. As in stock, the requisites
// are added to the lists of the extension itself, so that the compiler sees them there too.
func extendConf(conf, ext *pyobj.Dict) error {
	for _, kind := range [...]string{"require", "watch", "listen", "onchanges", "onfail"} {
		v, ok := ext.Get(kind)
		if !ok {
			continue
		}
		list, isList := v.(*pyobj.List)
		own, has := conf.Get(kind)
		if !isList || has && !isIterable(own) {
			return errShape
		}
		list.Items = append(list.Items, slices.Clone(iterMembers(own))...)
	}
	conf.Update(ext)
	return nil
}
