// Package ordered converts values that keep the order of dictionaries to package payload's ordered types, which
// outputters, events and pillars use. pyobj.From converts them back.
//
// The usual form of data is plain (map[string]any), without an order. Where users see the order, another form carries
// it: pyobj.Order beside the plain data for grains and options, values of package pyobj in results, and
// payload.OrderedMap in messages and in arguments until a function receives them. Both pyobj's and payload's values
// can be encoded directly.
package ordered

import (
	"cmp"

	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/payload"
)

// ToWire converts values of package pyobj to types that are encoded in their order. Plain values are returned
// unchanged.
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

// States sorts the result of a function with the outputter "highstate" in the order in which the states ran. It
// returns every other value unchanged.
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

// runNumber is the key of a state's position in the run.
const runNumber = "__run_num__"

func list(items []any) []any {
	out := make([]any, len(items))
	for i, x := range items {
		out[i] = ToWire(x)
	}
	return out
}
