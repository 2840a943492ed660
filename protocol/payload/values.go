package payload

import (
	"errors"
	"maps"
	"math"
	"slices"
	"unicode/utf8"
)

// ErrLimit is wrapped by every error about a value that exceeds [Limits].
var ErrLimit = errors.New("payload: limit exceeded")

// Defaults of [Limits].
const (
	DefaultDepth    = 64        // levels of nested containers
	DefaultElements = 1 << 20   // values, counting containers, keys and members
	DefaultBytes    = 100 << 20 // bytes of one packed value; Python's stream buffer has the same limit
)

// Limits bounds what one packed value may contain. A zero field means the default.
type Limits struct {
	Depth    int   // levels of nested containers
	Elements int   // values in total: containers, keys, members
	Bytes    int64 // bytes of packed input
}

func (l Limits) orDefault() Limits {
	if l.Depth <= 0 {
		l.Depth = DefaultDepth
	}
	if l.Elements <= 0 {
		l.Elements = DefaultElements
	}
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	return l
}

// A Pair is one entry of an [OrderedMap].
type Pair struct{ Key, Value any }

// An OrderedMap is packed as a map with its entries in this order. Only decoders that document it return one.
type OrderedMap []Pair

// A Dict is a dictionary with an order: an [OrderedMap], or a type of package modules/pyobj. It is packed in its
// order.
type Dict interface {
	// Len returns the number of entries.
	Len() int
	// Entry returns the first entry at or after position at, and the position after it. The first position is 0. Entry
	// is called at most Len times.
	Entry(at int) (key, value any, next int)
}

// Len implements [Dict].
func (m OrderedMap) Len() int { return len(m) }

// Entry implements [Dict].
func (m OrderedMap) Entry(at int) (key, value any, next int) {
	return m[at].Key, m[at].Value, at + 1
}

// Map returns the entries whose keys are text as an ordinary map. If a key occurs more than once, the last entry
// wins.
func (m OrderedMap) Map() map[string]any {
	out := make(map[string]any, len(m))
	for _, p := range m {
		if k, ok := p.Key.(string); ok {
			out[k] = p.Value
		}
	}
	return out
}

// Get returns the value of a text key, and whether the key exists.
func (m OrderedMap) Get(key string) (any, bool) {
	for i := len(m) - 1; i >= 0; i-- {
		if k, ok := m[i].Key.(string); ok && k == key {
			return m[i].Value, true
		}
	}
	return nil, false
}

// Set replaces the value of a text key, or appends an entry. A peer may have sent the key several times: each entry gets
// the value. The result may share memory with m, as with append.
func (m OrderedMap) Set(key string, v any) OrderedMap {
	has := false
	for i := range m {
		if k, ok := m[i].Key.(string); ok && k == key {
			m[i].Value, has = v, true
		}
	}
	if has {
		return m
	}
	return append(m, Pair{key, v})
}

// Merge returns the entries of base, replaced and followed by those of over whose keys are text. It writes into base.
func Merge(base, over OrderedMap) OrderedMap {
	at := make(map[string]int, len(base)+len(over))
	for i, p := range base {
		if k, ok := p.Key.(string); ok {
			at[k] = i
		}
	}
	for _, p := range over {
		k, ok := p.Key.(string)
		if i, has := at[k]; has && ok {
			base[i].Value = p.Value
			continue
		}
		if ok {
			at[k] = len(base)
			base = append(base, p)
		}
	}
	return base
}

// Ordered returns a map as an [OrderedMap]. The keys of an ordinary map are sorted. It returns false for a nil map and
// for other values.
func Ordered(v any) (OrderedMap, bool) {
	switch v := v.(type) {
	case OrderedMap:
		return v, v != nil
	case map[string]any:
		if v == nil {
			return nil, false
		}
		out := make(OrderedMap, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, Pair{k, v[k]})
		}
		return out, true
	}
	return nil, false
}

// Plain converts the ordered maps in a value to ordinary ones, at every depth, as [Unmarshal] would have decoded it.
// A value without ordered maps is returned as it is.
func Plain(v any) any {
	switch v := v.(type) {
	case []any:
		if !slices.ContainsFunc(v, hasOrder) {
			return v
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = Plain(v[i])
		}
		return out
	case map[string]any:
		return PlainMap(v)
	case OrderedMap:
		text := true
		for _, p := range v {
			_, ok := p.Key.(string)
			text = text && ok
		}
		if !text {
			out := make(map[any]any, len(v))
			for _, p := range v {
				out[p.Key] = Plain(p.Value)
			}
			return out
		}
		out := make(map[string]any, len(v))
		for _, p := range v {
			out[p.Key.(string)] = Plain(p.Value)
		}
		return out
	}
	return v
}

// PlainMap is like [Plain] for a map.
func PlainMap(m map[string]any) map[string]any {
	if !hasOrder(m) {
		return m
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = Plain(v)
	}
	return out
}

// hasOrder reports whether v contains an OrderedMap.
func hasOrder(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, hasOrder)
	case map[string]any:
		for _, x := range v {
			if hasOrder(x) {
				return true
			}
		}
	case OrderedMap:
		return true
	}
	return false
}

// A Constant is one of Salt's named internal constants, extension type 79 (salt/defaults/__init__.py).
type Constant struct {
	Name  string
	Value any
}

// Text returns a string, or a byte string that is valid UTF-8, as text.
func Text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []byte:
		if utf8.Valid(v) {
			return string(v), true
		}
	}
	return "", false
}

// Bytes returns a byte string, or the bytes of a text. Use it for fields that are always binary, because bytes that
// happen to be valid UTF-8 arrive as text.
func Bytes(v any) ([]byte, bool) {
	switch v := v.(type) {
	case []byte:
		return v, true
	case string:
		return []byte(v), true
	}
	return nil, false
}

// Map returns a map whose keys are all text. It returns false for a nil map.
func Map(v any) (map[string]any, bool) {
	switch v := v.(type) {
	case map[string]any:
		return v, v != nil
	case OrderedMap:
		return v.Map(), true
	}
	return nil, false
}

// List returns an array.
func List(v any) ([]any, bool) {
	l, ok := v.([]any)
	return l, ok
}

// Int returns an integer that fits an int64. It returns false for bools, floats and numeric text.
func Int(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case int:
		return int64(v), true
	case uint64:
		return int64(v), v <= math.MaxInt64
	case int32:
		return int64(v), true
	case uint32:
		return int64(v), true
	case int16:
		return int64(v), true
	case uint16:
		return int64(v), true
	case int8:
		return int64(v), true
	case uint8:
		return int64(v), true
	case uint:
		return int64(v), uint64(v) <= math.MaxInt64
	}
	return 0, false
}
