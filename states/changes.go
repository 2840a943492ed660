package states

import (
	"maps"
	"slices"

	"github.com/brine-salt/brine/modules/pyobj"
)

// A keyOrder restores the order of keys in what a state function made of its arguments. Functions work with Go maps,
// which have no order; stock's walk the dictionaries of the caller and so keep theirs.
type keyOrder struct {
	state string
	given []*pyobj.Dict // the dictionaries in the arguments
}

// keyOrderOf returns the order for the chunk low.
func keyOrderOf(low *Low) *keyOrder {
	o := &keyOrder{state: low.state}
	for _, v := range low.d.All() {
		o.collect(v)
	}
	return o
}

// collect notes the dictionaries in v. A list of dictionaries with one key counts as one: Salt's way to write options.
func (o *keyOrder) collect(v any) {
	switch v := v.(type) {
	case *pyobj.Dict:
		o.given = append(o.given, v)
		for _, x := range v.All() {
			o.collect(x)
		}
	case *pyobj.List:
		merged := &pyobj.Dict{}
		for _, x := range v.Items {
			if d, ok := x.(*pyobj.Dict); ok && d.Len() == 1 {
				merged.Update(d)
			}
			o.collect(x)
		}
		o.given = append(o.given, merged)
	}
}

// apply returns v with the keys of its dictionaries in the order in which stock's state module sets them: the value
// before the one after, a difference before owner and mode, standard output before standard error, and keys of a
// dictionary of the caller as they are there. The others are sorted. It returns v itself if all are.
func (o *keyOrder) apply(v any) any {
	switch v := v.(type) {
	case map[string]any:
		d, last, sorted := &pyobj.Dict{}, "", true
		put := func(keys, except []string) {
			for _, k := range keys {
				x, ok := v[k]
				if !ok || d.Has(k) || slices.Contains(except, k) {
					continue
				}
				x = o.apply(x)
				sorted, last = sorted && last <= k && !isOrdered(x), k
				_ = d.Set(k, x)
			}
		}
		head, tail := changeKeys(o.state, v)
		given := o.callers(v)
		if len(given) == len(v) {
			head, tail = nil, nil
		}
		put(head, nil)
		put(given, tail)
		put(slices.Sorted(maps.Keys(v)), tail)
		put(tail, nil)
		if !sorted {
			return d
		}
	case []any:
		list := make([]any, len(v))
		for i, x := range v {
			list[i] = o.apply(x)
		}
		if slices.ContainsFunc(list, isOrdered) {
			return &pyobj.List{Items: list}
		}
	}
	return v
}

// asGiven returns v with the caller's own dictionaries, which Python may print as OrderedDict, in place of equal ones.
func (o *keyOrder) asGiven(v any) any {
	switch v := v.(type) {
	case map[string]any:
		own := pyobj.FromMap(v)
		for _, d := range o.given {
			if pyobj.Equal(d, own) {
				return d
			}
		}
	case []any:
		list := make([]any, len(v))
		for i, x := range v {
			list[i] = o.asGiven(x)
		}
		return &pyobj.List{Items: list}
	}
	return v
}

func isOrdered(v any) bool {
	switch v.(type) {
	case *pyobj.Dict, *pyobj.List:
		return true
	}
	return false
}

// callers returns the keys of m that one dictionary of the caller has, in its order: of the one that has most of them,
// and at least two.
func (o *keyOrder) callers(m map[string]any) []string {
	var best []string
	for _, d := range o.given {
		var keys []string
		for k := range d.All() {
			if text, ok := k.(string); ok && hasKey(m, text) {
				keys = append(keys, text)
			}
		}
		if len(keys) > max(1, len(best)) {
			best = keys
		}
	}
	return best
}

func hasKey(m map[string]any, k string) bool {
	_, ok := m[k]
	return ok
}

// changeKeys returns the keys that stock sets first and last in a dictionary of changes.
func changeKeys(state string, changes map[string]any) (head, tail []string) {
	pair := func(a, b string) bool { return hasKey(changes, a) && hasKey(changes, b) && len(changes) == 2 }
	switch {
	case pair("old", "new"):
		switch state {
		case "acl", "blockdev", "pkg", "pkgrepo", "virtualenv": // they set the new one first
			return nil, nil
		case "rabbitmq_policy", "rabbitmq_vhost":
			if changes["new"] == "" { // absent does so
				return nil, nil
			}
		}
		return []string{"old", "new"}, nil
	case pair("before", "after"):
		return []string{"before", "after"}, nil
	}
	switch state {
	case "cmd":
		return nil, []string{"pid", "retcode", "stdout", "stderr"}
	case "event":
		return []string{"tag"}, nil
	case "file":
		return []string{"diff", "retained"}, []string{"user", "group", "mode"}
	case "rabbitmq_user":
		return []string{"configure", "write"}, nil // parts of a permission
	}
	return nil, nil
}
