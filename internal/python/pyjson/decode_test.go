package pyjson

import (
	"testing"

	"github.com/brine-salt/brine/modules/pyobj"
)

func TestParseObject(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"b": [1, -0, 2.5, 1e2, 123456789012345678901, {}, []], "a": {"\u00e9\n": null}}`, `{'b': [1, 0, 2.5, 100.0, 123456789012345678901, {}, []], 'a': {'é\n': None}}`},
		{` [true, false, NaN, -Infinity, "\ud83d\ude00"] `, `[True, False, nan, -inf, '😀']`},
		{``, `Expecting value: line 1 column 1 (char 0)`},
		{`{`, `Expecting property name enclosed in double quotes: line 1 column 2 (char 1)`},
		{`{"a": 1,}`, `Expecting property name enclosed in double quotes: line 1 column 9 (char 8)`},
		{`{"a" 1}`, `Expecting ':' delimiter: line 1 column 6 (char 5)`},
		{"{\"é\":\n1 2}", `Expecting ',' delimiter: line 2 column 3 (char 8)`},
		{`[1, ]`, `Expecting value: line 1 column 5 (char 4)`},
		{`[01]`, `Expecting ',' delimiter: line 1 column 3 (char 2)`},
		{`[1] x`, `Extra data: line 1 column 5 (char 4)`},
		{`"ab`, `Unterminated string starting at: line 1 column 1 (char 0)`},
		{"[\"a\tb\"]", `Invalid control character at: line 1 column 4 (char 3)`},
		{`"a\x"`, `Invalid \escape: line 1 column 3 (char 2)`},
		{`"\u12"`, `Invalid \uXXXX escape: line 1 column 3 (char 2)`},
		{"\ufeff1", `Unexpected UTF-8 BOM (decode using utf-8-sig): line 1 column 1 (char 0)`},
	} {
		v, err := ParseObject([]byte(c.in))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = pyobj.Repr(v)
		}
		if got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.in, got, c.want)
		}
	}
}
