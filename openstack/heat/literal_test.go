package heat

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseLiteral(t *testing.T) {
	for _, c := range []struct {
		text string
		want any
	}{
		{`'a\nb'`, "a\nb"},
		{`"it's"`, "it's"},
		{`'\x41\101\u00e9\U0001F600\q\'\
!'`, "AAé😀\\q'!"},
		{`[1, -2.5, True, None, ('x',), []]`, []any{int64(1), -2.5, true, nil, []any{"x"}, []any{}}},
		{` {'a': {"b": [false, null]}, 'c': '',} `, map[string]any{"a": map[string]any{"b": []any{false, nil}}, "c": ""}},
	} {
		got, err := parseLiteral(c.text)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", c.text, err, diff)
		}
	}
	for _, text := range []string{
		"", "'a", "'a\nb'", `'\x4'`, `'\U00ffffff'`, "[1", "[1 2]", "{1: 2}", "{'a' 1}", "{'a': }", "os.system('x')", "[] []", "'\\", "Inf", "0x10",
		strings.Repeat("[", 1000),
	} {
		if v, err := parseLiteral(text); err == nil {
			t.Errorf("%.20q is %v", text, v)
		}
	}
}

// FuzzParseLiteral: JSON values are parsed correctly, and no text causes a panic.
func FuzzParseLiteral(f *testing.F) {
	f.Add(`[{"file_name": "x", "content": "a\nb"}]`)
	f.Add(`{'a': ('b', None)}`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parseLiteral(text)
		if err != nil {
			return
		}
		out, err := json.Marshal(v)
		if err != nil {
			return // infinite numbers
		}
		again, err := parseLiteral(string(out))
		if err != nil {
			t.Fatalf("%s from %q: %v", out, text, err)
		}
		if diff := cmp.Diff(string(out), string(encode(again))); diff != "" && !strings.Contains(string(out), `\u`) {
			t.Error(diff)
		}
	})
}
