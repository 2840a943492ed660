package exchange

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/protocol/payload"
)

// KeyText is a map's key as JSON has it.
func KeyText(k any) string { return pytext.Str(k) }

// Marshal writes JSON as stock does, by Python's json.dumps with ensure_ascii=False: a blank behind each comma and
// colon, and no escapes for HTML. What JSON cannot carry becomes text.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(jsonable(v)); err != nil {
		return nil, err
	}
	return addBlanks(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// addBlanks puts a blank behind the commas and colons of JSON that are not in texts.
func addBlanks(b []byte) []byte {
	out := make([]byte, 0, len(b)+len(b)/8)
	quoted := false
	for i := 0; i < len(b); i++ {
		out = append(out, b[i])
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
			out = append(out, b[i])
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == ':'):
			out = append(out, ' ')
		}
	}
	return out
}

// object is a map whose JSON keeps its order.
type object payload.OrderedMap

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for i, p := range o {
		b.WriteByte("{,"[min(i, 1)])
		if err := e.Encode(jsonable(KeyText(p.Key))); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := e.Encode(jsonable(p.Value)); err != nil {
			return nil, err
		}
	}
	if len(o) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes(), nil // the encoder drops the line ends
}

// jsonable turns values that JSON does not have into some that it has.
func jsonable(v any) any {
	switch v := v.(type) {
	case []byte:
		if utf8.Valid(v) {
			return string(v)
		}
		return strings.ToValidUTF8(string(v), "�")
	case string:
		if utf8.ValidString(v) {
			return v
		}
		return strings.ToValidUTF8(v, "�")
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
		return v
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = jsonable(v[i])
		}
		return out
	case []string:
		return nested.Anys(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = jsonable(v[k])
		}
		return out
	case payload.OrderedMap:
		return object(v)
	case map[any]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[KeyText(k)] = jsonable(v[k])
		}
		return out
	}
	return v
}
