// Package jsonschema checks plain values against JSON Schemas. It supports the part of the 2020-12 vocabulary that
// describes function arguments. A schema with an unsupported keyword that would restrict values is refused.
//
// Supported are type, enum, const, minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, minLength,
// maxLength, pattern (in Go's syntax), items, minItems, maxItems, uniqueItems, properties, required,
// additionalProperties, minProperties, maxProperties, allOf, anyOf, oneOf and not. Keywords that only describe, such
// as title, description and format, are ignored.
//
// github.com/google/jsonschema-go is not used. It adds 304 KiB, which is beyond the minion's budget. It ignores
// unknown keywords and does not limit nesting, while schemas here come from third-party programs. It also treats
// bytes as an array.
package jsonschema

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// maxDepth limits the nesting of a schema and of the values to check.
const maxDepth = 64

// maxUnique limits the length of lists for uniqueItems, which compares each pair of elements.
const maxUnique = 4096

// A Schema is a compiled schema. The zero value and nil accept everything.
type Schema struct {
	never      bool // the schema is false
	types      []string
	enum       []any // nil means no restriction
	hasConst   bool
	constant   any
	limits     []limit
	pattern    *regexp.Regexp
	items      *Schema
	unique     bool
	properties map[string]*Schema
	required   []string
	additional *Schema
	allOf      []*Schema
	anyOf      []*Schema
	oneOf      []*Schema
	not        *Schema
}

// limit is a keyword with a number.
type limit struct {
	keyword string
	n       float64
}

// Compile compiles a schema: a map as JSON decodes it, or a bool.
func Compile(v any) (*Schema, error) { return compile(v, "schema", 0) }

func compile(v any, at string, depth int) (*Schema, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%s: nested more than %d deep", at, maxDepth)
	}
	if b, ok := v.(bool); ok {
		return &Schema{never: !b}, nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: a schema is an object or a bool, not %s", at, pytext.Repr(v))
	}
	s := &Schema{}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if err := s.keyword(k, m[k], at, depth); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// keyword reads one keyword.
func (s *Schema) keyword(k string, v any, at string, depth int) (err error) {
	here := at + "." + k
	switch k {
	case "type":
		s.types, err = typeNames(v, here)
	case "enum":
		list, ok := v.([]any)
		if !ok {
			return fmt.Errorf("%s: not a list", here)
		}
		s.enum = append([]any{}, list...)
	case "const":
		s.hasConst, s.constant = true, v
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
		"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		n, ok := number(v)
		if !ok || k == "multipleOf" && n <= 0 {
			return fmt.Errorf("%s: not a usable number: %s", here, pytext.Repr(v))
		}
		s.limits = append(s.limits, limit{k, n})
	case "pattern":
		text, ok := v.(string)
		if !ok {
			return fmt.Errorf("%s: not a string", here)
		}
		if s.pattern, err = regexp.Compile(text); err != nil {
			return fmt.Errorf("%s: %w", here, err)
		}
	case "uniqueItems":
		s.unique, _ = v.(bool)
	case "required":
		s.required, err = texts(v, here)
	case "items":
		s.items, err = compile(v, here, depth+1)
	case "additionalProperties":
		s.additional, err = compile(v, here, depth+1)
	case "not":
		s.not, err = compile(v, here, depth+1)
	case "properties":
		err = s.readProperties(v, here, depth)
	case "allOf":
		s.allOf, err = compileList(v, here, depth)
	case "anyOf":
		s.anyOf, err = compileList(v, here, depth)
	case "oneOf":
		s.oneOf, err = compileList(v, here, depth)
	case "$ref", "$dynamicRef", "if", "then", "else", "dependentSchemas", "dependentRequired", "prefixItems", "contains",
		"minContains", "maxContains", "patternProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties":
		return fmt.Errorf("%s: this keyword is not supported", here)
	}
	return err
}

func (s *Schema) readProperties(v any, at string, depth int) error {
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: not an object", at)
	}
	s.properties = make(map[string]*Schema, len(m))
	for name, sub := range m {
		p, err := compile(sub, at+"."+name, depth+1)
		if err != nil {
			return err
		}
		s.properties[name] = p
	}
	return nil
}

func compileList(v any, at string, depth int) ([]*Schema, error) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil, fmt.Errorf("%s: not a list of schemas", at)
	}
	out := make([]*Schema, len(list))
	for i, x := range list {
		s, err := compile(x, fmt.Sprintf("%s[%d]", at, i), depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = s
	}
	return out, nil
}

func typeNames(v any, at string) ([]string, error) {
	if name, ok := v.(string); ok {
		v = []any{name}
	}
	names, err := texts(v, at)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		switch n {
		case "null", "boolean", "integer", "number", "string", "array", "object":
		default:
			return nil, fmt.Errorf("%s: there is no type %q", at, n)
		}
	}
	return names, nil
}

func texts(v any, at string) ([]string, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("%s: not a list of strings", at)
	}
	out := make([]string, len(list))
	for i, x := range list {
		if out[i], ok = x.(string); !ok {
			return nil, fmt.Errorf("%s: not a list of strings", at)
		}
	}
	return out, nil
}

// Check returns an error if a value does not match the schema. name names the value in the error; with hide the error
// does not contain the value.
func (s *Schema) Check(v any, name string, hide bool) error {
	return (&checker{hide: hide}).check(s, v, name, 0)
}

type checker struct{ hide bool }

func (c *checker) fail(at string, v any, format string, args ...any) error {
	shown := pytext.Repr(v)
	if len(shown) > 200 {
		shown = strings.ToValidUTF8(shown[:200], "") + "…"
	}
	if c.hide {
		shown = "the value"
	}
	return fmt.Errorf("%s: %s %s", at, shown, fmt.Sprintf(format, args...))
}

func (c *checker) check(s *Schema, v any, at string, depth int) error {
	if s == nil {
		return nil
	}
	if depth > maxDepth {
		return fmt.Errorf("%s: nested more than %d deep", at, maxDepth)
	}
	switch {
	case s.never:
		return c.fail(at, v, "is not allowed")
	case len(s.types) > 0 && !slices.ContainsFunc(s.types, func(t string) bool { return is(v, t) }):
		return c.fail(at, v, "is not %s", article(s.types))
	case s.enum != nil && !slices.ContainsFunc(s.enum, func(x any) bool { return equal(x, v) }):
		return c.fail(at, v, "is not one of %s", pytext.Repr(s.enum))
	case s.hasConst && !equal(s.constant, v):
		return c.fail(at, v, "is not %s", pytext.Repr(s.constant))
	}
	for _, l := range s.limits {
		if text := l.broken(v); text != "" {
			return c.fail(at, v, "%s", text)
		}
	}
	if err := c.content(s, v, at, depth); err != nil {
		return err
	}
	return c.combined(s, v, at, depth)
}

// content checks texts, lists and maps.
func (c *checker) content(s *Schema, v any, at string, depth int) error {
	if text, ok := stringOf(v); ok {
		if s.pattern != nil && !s.pattern.MatchString(text) {
			return c.fail(at, v, "does not match %s", s.pattern)
		}
		return nil
	}
	if list, ok := v.([]any); ok {
		if s.unique && len(list) > maxUnique {
			return fmt.Errorf("%s: more than %d elements cannot be compared with each other", at, maxUnique)
		}
		for i, x := range list {
			if err := c.check(s.items, x, fmt.Sprintf("%s[%d]", at, i), depth+1); err != nil {
				return err
			}
			if s.unique && slices.ContainsFunc(list[:i], func(y any) bool { return equal(x, y) }) {
				return c.fail(at, x, "is there twice")
			}
		}
		return nil
	}
	m, ok := mapOf(v)
	if !ok {
		return nil
	}
	for _, name := range s.required {
		if _, ok := m[name]; !ok {
			return fmt.Errorf("%s: %q is missing", at, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		sub, known := s.properties[name]
		if !known {
			sub = s.additional
		}
		if err := c.check(sub, m[name], at+"."+name, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) combined(s *Schema, v any, at string, depth int) error {
	for _, sub := range s.allOf {
		if err := c.check(sub, v, at, depth+1); err != nil {
			return err
		}
	}
	fits := func(list []*Schema) (n int) {
		for _, sub := range list {
			if c.check(sub, v, at, depth+1) == nil {
				n++
			}
		}
		return n
	}
	switch {
	case s.anyOf != nil && fits(s.anyOf) == 0:
		return c.fail(at, v, "fits none of the %d possibilities", len(s.anyOf))
	case s.oneOf != nil && fits(s.oneOf) != 1:
		return c.fail(at, v, "does not fit exactly one of the %d possibilities", len(s.oneOf))
	case s.not != nil && c.check(s.not, v, at, depth+1) == nil:
		return c.fail(at, v, "is not allowed")
	}
	return nil
}

// broken returns how a value violates the limit, or "" if it does not or if the limit does not apply to its type.
func (l limit) broken(v any) string {
	if n, ok := number(v); ok {
		switch {
		case l.keyword == "minimum" && n < l.n:
			return "is less than " + pytext.Str(l.value())
		case l.keyword == "maximum" && n > l.n:
			return "is more than " + pytext.Str(l.value())
		case l.keyword == "exclusiveMinimum" && n <= l.n:
			return "is not more than " + pytext.Str(l.value())
		case l.keyword == "exclusiveMaximum" && n >= l.n:
			return "is not less than " + pytext.Str(l.value())
		case l.keyword == "multipleOf" && math.Abs(math.Remainder(n, l.n)) > 1e-9*math.Max(1, math.Abs(n)):
			return "is not a multiple of " + pytext.Str(l.value())
		}
		return ""
	}
	size, what := -1, ""
	if text, ok := stringOf(v); ok {
		size, what = utf8.RuneCountInString(text), "Length"
	} else if list, ok := v.([]any); ok {
		size, what = len(list), "Items"
	} else if m, ok := mapOf(v); ok {
		size, what = len(m), "Properties"
	}
	switch {
	case what != "" && l.keyword == "min"+what && float64(size) < l.n:
		return fmt.Sprintf("has %d of at least %s elements", size, pytext.Str(l.value()))
	case what != "" && l.keyword == "max"+what && float64(size) > l.n:
		return fmt.Sprintf("has %d of at most %s elements", size, pytext.Str(l.value()))
	}
	return ""
}

// value returns the limit as the schema's author probably wrote it: as an integer if possible.
func (l limit) value() any {
	if l.n == math.Trunc(l.n) && math.Abs(l.n) < 1<<53 {
		return int64(l.n)
	}
	return l.n
}

func article(types []string) string {
	names := make([]string, len(types))
	for i, t := range types {
		switch t {
		case "null":
			names[i] = "None"
		case "integer", "array", "object":
			names[i] = "an " + t
		default:
			names[i] = "a " + t
		}
	}
	return strings.Join(names, " or ")
}

// is reports whether a value has a type of JSON Schema. According to the standard a float without a fraction is an
// integer.
func is(v any, typ string) bool {
	switch typ {
	case "null":
		return v == nil
	case "boolean":
		_, ok := v.(bool)
		return ok
	case "integer":
		n, ok := number(v)
		return ok && n == math.Trunc(n)
	case "number":
		_, ok := number(v)
		return ok
	case "string":
		_, ok := stringOf(v)
		return ok
	case "array":
		_, ok := v.([]any)
		return ok
	}
	_, ok := mapOf(v)
	return ok
}

func stringOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	}
	return "", false
}

func mapOf(v any) (map[string]any, bool) {
	switch v := v.(type) {
	case map[string]any:
		return v, true
	case map[any]any:
		m := make(map[string]any, len(v))
		for k, x := range v {
			m[pytext.Str(k)] = x
		}
		return m, true
	}
	return nil, false
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	}
	return 0, false
}

// equal compares values as JSON does, with numbers by value.
func equal(a, b any) bool {
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	if x, ok := a.([]any); ok {
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, equal)
	}
	if x, ok := mapOf(a); ok {
		y, ok := mapOf(b)
		return ok && maps.EqualFunc(x, y, equal)
	}
	return reflect.DeepEqual(a, b)
}
