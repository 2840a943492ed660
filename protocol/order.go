package protocol

import (
	"slices"

	"github.com/brine-salt/brine/protocol/payload"
)

// keepOrder replaces fields of a decoded map by their values with maps in the order in which they were packed. It
// decodes a second time only if a map has several keys, because few jobs have such arguments and ordered maps cost
// more.
func keepOrder(m map[string]any, packed []byte, fields ...string) {
	if !slices.ContainsFunc(fields, func(f string) bool { return severalKeys(m[f]) }) {
		return
	}
	v, err := payload.UnmarshalOrdered(packed, payload.Limits{})
	if err != nil {
		return // cannot happen: the first decoding had the same limits
	}
	o, _ := v.(payload.OrderedMap)
	for _, f := range fields {
		if v, ok := o.Get(f); ok {
			m[f] = v
		}
	}
}

// severalKeys reports whether v contains a map with more than one key.
func severalKeys(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, severalKeys)
	case map[any]any:
		return len(v) > 1 || len(v) == 1 && severalKeys(first(v))
	case map[string]any:
		if _, keywords := v[kwargMark]; keywords { // keyword arguments are bound by name
			for _, x := range v {
				if severalKeys(x) {
					return true
				}
			}
			return false
		}
		return len(v) > 1 || len(v) == 1 && severalKeys(first(v))
	}
	return false
}

// first returns the value of a map with one key.
func first[K comparable](m map[K]any) any {
	for _, v := range m {
		return v
	}
	return nil
}

// inOrder reports whether v contains a payload.OrderedMap.
func inOrder(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, inOrder)
	case payload.OrderedMap:
		return true
	}
	return false
}
