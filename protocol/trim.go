package protocol

import (
	"unicode/utf8"

	"github.com/brine-salt/brine/protocol/payload"
)

// trimmed replaces a value that was too large.
const trimmed = "VALUE_TRIMMED"

// TrimEvent replaces the largest values of an event's data until it has at most max bytes, as Salt's option
// max_event_size does (salt/utils/dicttrim.py). It considers the values of maps at any depth. Like Salt it counts
// only the references of a list, so a list of few large strings stays. data is not changed; maps are copied where
// needed.
func TrimEvent(data map[string]any, max int) map[string]any {
	if max <= 0 || packedSize(data) <= max {
		return data
	}
	for percent := 50; percent > 0; percent -= 10 {
		data = trimValues(data, max*percent/100)
		if packedSize(data) < max {
			break
		}
	}
	return data
}

// packedSize returns the size that Python reports for the packed data, a bytes object.
func packedSize(data map[string]any) int {
	b, err := payload.MarshalBin(data)
	if err != nil {
		return 0 // packing fails later with an error
	}
	return pyBytes + len(b)
}

// What Python's objects occupy beside their content (sys.getsizeof on 64 bits).
const (
	pyBytes   = 33
	pyASCII   = 49
	pyUnicode = 76
	pyList    = 56
)

// trimValues returns a copy of m in which values over limit are replaced.
func trimValues(m map[string]any, limit int) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = trimValue(v, limit)
	}
	return out
}

func trimValue(v any, limit int) any {
	large := false
	switch v := v.(type) {
	case map[string]any:
		return trimValues(v, limit)
	case payload.OrderedMap:
		out := make(payload.OrderedMap, len(v))
		for i, p := range v {
			out[i] = payload.Pair{Key: p.Key, Value: trimValue(p.Value, limit)}
		}
		return out
	case string:
		large = pyStringSize(v) > limit
	case []byte:
		large = pyBytes+len(v) > limit
	case []any:
		large = pyList+8*len(v) > limit
	}
	if large {
		return trimmed
	}
	return v
}

// pyStringSize returns the size of a string in Python: one, two or four bytes per character, depending on the
// widest.
func pyStringSize(s string) int {
	widest := rune(0)
	for _, r := range s {
		widest = max(widest, r)
	}
	switch n := utf8.RuneCountInString(s); {
	case widest < 0x80:
		return pyASCII + n
	case widest < 0x100:
		return pyUnicode - 3 + n
	case widest < 0x10000:
		return pyUnicode - 2 + 2*n
	default:
		return pyUnicode + 4*n
	}
}
