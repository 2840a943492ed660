// Package ordered turns values that keep the order of dictionaries from the form that travels (package payload) into that which templates
// and functions work with (package pyobj), and back.
//
// Plain data (map[string]any) is what the program keeps and what most functions take; it has no order. Where order can be seen
// it is carried beside the plain data: as pyobj.Order for grains and options, as values of package pyobj in arguments and results, as
// payload.OrderedMap in messages.
package ordered

import (
	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/protocol/payload"
)

// FromWire makes values of package pyobj of decoded ones, or of plain ones.
func FromWire(v any) any {
	switch v := v.(type) {
	case payload.OrderedMap:
		d := &pyobj.Dict{}
		d.Grow(len(v))
		for _, p := range v {
			_ = d.Set(p.Key, FromWire(p.Value)) // keys are scalars
		}
		return d
	case []any:
		l := &pyobj.List{Items: make([]any, len(v))}
		for i := range v {
			l.Items[i] = FromWire(v[i])
		}
		return l
	}
	return pyobj.From(v)
}

// ToWire gives values of package pyobj the form that is packed in their order; plain ones stay as they are.
func ToWire(v any) any {
	switch v := v.(type) {
	case *pyobj.Dict:
		m := make(payload.OrderedMap, 0, v.Len())
		for k, x := range v.All() {
			m = append(m, payload.Pair{Key: key(k), Value: ToWire(x)})
		}
		return m
	case *pyobj.List:
		return list(v.Items)
	case pyobj.Tuple:
		return list(v)
	case payload.OrderedMap, []any, map[string]any:
		return v
	}
	return pyobj.Plain(v)
}

func list(items []any) []any {
	out := make([]any, len(items))
	for i, x := range items {
		out[i] = ToWire(x)
	}
	return out
}

// key is a key as plain maps have it: no list can be one.
func key(k any) any {
	switch p := pyobj.Plain(k).(type) {
	case []any, []byte:
		return pyobj.Str(k)
	default:
		return p
	}
}
