package conf

// pyEqual implements Python's ==: numbers and booleans by value, collections by content.
func pyEqual(a, b any) bool {
	if x, ok := pyNumber(a); ok {
		y, ok := pyNumber(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case string:
		s, ok := b.(string)
		return ok && s == a
	case []any:
		l, ok := b.([]any)
		if !ok || len(l) != len(a) {
			return false
		}
		for i := range a {
			if !pyEqual(a[i], l[i]) {
				return false
			}
		}
		return true
	case []byte:
		s, ok := b.([]byte)
		return ok && string(s) == string(a)
	}
	ma, mb := anyMap(a), anyMap(b)
	if ma == nil || mb == nil || len(ma) != len(mb) {
		return false
	}
	for k, v := range ma {
		w, ok := mb[k]
		if !ok || !pyEqual(v, w) {
			return false
		}
	}
	return true
}

func pyNumber(v any) (float64, bool) {
	if _, text := v.(string); text {
		return 0, false
	}
	return number(v)
}

// pyType returns the name of a value's Python type.
func pyType(v any) string {
	switch v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64, int, uint64:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case []byte:
		return "bytes"
	case []any:
		return "list"
	}
	return "dict"
}
