package jsonschema

import (
	"math"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/python/pyjson"
)

func TestCheck(t *testing.T) {
	cases := []struct{ schema, value, want string }{
		{`{"type":"string"}`, `"x"`, ""},
		{`{"type":"string"}`, `5`, "v: 5 is not a string"},
		{`{"type":["integer","null"]}`, `null`, ""},
		{`{"type":["integer","null"]}`, `"x"`, "v: 'x' is not an integer or None"},
		{`{"type":"integer"}`, `5.0`, ""},
		{`{"type":"integer"}`, `5.5`, "v: 5.5 is not an integer"},
		{`{"type":"integer"}`, `true`, "v: True is not an integer"},
		{`{"type":"boolean"}`, `1`, "v: 1 is not a boolean"},
		{`{"type":"number"}`, `1`, ""},
		{`{"enum":["a",1]}`, `1.0`, ""},
		{`{"enum":["a",1]}`, `"b"`, "v: 'b' is not one of ['a', 1]"},
		{`{"const":{"a":[1]}}`, `{"a":[1]}`, ""},
		{`{"const":{"a":[1]}}`, `{"a":[2]}`, "v: {'a': [2]} is not {'a': [1]}"},
		{`{"minimum":1,"maximum":3}`, `0`, "v: 0 is less than 1"},
		{`{"minimum":1,"maximum":3}`, `4`, "v: 4 is more than 3"},
		{`{"exclusiveMinimum":1}`, `1`, "v: 1 is not more than 1"},
		{`{"exclusiveMaximum":1.5}`, `1.5`, "v: 1.5 is not less than 1.5"},
		{`{"multipleOf":0.1}`, `0.3`, ""},
		{`{"multipleOf":2}`, `3`, "v: 3 is not a multiple of 2"},
		{`{"minLength":2}`, `"ä"`, "v: 'ä' has 1 of at least 2 elements"},
		{`{"maxLength":2}`, `"äää"`, "v: 'äää' has 3 of at most 2 elements"},
		{`{"pattern":"^a+$"}`, `"aab"`, "v: 'aab' does not match ^a+$"},
		{`{"items":{"type":"string"},"minItems":1}`, `["a",2]`, "v[1]: 2 is not a string"},
		{`{"items":{"type":"string"},"minItems":1}`, `[]`, "v: [] has 0 of at least 1 elements"},
		{`{"uniqueItems":true}`, `[1,2,1.0]`, "v: 1.0 is there twice"},
		{`{"properties":{"a":{"type":"string"}},"required":["a"]}`, `{}`, `v: "a" is missing`},
		{`{"properties":{"a":{"type":"string"}},"additionalProperties":false}`, `{"a":"x","b":1}`, "v.b: 1 is not allowed"},
		{`{"additionalProperties":{"type":"integer"}}`, `{"b":"x"}`, "v.b: 'x' is not an integer"},
		{`{"maxProperties":1}`, `{"a":1,"b":2}`, "v: {'a': 1, 'b': 2} has 2 of at most 1 elements"},
		{`{"anyOf":[{"type":"string"},{"minimum":5}]}`, `4`, "v: 4 fits none of the 2 possibilities"},
		{`{"oneOf":[{"type":"integer"},{"minimum":5}]}`, `6`, "v: 6 does not fit exactly one of the 2 possibilities"},
		{`{"allOf":[{"type":"integer"},{"minimum":5}]}`, `4`, "v: 4 is less than 5"},
		{`{"not":{"type":"null"}}`, `null`, "v: None is not allowed"},
		{`{"title":"x","description":"y","format":"date","default":3}`, `null`, ""},
		{`true`, `null`, ""},
	}
	for _, c := range cases {
		s, err := Compile(parse(t, c.schema))
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		got := ""
		if err := s.Check(parse(t, c.value), "v", false); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.schema, c.value, got, c.want)
		}
	}
}

func parse(t *testing.T, text string) any {
	t.Helper()
	v, err := pyjson.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCompileRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`5`:                         "schema: a schema is an object or a bool, not 5",
		`{"type":"text"}`:           `schema.type: there is no type "text"`,
		`{"$ref":"#/x"}`:            "schema.$ref: this keyword is not supported",
		`{"items":{"pattern":"("}}`: "schema.items.pattern: error parsing regexp: missing closing ): `(`",
		`{"minimum":"x"}`:           "schema.minimum: not a usable number: 'x'",
		`{"required":"x"}`:          "schema.required: not a list of strings",
		`{"anyOf":[]}`:              "schema.anyOf: not a list of schemas",
	} {
		if _, err := Compile(parse(t, text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	deep := strings.Repeat(`{"not":`, 100) + "true" + strings.Repeat("}", 100)
	if _, err := Compile(parse(t, deep)); err == nil {
		t.Error("a schema nested 100 deep is taken")
	}
}

func TestOwnValues(t *testing.T) {
	s, err := Compile(map[string]any{"properties": map[string]any{"a": map[string]any{"type": "string"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(map[any]any{"a": []byte("x"), int64(1): math.NaN()}, "v", false); err != nil {
		t.Error(err)
	}
	err = s.Check(map[any]any{"a": int64(12345)}, "v", true)
	if err == nil || strings.Contains(err.Error(), "12345") {
		t.Errorf("the hidden value shows: %v", err)
	}
}
