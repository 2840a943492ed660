package protocol

import (
	"unicode/utf8"

	"github.com/brine-salt/brine/protocol/payload"
)

// trimmed stands where a value was too large.
const trimmed = "VALUE_TRIMMED"

// TrimEvent replaces the largest values of an event's data until it has no more than max bytes, as Salt's option
// max_event_size does (salt/utils/dicttrim.py). Only values of maps are looked at, to any depth; like Salt it takes a list
// for as large as its references, so a list of few large texts stays. data is not changed; what has to be is copied.
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

// packedSize is how large Python takes the packed data for: that of a bytes object.
func packedSize(data map[string]any) int {
	b, err := payload.MarshalBin(data)
	if err != nil {
		return 0 // what cannot be packed is refused later
	}
	return pyBytes + len(b)
}

// Sizes of Python's objects beyond their content (sys.getsizeof on 64 bits).
const (
	pyBytes   = 33
	pyASCII   = 49
	pyUnicode = 76
	pyList    = 56
)

func trimValues(m map[string]any, limit int) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		switch x := v.(type) {
		case map[string]any:
			out[k] = trimValues(x, limit)
			continue
		case string:
			if pyStringSize(x) > limit {
				v = trimmed
			}
		case []byte:
			if pyBytes+len(x) > limit {
				v = trimmed
			}
		case []any:
			if pyList+8*len(x) > limit {
				v = trimmed
			}
		}
		out[k] = v
	}
	return out
}

// pyStringSize is what Python needs for a text: one, two or four bytes for each character, as the widest one wants.
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
