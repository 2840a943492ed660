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

// KeyText returns a map key in JSON form.
func KeyText(k any) string { return pytext.Str(k) }

// Marshal encodes JSON like stock, which uses Python's json.dumps with ensure_ascii=False: with a blank after
// commas and colons, and without HTML escapes. Values that JSON cannot represent become text.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(jsonable(v)); err != nil {
		return nil, err
	}
	return addBlanks(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// addBlanks adds a blank after the commas and colons of JSON outside of strings.
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

// object is a map that keeps its order in JSON.
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
	return b.Bytes(), nil // the encoder removes the line breaks
}

// jsonable converts values that JSON cannot represent.
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
