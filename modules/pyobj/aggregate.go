package pyobj

import "slices"

// Aggregate merges b into a as salt.utils.aggregation does: dicts and lists that are both marked for it are joined, else b stays
// alone. With deep the first level counts as marked. Neither a nor b is changed.
func Aggregate(a, b any, deep bool) any {
	if deep {
		a, b = marked(a), marked(b)
	}
	m, ok1 := a.(*Dict)
	n, ok2 := b.(*Dict)
	if ok1 && ok2 {
		from := n
		if m.Aggregate && n.Aggregate {
			from = m
		}
		out := from.Copy()
		for k, v := range n.All() {
			if have, ok := m.Get(k); ok {
				v = Aggregate(have, v, false)
			}
			_ = out.Set(k, v) // it is a key already
		}
		return out
	}
	x, ok1 := a.(*List)
	y, ok2 := b.(*List)
	switch {
	case ok1 && ok2 && x.Aggregate && y.Aggregate:
		return &List{Items: append(slices.Clone(x.Items), missing(x.Items, y.Items)...), Aggregate: true}
	case ok2:
		return &List{Items: slices.Clone(y.Items), Aggregate: y.Aggregate}
	case n != nil:
		return n.Copy()
	}
	if set, ok := b.(*Set); ok {
		return DeepCopy(set)
	}
	return b
}

// missing returns the items of b that are not in a.
func missing(a, b []any) []any {
	var (
		have = map[any]bool{}
		odd  []any // what has no hash
		out  []any
	)
	for _, v := range a {
		if id, err := Hash(v); err == nil {
			have[id] = true
		} else {
			odd = append(odd, v)
		}
	}
	for _, v := range b {
		if id, err := Hash(v); err == nil {
			if !have[id] {
				out = append(out, v)
			}
		} else if !slices.ContainsFunc(odd, func(o any) bool { return Equal(o, v) }) {
			out = append(out, v)
		}
	}
	return out
}

// marked returns a value in a form that can be aggregated: a dict or a list, or a list that holds the value.
func marked(v any) any {
	switch v := v.(type) {
	case *Dict:
		d := v.Copy()
		d.Aggregate = true
		return d
	case *List:
		return &List{Items: v.Items, Aggregate: true}
	case Tuple:
		return &List{Items: v, Aggregate: true}
	case *Set:
		return &List{Items: v.Members(), Aggregate: true}
	}
	return &List{Items: []any{v}, Aggregate: true}
}
