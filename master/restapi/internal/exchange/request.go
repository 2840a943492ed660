package exchange

import (
	"bytes"
	"fmt"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/protocol/payload"
)

// Request is one request with its body decoded.
type Request struct {
	*http.Request
	W    http.ResponseWriter
	Sent any    // decoded body; may be nil
	Raw  string // the body as received
	// Parts are the parts after the first in multipart/form-data; nil for other types.
	Parts *multipart.Reader
	Code  int // status code of the answer
	// Charged is what was counted against the address's limit for a body without a token, and Refund what of it is
	// given back if the request succeeds.
	Charged, Refund int64
}

// decodeForm decodes a form. Repeated fields become lists, empty ones are left out; arg and kwarg are parsed as
// YAML. Their aliases count together: each value of arg is a document, and a body of 64 KiB has hundreds.
func (q *Request) decodeForm() error {
	fields, err := url.ParseQuery(q.Raw)
	if err != nil {
		return NewError(http.StatusBadRequest, "Invalid form")
	}
	out := map[string]any{}
	for name, values := range fields {
		// like Python's parse_qsl
		values = slices.DeleteFunc(values, func(v string) bool { return v == "" })
		switch fields[name] = values; len(values) {
		case 0:
			delete(fields, name)
		case 1:
			out[name] = values[0]
		default:
			out[name] = nested.Anys(values)
		}
	}
	var parser yaml.Values
	parse := func(text string) (any, error) {
		v, err := parser.ParseObject(text)
		if err != nil {
			return nil, NewError(http.StatusBadRequest, fmt.Sprintf(
				"The aliases in arg and kwarg stand for more than %d values",
				yaml.MaxAliased))
		}
		return ordered.ToWire(v), nil
	}
	if v, ok := out["kwarg"].(string); ok {
		if out["kwarg"], err = parse(v); err != nil {
			return err
		}
		if kw, ok := payload.Map(out["kwarg"]); ok {
			out["kwarg"] = kw
		}
	}
	if values, ok := fields["arg"]; ok {
		var args []any
		for _, text := range values {
			v, err := parse(text)
			if err != nil {
				return err
			}
			args = append(args, v)
		}
		out["arg"] = args
	}
	q.Sent = out
	return nil
}

// keepOrder restores the order of maps in the arguments of a body, or of each body in a list: those in "arg",
// and those below the names of "kwarg". inOrder is the same body in order.
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

// Chunks returns the commands in a body: one map, or a list of maps.
func (q *Request) Chunks() ([]map[string]any, error) {
	list, ok := q.Sent.([]any)
	if m, one := q.Sent.(map[string]any); one && len(m) > 0 {
		list, ok = []any{m}, true
	}
	if !ok {
		return nil, NewError(http.StatusBadRequest, "Lowstates must be a list")
	}
	// guard: CVE-2025-47287 master/restapi:TestCVE_2025_47287_BodiesAreBounded
	if len(list) > maxChunks {
		return nil, NewError(http.StatusBadRequest, "There are too many commands in one request")
	}
	out := make([]map[string]any, len(list))
	for i, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, NewError(http.StatusBadRequest, "Lowstates must be a list of maps")
		}
		out[i] = m
	}
	return out, nil
}

// maxChunks limits the commands of one request.
const maxChunks = 1000

// Named returns the part of the path after the kind, or the query parameter key. "" means all of the kind.
func (q *Request) Named(key string) (string, error) {
	values := q.URL.Query()
	for name := range values {
		if name != key {
			return "", NewError(http.StatusNotFound, "Nothing matches the given URI")
		}
	}
	if v := q.PathValue(key); v != "" {
		return v, nil
	}
	return values.Get(key), nil
}

// Fields returns the map that is the body of a /v1 request. Fields other than names are an error.
func (q *Request) Fields(names ...string) (map[string]any, error) {
	m, ok := q.Sent.(map[string]any)
	if !ok {
		return nil, NewError(http.StatusBadRequest, "The body must be a map")
	}
	for key := range m {
		if !slices.Contains(names, key) {
			return nil, NewError(http.StatusBadRequest,
				fmt.Sprintf("There is no field %.80q; there are %s", key,
					strings.Join(names, ", ")))
		}
	}
	return m, nil
}

const (
	// yamlPrice is how much more a byte of YAML costs than one of JSON.
	yamlPrice = 4
	// aliasPrice is what aliases cost at least: in 150 bytes they can stand for 100,000 values, which take 30
	// milliseconds. The values of a form share these.
	aliasPrice = 128 << 10
)

// Price returns what it costs to decode a body, as the number of bytes of JSON that take as long: 4 KiB take up to half
// a millisecond. YAML takes longer, and of a form the fields arg and kwarg, which are YAML.
func (q *Request) Price(body []byte) int64 {
	n := int64(len(body))
	var inYAML int64
	var aliases bool
	switch kind, _, _ := mime.ParseMediaType(q.Header.Get("Content-Type")); kind {
	case "application/x-yaml", "text/yaml":
		inYAML, aliases = n, hasAliases(body)
	case "application/x-www-form-urlencoded":
		inYAML, aliases = yamlOfForm(body)
	}
	// guard: small-bodies TestPrice instead: n = max(n, 0)
	n += (yamlPrice - 1) * inYAML
	// guard: small-bodies TestPrice,master/restapi:TestRefusedSmallBodies
	if aliases {
		n = max(n, aliasPrice)
	}
	return n
}

// yamlOfForm returns how many bytes of a form are fields that decodeForm parses as YAML, and whether one of them has
// aliases.
func yamlOfForm(form []byte) (n int64, aliases bool) {
	for field := range bytes.SplitSeq(form, []byte("&")) {
		name, value, _ := bytes.Cut(field, []byte("="))
		switch name, _ := url.QueryUnescape(string(name)); name {
		case "arg", "kwarg":
		default:
			continue
		}
		n += int64(len("&") + len(field))           // an empty value costs something, too
		text, _ := url.QueryUnescape(string(value)) // decodeForm refuses invalid escapes
		aliases = aliases || hasAliases([]byte(text))
	}
	return min(n, int64(len(form))), aliases
}

// hasAliases reports whether a YAML document may have anchors and aliases.
func hasAliases(document []byte) bool {
	return bytes.ContainsRune(document, '&') && bytes.ContainsRune(document, '*')
}

// Decode stores a body and decodes it by its Content-Type. An empty body decodes to nil; a type that Salt does
// not accept is answered with 406.
func (q *Request) Decode(body []byte) error {
	q.Raw = string(body)
	if len(body) == 0 {
		return nil
	}
	kind, _, err := mime.ParseMediaType(q.Header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	switch kind {
	case "application/json":
		if q.Sent, err = pyjson.ParseSent(body); err != nil {
			return NewError(http.StatusBadRequest, "Invalid JSON document")
		}
		if v, err := pyjson.ParseObject(body); err == nil {
			keepOrder(q.Sent, ordered.ToWire(v))
		}
	case "application/x-yaml", "text/yaml":
		if q.Sent, err = yaml.Parse(body, "request"); err != nil {
			return NewError(http.StatusBadRequest, "Invalid YAML document")
		}
		if v, err := yaml.ParseOrdered(body, "request"); err == nil {
			keepOrder(q.Sent, v)
		}
	case "text/plain":
		if q.Sent, err = pyjson.ParseSent(body); err != nil {
			q.Sent = q.Raw
		}
	case "application/x-www-form-urlencoded":
		return q.decodeForm()
	default:
		return NewError(http.StatusNotAcceptable, "Content type not supported")
	}
	return nil
}
