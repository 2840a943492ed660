package restapi

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/internal/pyjson"
	"github.com/brine-salt/brine/internal/yaml"
	"github.com/brine-salt/brine/protocol/payload"
)

// read takes the body in the format that it says it has.
func (s *Server) read(q *request) error {
	if q.Method != http.MethodPost || q.ContentLength == 0 {
		return nil
	}
	if kind, _, _ := mime.ParseMediaType(q.Header.Get("Content-Type")); kind == "multipart/form-data" && q.URL.Path == ordersPath {
		return s.readParts(q)
	}
	free, of, err := s.admit(q.Request)
	if err != nil {
		return err
	}
	// The request keeps its own body: the server knows what to do with one that nobody wanted.
	// guard: CVE-2025-13836,CVE-2025-47287 TestCVE_2025_47287_BodiesAreBounded instead: b, err := io.ReadAll(q.Body)
	b, err := io.ReadAll(http.MaxBytesReader(q.w, q.Body, s.o.MaxBody))
	free()
	if err != nil {
		return err
	}
	q.charged = of
	q.raw = string(b)
	if len(b) == 0 {
		return nil
	}
	kind, _, err := mime.ParseMediaType(q.Header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	switch kind {
	case "application/json":
		if q.body, err = pyjson.ParseSent(b); err != nil {
			return &statusError{http.StatusBadRequest, "Invalid JSON document"}
		}
		if v, err := pyjson.ParseObject(b); err == nil {
			keepOrder(q.body, ordered.ToWire(v))
		}
	case "application/x-yaml", "text/yaml":
		if q.body, err = yaml.Parse(b, "request"); err != nil {
			return &statusError{http.StatusBadRequest, "Invalid YAML document"}
		}
		if v, err := yaml.ParseOrdered(b, "request"); err == nil {
			keepOrder(q.body, v)
		}
	case "text/plain":
		if q.body, err = pyjson.ParseSent(b); err != nil {
			q.body = q.raw
		}
	case "application/x-www-form-urlencoded":
		return q.form()
	default:
		return &statusError{http.StatusNotAcceptable, "Content type not supported"}
	}
	return nil
}

// form reads a form: fields that come several times are lists, empty ones are left out; arg and kwarg are YAML.
func (q *request) form() error {
	fields, err := url.ParseQuery(q.raw)
	if err != nil {
		return &statusError{http.StatusBadRequest, "Invalid form"}
	}
	out := map[string]any{}
	for name, values := range fields {
		values = slices.DeleteFunc(values, func(v string) bool { return v == "" }) // as Python's parse_qsl
		switch fields[name] = values; len(values) {
		case 0:
			delete(fields, name)
		case 1:
			out[name] = values[0]
		default:
			out[name] = nested.Anys(values)
		}
	}
	if v, ok := out["kwarg"].(string); ok {
		out["kwarg"] = ordered.ToWire(yaml.ParseValueObject(v))
		if kw, ok := payload.Map(out["kwarg"]); ok {
			out["kwarg"] = kw
		}
	}
	if values, ok := fields["arg"]; ok {
		var args []any
		for _, v := range values {
			args = append(args, ordered.ToWire(yaml.ParseValueObject(v)))
		}
		out["arg"] = args
	}
	q.body = out
	return nil
}

// keepOrder gives the arguments in a body, or in those of a list of bodies, the maps that they have in the same body in its order: what is
// inside "arg" and below the names of "kwarg".
func keepOrder(body, inOrder any) {
	list, many := body.([]any)
	if ordered, ok := inOrder.([]any); many && ok && len(list) == len(ordered) {
		for i, v := range list {
			keepOrder(v, ordered[i])
		}
	}
	m, _ := body.(map[string]any)
	from, _ := payload.Map(inOrder)
	if _, ok := m["arg"].([]any); ok {
		m["arg"] = from["arg"]
	}
	if _, ok := m["kwarg"].(map[string]any); ok {
		m["kwarg"], _ = payload.Map(from["kwarg"])
	}
}

// chunks are the commands of a body: one map, or a list of maps.
func (q *request) chunks() ([]map[string]any, error) {
	list, ok := q.body.([]any)
	if m, one := q.body.(map[string]any); one && len(m) > 0 {
		list, ok = []any{m}, true
	}
	if !ok {
		return nil, &statusError{http.StatusBadRequest, "Lowstates must be a list"}
	}
	// guard: CVE-2025-47287 TestCVE_2025_47287_BodiesAreBounded
	if len(list) > maxChunks {
		return nil, &statusError{http.StatusBadRequest, "There are too many commands in one request"}
	}
	out := make([]map[string]any, len(list))
	for i, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, &statusError{http.StatusBadRequest, "Lowstates must be a list of maps"}
		}
		out[i] = m
	}
	return out, nil
}

// maxChunks bounds the commands of one request.
const maxChunks = 1000

// marshal writes JSON as stock does, by Python's json.dumps with ensure_ascii=False: a blank behind each comma and colon, and no escapes for
// HTML. What JSON cannot carry becomes text.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(plain(v)); err != nil {
		return nil, err
	}
	return spaced(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// spaced puts a blank behind the commas and colons of JSON that are not in texts.
func spaced(b []byte) []byte {
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
		if err := e.Encode(plain(keyText(p.Key))); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := e.Encode(plain(p.Value)); err != nil {
			return nil, err
		}
	}
	if len(o) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes(), nil // the encoder drops the line ends
}

// plain turns values that JSON does not have into some that it has.
func plain(v any) any {
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
			out[i] = plain(v[i])
		}
		return out
	case []string:
		return nested.Anys(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = plain(v[k])
		}
		return out
	case payload.OrderedMap:
		return object(v)
	case map[any]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[keyText(k)] = plain(v[k])
		}
		return out
	}
	return v
}
