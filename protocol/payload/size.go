package payload

// maxDepth is the depth at which Size stops.
const maxDepth = 100

// Size estimates the memory of a value in bytes.
func Size(v any) int { return sizeOf(v, maxDepth) }

func sizeOf(v any, depth int) int {
	const word = 16
	if depth == 0 {
		return word
	}
	switch v := v.(type) {
	case string:
		return word + len(v)
	case []byte:
		return word + len(v)
	case []string:
		n := word
		for _, x := range v {
			n += word + len(x)
		}
		return n
	case []any:
		n := word
		for _, x := range v {
			n += sizeOf(x, depth-1)
		}
		return n
	case map[string]any:
		n := word
		for k, x := range v {
			n += 2*word + len(k) + sizeOf(x, depth-1)
		}
		return n
	case OrderedMap:
		n := word
		for _, p := range v {
			n += 2*word + sizeOf(p.Key, depth-1) + sizeOf(p.Value, depth-1)
		}
		return n
	}
	return word
}
