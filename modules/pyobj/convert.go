package pyobj

import (
	"maps"
	"math/big"
	"slices"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// maxDepth bounds conversions; a collection that holds itself has no plain form.
const maxDepth = 500

// Plain turns a value into what modules and the wire use: map[string]any (map[any]any if a key is not text), []any for lists,
// tuples and sets, string for Markup, decimal text for integers beyond 64 bits. Plain values inside stay as they are, not
// copied, but for lists with [Entries]. Objects of the template engine that cannot be data become their repr. What nests deeper than 500 is cut off.
func Plain(v any) any { return plain(v, 0) }

func plain(v any, depth int) any {
	if depth > maxDepth {
		return nil
	}
	switch v := v.(type) {
	case *Dict:
		if v == nil {
			return nil
		}
		return plainDict(v, depth)
	case Entries: // an ordered map of another package
		return plainDict(v, depth)
	case []any:
		if slices.ContainsFunc(v, hasEntries) {
			return plainList(v, depth)
		}
	case interface{ Members() []any }:
		return plainList(v.Members(), depth)
	case Markup:
		return string(v)
	case *big.Int:
		if v.IsUint64() {
			return v.Uint64()
		}
		return v.String()
	case interface{ Plain() any }:
		return v.Plain()
	case Object:
		return v.Repr()
	}
	return v
}

// Settled returns a value without ordered values anywhere in it, and whether there were any. Without them it returns v itself, else
// a copy.
func Settled(v any) (plain any, had bool) { return settled(v, 0) }

func settled(v any, depth int) (any, bool) {
	if depth > maxDepth {
		return nil, true
	}
	switch v := v.(type) {
	case map[string]any:
		var out map[string]any
		for k, x := range v {
			y, had := settled(x, depth+1)
			if !had {
				continue
			}
			if out == nil {
				out = maps.Clone(v)
			}
			out[k] = y
		}
		if out != nil {
			return out, true
		}
	case []any:
		var out []any
		for i, x := range v {
			y, had := settled(x, depth+1)
			if !had {
				continue
			}
			if out == nil {
				out = slices.Clone(v)
			}
			out[i] = y
		}
		if out != nil {
			return out, true
		}
	case *Dict, *List, Tuple:
		// What is inside of it may be plain and hold ordered values in turn.
		p, _ := settled(Plain(v), depth+1)
		return p, true
	}
	return v, false
}

func plainList(items []any, depth int) []any {
	out := make([]any, len(items))
	for i, x := range items {
		out[i] = plain(x, depth+1)
	}
	return out
}

// Entries is a dictionary of another package that keeps the order of its keys, as messages have it
// (payload.OrderedMap). [From] and [Plain] take it; its keys are scalars.
type Entries interface {
	// Len is the number of entries.
	Len() int
	// Entry returns the first entry at position at or later, and the position after it.
	Entry(at int) (key, value any, next int)
}

// hasEntries reports whether there are Entries in a value of a message.
func hasEntries(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, hasEntries)
	case *Dict:
		return false
	case Entries:
		return true
	}
	return false
}

// plainDict converts a dict to a map. It becomes a map[any]any from the first key on that is not a text.
func plainDict(d Entries, depth int) any {
	out, mixed := make(map[string]any, d.Len()), map[any]any(nil)
	var k, x any
	for n, at := d.Len(), 0; n > 0; n-- {
		k, x, at = d.Entry(at)
		x = plain(x, depth+1)
		text, ok := k.(string)
		if !ok && mixed == nil {
			mixed = make(map[any]any, d.Len())
			for k, x := range out {
				mixed[k] = x
			}
		}
		if mixed != nil {
			mixed[k] = x
		} else {
			out[text] = x
		}
	}
	if mixed != nil {
		return mixed
	}
	return out
}

// PlainMap is like Plain for a dict. It returns a map that is never nil, with all keys converted to text.
func PlainMap(d *Dict) map[string]any {
	out := map[string]any{}
	for k, x := range d.All() {
		out[Str(k)] = Plain(x)
	}
	return out
}

// From makes ordered values of plain ones, deeply. Maps, which have no order, get that of their keys as text. What is ordered
// already is not copied.
func From(v any) any {
	switch v := v.(type) {
	case nil, bool, int64, float64, string, *Dict, *List, Tuple:
		return v
	case map[string]any:
		return FromMap(v)
	case map[any]any:
		d := &Dict{entries: make([]entry, 0, len(v))}
		for _, k := range pytext.SortKeys(v) {
			_ = d.Set(From(k), From(v[k]))
		}
		return d
	case []any:
		items := make([]any, len(v))
		for i := range v {
			items[i] = From(v[i])
		}
		return &List{Items: items}
	case []string:
		items := make([]any, len(v))
		for i := range v {
			items[i] = v[i]
		}
		return &List{Items: items}
	case []map[string]any:
		items := make([]any, len(v))
		for i := range v {
			items[i] = FromMap(v[i])
		}
		return &List{Items: items}
	case map[string]string:
		d := &Dict{}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			_ = d.Set(k, v[k])
		}
		return d
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case uint32:
		return int64(v)
	case uint64:
		return Int(new(big.Int).SetUint64(v))
	case uint:
		return Int(new(big.Int).SetUint64(uint64(v)))
	case float32:
		return float64(v)
	case Entries:
		d := &Dict{entries: make([]entry, 0, v.Len())}
		var k, x any
		for n, at := v.Len(), 0; n > 0; n-- {
			k, x, at = v.Entry(at)
			_ = d.Set(From(k), From(x))
		}
		return d
	}
	return v
}

// FromMap is like From for a map.
func FromMap(m map[string]any) *Dict {
	d := &Dict{entries: make([]entry, 0, len(m))}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		d.add(k, k, From(m[k]))
	}
	return d
}

// Int returns a big integer as a value: an int64 if it fits into one.
func Int(n *big.Int) any {
	if n.IsInt64() {
		return n.Int64()
	}
	return n
}

// DeepCopy implements copy.deepcopy of data: objects that are shared within v are shared within the copy.
func DeepCopy(v any) any {
	c := copier{}
	return c.copy(v)
}

type copier map[any]any

func (c copier) copy(v any) any {
	switch v := v.(type) {
	case *Dict:
		if v == nil {
			return v
		}
		if done, ok := c[v]; ok {
			return done
		}
		out := &Dict{Ordered: v.Ordered, Aggregate: v.Aggregate, entries: make([]entry, 0, v.live)}
		c[v] = out
		for k, x := range v.All() {
			id, _ := Hash(k)
			out.add(id, k, c.copy(x))
		}
		return out
	case *List:
		if done, ok := c[v]; ok {
			return done
		}
		out := &List{Items: make([]any, len(v.Items)), Aggregate: v.Aggregate}
		c[v] = out
		for i, x := range v.Items {
			out.Items[i] = c.copy(x)
		}
		return out
	case Tuple:
		out := make(Tuple, len(v))
		for i, x := range v {
			out[i] = c.copy(x)
		}
		return out
	case *Set:
		out := &Set{Frozen: v.Frozen}
		for _, x := range v.Members() {
			_ = out.Add(x)
		}
		return out
	}
	return v
}
