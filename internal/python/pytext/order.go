package pytext

import (
	"slices"
	"sort"
)

// SortKeys returns the keys of a mapping in the order of [Less].
func SortKeys(m map[any]any) []any {
	keys := make([]any, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return Less(keys[i], keys[j]) }) // compiles to less code than slices.SortFunc for this type
	return keys
}

// Less orders scalars: first numbers by value (False is 0, True is 1), then texts, then others by their [Repr].
func Less(a, b any) bool {
	ra, na := rank(a)
	rb, nb := rank(b)
	if ra != rb {
		return ra < rb
	}
	switch ra {
	case 0:
		return na < nb
	case 1:
		return a.(string) < b.(string)
	}
	return Repr(a) < Repr(b)
}

func rank(v any) (kind int, number float64) {
	switch v := v.(type) {
	case bool:
		if v {
			return 0, 1
		}
		return 0, 0
	case int64:
		return 0, float64(v)
	case int:
		return 0, float64(v)
	case uint64:
		return 0, float64(v)
	case float64:
		return 0, v
	case string:
		return 1, 0
	}
	return 2, 0
}

func sortedText(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// quoted returns Python's repr of a str.
func quoted(s string) string { return string(appendQuoted(nil, s)) }

// Bytes returns Python's repr of bytes, with the leading b.
func Bytes(b []byte) string { return string(appendBytes(nil, b)) }
