package states

import (
	"maps"
	"slices"

	"github.com/brine-salt/brine/modules/pyobj"
)

// changesInOrder returns changes with the keys of each dictionary in the order in which stock's state module sets them: the
// value before the one after, standard output before standard error, a difference before owner and mode. Functions
// return Go maps, whose other keys are sorted. It returns changes itself if no dictionary needs it.
func changesInOrder(state string, changes map[string]any) any {
	if !needsOrder(state, changes) {
		return changes
	}
	head, tail := changeKeys(state, changes)
	d := &pyobj.Dict{}
	set := func(k string) {
		v, ok := changes[k]
		if !ok {
			return
		}
		if m, isMap := v.(map[string]any); isMap {
			v = changesInOrder(state, m)
		}
		_ = d.Set(k, v)
	}
	for _, k := range head {
		set(k)
	}
	for _, k := range slices.Sorted(maps.Keys(changes)) {
		if !slices.Contains(head, k) && !slices.Contains(tail, k) {
			set(k)
		}
	}
	for _, k := range tail {
		set(k)
	}
	return d
}

// needsOrder reports whether a dictionary in changes has keys in another order than sorted.
func needsOrder(state string, changes map[string]any) bool {
	head, tail := changeKeys(state, changes)
	for k, v := range changes {
		if len(changes) > 1 && (slices.Contains(head, k) || slices.Contains(tail, k)) {
			return true
		}
		if m, ok := v.(map[string]any); ok && needsOrder(state, m) {
			return true
		}
	}
	return false
}

// changeKeys returns the keys that stock sets first and last in a dictionary of changes.
func changeKeys(state string, changes map[string]any) (head, tail []string) {
	pair := func(a, b string) bool {
		_, first := changes[a]
		_, second := changes[b]
		return first && second && len(changes) == 2
	}
	switch {
	case pair("old", "new"):
		switch state {
		case "acl", "blockdev", "pkg", "pkgrepo", "virtualenv": // they set the new one first
			return nil, nil
		}
		return []string{"old", "new"}, nil
	case pair("before", "after"):
		return []string{"before", "after"}, nil
	case state == "cmd":
		return nil, []string{"pid", "retcode", "stdout", "stderr"}
	case state == "file":
		return []string{"diff"}, []string{"user", "group", "mode"}
	}
	return nil, nil
}
