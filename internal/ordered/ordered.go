// Package ordered converts values that keep the order of dictionaries to the form of outputters, events and pillars,
// which is that of package payload. pyobj.From is the reverse.
//
// Plain data (map[string]any) is the program's usual form, which most functions take; it has no order. Where order is
// visible it is carried beside the plain data: as pyobj.Order for grains and options, as values of package pyobj in
// results, and as payload.OrderedMap in messages and in arguments until a function takes them. Values of both kinds
// can be encoded directly.
package ordered

import (
	"cmp"

	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/payload"
)

// ToWire converts values of package pyobj to types that are encoded in order. Plain values are returned unchanged.
func ToWire(v any) any {
	switch v := v.(type) {
	case payload.OrderedMap:
		return v
	case payload.Dict:
		m := make(payload.OrderedMap, v.Len())
		at := 0
		for i := range m {
			m[i].Key, m[i].Value, at = v.Entry(at)
			m[i].Value = ToWire(m[i].Value)
		}
		return m
	case interface{ Members() []any }:
		return list(v.Members())
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

// States puts the result of a function with the outputter "highstate" into the order in which the states ran. It
// returns every other value as it is.
func States(plain any, outputter string) any {
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
