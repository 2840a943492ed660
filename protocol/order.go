package protocol

import (
	"slices"

	"github.com/brine-salt/brine/protocol/payload"
)

// keepOrder gives fields of a decoded map their maps in the order in which they were packed, where there is an order to keep.
func keepOrder(m map[string]any, packed []byte, fields ...string) {
	if !slices.ContainsFunc(fields, func(f string) bool { return severalKeys(m[f]) }) {
		return
	}
	v, err := payload.UnmarshalOrdered(packed, payload.Limits{})
	if err != nil {
		return // it was decoded before: this is within the same limits
	}
	o, _ := v.(payload.OrderedMap)
	for _, f := range fields {
		if v, ok := o.Get(f); ok {
			m[f] = v
		}
	}
}

// severalKeys says whether there is a map with more than one key in v.
func severalKeys(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, severalKeys)
	case map[any]any:
		return len(v) > 1 || len(v) == 1 && severalKeys(first(v))
	case map[string]any:
		if _, keywords := v[kwargMark]; keywords { // they become parameters, by name
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

func first[K comparable](m map[K]any) any {
	for _, v := range m {
		return v
	}
	return nil
}

// inOrder says whether there is a payload.OrderedMap in v.
func inOrder(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, inOrder)
	case payload.OrderedMap:
		return true
	}
	return false
}
