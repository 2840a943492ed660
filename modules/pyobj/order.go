package pyobj

import (
	"maps"
	"slices"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// Order returns what plain data cannot keep of v: how the keys of its dicts follow each other. It is a value of
// the same shape as v without its content, nil where every key is in the order of the text, as [From] has it.
// [InOrder] puts it back.
func Order(v any) any {
	switch v := v.(type) {
	case *Dict:
		return orderOf(v)
	case *List:
		return orderIn(v.Items)
	case Tuple:
		return orderIn(v)
	}
	return nil
}

func orderOf(d *Dict) any {
	out := &Dict{entries: make([]entry, 0, d.Len())}
	sorted, before := true, ""
	for k, x := range d.All() {
		text, ok := k.(string)
		inside := Order(x)
		sorted = sorted && ok && inside == nil && (out.live == 0 || before < text)
		before = text
		_ = out.Set(k, inside) // it is a key already
	}
	if sorted {
		return nil
	}
	return out
}

func orderIn(items []any) any {
	var out *List
	for i, x := range items {
		if inside := Order(x); inside != nil {
			if out == nil {
				out = &List{Items: make([]any, len(items))}
			}
			out.Items[i] = inside
		}
	}
	if out == nil {
		return nil
	}
	return out
}

// InOrder is like [From] for plain data with the keys of its maps in the order that [Order] has kept. Only v
// decides what there is: keys that the order does not have come after those that it has, by their text.
func InOrder(v, order any) any {
	switch v := v.(type) {
	case map[string]any:
		if o, ok := order.(*Dict); ok {
			return mapInOrder(v, o)
		}
	case map[any]any:
		if o, ok := order.(*Dict); ok {
			return mixedInOrder(v, o)
		}
	case []any:
		if o, ok := order.(*List); ok {
			items := make([]any, len(v))
			for i := range v {
				var inside any
				if i < len(o.Items) {
					inside = o.Items[i]
				}
				items[i] = InOrder(v[i], inside)
			}
			return &List{Items: items}
		}
	}
	return From(v)
}

func mapInOrder(m map[string]any, order *Dict) *Dict {
	d := &Dict{entries: make([]entry, 0, len(m))}
	for k, inside := range order.All() {
		text, ok := k.(string)
		if !ok {
			continue
		}
		if x, ok := m[text]; ok {
			d.add(text, text, InOrder(x, inside))
		}
	}
	if d.live < len(m) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if d.findText(k) < 0 {
				d.add(k, k, From(m[k]))
			}
		}
	}
	return d
}

func mixedInOrder(m map[any]any, order *Dict) *Dict {
	d := &Dict{entries: make([]entry, 0, len(m))}
	for k, inside := range order.All() {
		if x, ok := m[plainKey(k)]; ok {
			_ = d.Set(k, InOrder(x, inside))
		}
	}
	if d.live < len(m) {
		for _, k := range pytext.SortKeys(m) {
			if from := From(k); !d.Has(from) {
				_ = d.Set(from, From(m[k]))
			}
		}
	}
	return d
}

// FromMapIn is like [FromMap] with each value in the order that orders has under its key; orders may be nil.
func FromMapIn(m map[string]any, orders *Dict) *Dict {
	if orders == nil || orders.live == 0 {
		return FromMap(m)
	}
	d := &Dict{entries: make([]entry, 0, len(m))}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		inside, _ := orders.Text(k)
		d.add(k, k, InOrder(m[k], inside))
	}
	return d
}

// Keyed is like [FromMap] with the named keys first, in this order.
func Keyed(m map[string]any, keys ...string) *Dict {
	d := &Dict{entries: make([]entry, 0, len(m))}
	for _, k := range keys {
		if v, ok := m[k]; ok {
			d.add(k, k, From(v))
		}
	}
	if d.live < len(m) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if d.findText(k) < 0 {
				d.add(k, k, From(m[k]))
			}
		}
	}
	return d
}
