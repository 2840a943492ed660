package execplugin

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// bytesKey marks bytes that are no text: {"__bytes__": "<base64>"}.
const bytesKey = "__bytes__"

// pairsKey marks a map with other keys than texts: {"__pairs__": [[key, value]]}. Only our own host is told of such maps; programs
// see the keys as texts.
const pairsKey = "__pairs__"

// maxDepth bounds the nesting of a value that is sent.
const maxDepth = 200

// encode encodes a value as one line of JSON.
func encode(v any, pairs bool) ([]byte, error) {
	plain, err := toJSON(v, pairs, 0)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b) // ends the line
	enc.SetEscapeHTML(false)
	if err := enc.Encode(plain); err != nil {
		return nil, modules.Errorf("cannot pass the arguments on: %v", err)
	}
	if b.Len() > maxMessage {
		return nil, modules.Errorf("cannot pass the arguments on: they are longer than %d bytes", maxMessage)
	}
	return b.Bytes(), nil
}

// toJSON gives a value the types that JSON has: keys become text, times ISO 8601, numbers beyond the finite null.
func toJSON(v any, pairs bool, depth int) (any, error) {
	if depth > maxDepth {
		return nil, modules.Errorf("cannot pass on what is nested more than %d deep", maxDepth)
	}
	switch v := v.(type) {
	case []byte:
		if utf8.Valid(v) {
			return string(v), nil
		}
		return map[string]any{bytesKey: base64.StdEncoding.EncodeToString(v)}, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, nil
		}
	case time.Time:
		return v.Format("2006-01-02T15:04:05.999999"), nil
	case []string:
		return v, nil
	case []any:
		list := make([]any, len(v))
		for i, x := range v {
			var err error
			if list[i], err = toJSON(x, pairs, depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	case *pyobj.Dict:
		if pairs {
			return orderedPairs(v, depth)
		}
		return toJSON(pyobj.Plain(v), false, depth)
	case *pyobj.List:
		return toJSON(v.Items, pairs, depth)
	case pyobj.Tuple:
		return toJSON([]any(v), pairs, depth)
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, x := range v {
			var err error
			if m[k], err = toJSON(x, pairs, depth+1); err != nil {
				return nil, err
			}
		}
		return m, nil
	case map[any]any:
		if pairs && slices.ContainsFunc(slices.Collect(maps.Keys(v)), func(k any) bool { _, text := k.(string); return !text }) {
			return toPairs(v, depth)
		}
		m := make(map[string]any, len(v))
		for k, x := range v {
			var err error
			if m[pytext.Str(k)], err = toJSON(x, pairs, depth+1); err != nil {
				return nil, err
			}
		}
		return m, nil
	}
	return v, nil
}

func toPairs(m map[any]any, depth int) (any, error) {
	pairs := make([]any, 0, len(m))
	for k, x := range m {
		key, err := toJSON(k, true, depth+1)
		if err != nil {
			return nil, err
		}
		value, err := toJSON(x, true, depth+1)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, []any{key, value})
	}
	return map[string]any{pairsKey: pairs}, nil
}

// orderedPairs returns a map as a list of pairs, which keeps its order.
func orderedPairs(d *pyobj.Dict, depth int) (any, error) {
	pairs := make([]any, 0, d.Len())
	for k, x := range d.All() {
		key, err := toJSON(k, true, depth+1)
		if err != nil {
			return nil, err
		}
		value, err := toJSON(x, true, depth+1)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, []any{key, value})
	}
	return map[string]any{pairsKey: pairs}, nil
}

// fromPairs converts pairs to a map, or returns nil if the list holds anything else.
func fromPairs(list []any) map[any]any {
	m := make(map[any]any, len(list))
	for _, x := range list {
		pair, ok := x.([]any)
		if !ok || len(pair) != 2 {
			return nil
		}
		switch key := fromJSON(pair[0]).(type) {
		case nil, bool, int64, uint64, float64, string:
			m[key] = fromJSON(pair[1])
		default:
			m[pytext.Str(key)] = fromJSON(pair[1])
		}
	}
	return m
}

// fromJSON finds bytes and maps again.
func fromJSON(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = fromJSON(v[i])
		}
	case map[string]any:
		if text, ok := v[bytesKey].(string); ok && len(v) == 1 {
			if b, err := base64.StdEncoding.DecodeString(text); err == nil {
				return b
			}
		}
		if list, ok := v[pairsKey].([]any); ok && len(v) == 1 {
			if m := fromPairs(list); m != nil {
				return m
			}
		}
		for k := range v {
			v[k] = fromJSON(v[k])
		}
	}
	return v
}

func number(v any) string { return pytext.Str(v) }

// decode reads a message.
func decode(line []byte) (map[string]any, error) {
	v, err := pyjson.Parse(line)
	if err != nil {
		return nil, fail("%v", err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fail("a message is an object, not %.200s", pytext.Repr(v))
	}
	return m, nil
}
