package pyobj

import (
	"maps"
	"slices"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// Order returns the order of the keys in v's dicts, which plain data loses. It is a value with the shape of v but
// without its content, or nil if all keys are in the order of [From], sorted by text. [InOrder] restores the order.
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

// InOrder is like [From] for plain data, with the keys of maps in an order that [Order] has recorded. The keys
// themselves come from v only: those that the order lacks follow the others, sorted by text.
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

// FromMapIn is like [FromMap] with each value in the order that orders has for its key. orders may be nil.
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

// Keyed is like [FromMap], but the named keys come first, in the given order.
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
