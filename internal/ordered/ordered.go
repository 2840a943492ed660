// Package ordered turns values that keep the order of dictionaries from the form that travels (package payload) into that which templates
// and functions work with (package pyobj), and back.
//
// Plain data (map[string]any) is what the program keeps and what most functions take; it has no order. Where order can be seen
// it is carried beside the plain data: as pyobj.Order for grains and options, as values of package pyobj in arguments and results, as
// payload.OrderedMap in messages.
package ordered

import (
	"cmp"
	"maps"
	"slices"

	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules/pyobj"
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
	case map[string]any:
		d := &pyobj.Dict{}
		d.Grow(len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			_ = d.Set(k, FromWire(v[k])) // it is a text
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

// Objects makes values of package pyobj of the dictionaries and lists among the arguments of a function.
func Objects(v any) any {
	switch v := v.(type) {
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = object(x)
		}
		return out
	case map[string]any:
		if v == nil {
			return v
		}
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = object(x)
		}
		return out
	}
	return v
}

func object(v any) any {
	switch v.(type) {
	case payload.OrderedMap, map[string]any, []any:
		return FromWire(v)
	}
	return v
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
	case payload.OrderedMap:
		return v
	case []any:
		return list(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = ToWire(x)
		}
		return out
	}
	return pyobj.Plain(v)
}

// Result is what a function returned as it travels: in its own order if it gave ordered values. What has the outputter "highstate" are states,
// in the order in which they ran.
func Result(plain, objects any, outputter string) any {
	if objects != nil {
		return ToWire(objects)
	}
	chunks, ok := plain.(map[string]any)
	if !ok || len(chunks) == 0 || outputter != "highstate" {
		return plain
	}
	out := make(payload.OrderedMap, 0, len(chunks))
	for tag, v := range chunks {
		chunk, _ := v.(map[string]any)
		if _, ran := chunk[runNumber].(int64); !ran {
			return plain
		}
		out = append(out, payload.Pair{Key: tag, Value: v})
	}
	number := func(p payload.Pair) int64 { return p.Value.(map[string]any)[runNumber].(int64) }
	sorting.Stable(out, func(a, b payload.Pair) int {
		return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a.Key.(string), b.Key.(string)))
	})
	return out
}

// runNumber is the key under which the result of a state has its place in the run.
const runNumber = "__run_num__"

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
