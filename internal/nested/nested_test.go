package nested

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules/pyobj"
)

type m = map[string]any

func TestGet(t *testing.T) {
	data := m{"a": m{"b": []any{"x", m{"k": int64(1)}, map[any]any{int64(0): "zero"}}, "": "empty"},
		"n": map[any]any{int64(80): "http", true: "yes", "s": "text"}, "nil": nil}
	cases := map[string]struct {
		want any
		ok   bool
	}{
		"a:b:1:k": {int64(1), true}, "a:b:k": {int64(1), true}, "a:b:0": {"zero", true}, "a:b:1": {m{"k": int64(1)}, true},
		"a:b:-3": {"x", true}, "a:b:9": {nil, false}, "a:b:c": {nil, false}, "a:": {"empty", true}, "n:80": {"http", true},
		"n:true": {"yes", true}, "n:s": {"text", true}, "n:[1]": {nil, false}, "nil": {nil, true}, "nil:x": {nil, false},
		"a:b:0:x": {nil, false}, "no": {nil, false},
	}
	for key, c := range cases {
		got, ok := Get(data, key, ":")
		if diff := cmp.Diff(c.want, got); diff != "" || ok != c.ok {
			t.Errorf("%s: %v %s", key, ok, diff)
		}
	}
	if got, ok := Get(data, "a|b|1", "|"); !ok || !Equal(got, m{"k": int64(1)}) {
		t.Errorf("other delimiter: %v", got)
	}
}

func TestEqual(t *testing.T) {
	same := [][2]any{{true, int64(1)}, {int64(1), 1.0}, {nil, nil}, {[]any{true}, []any{1.0}}, {m{"a": int64(0)}, m{"a": false}},
		{m{"a": "x"}, map[any]any{"a": "x"}}, {uint64(7), int64(7)}}
	other := [][2]any{{"1", int64(1)}, {nil, false}, {"", nil}, {[]any{}, m{}}, {m{}, nil}, {[]any{"a"}, []any{"a", "b"}}, {"a", []byte("a")},
		{0.5, int64(0)}}
	for _, p := range same {
		if !Equal(p[0], p[1]) || !Equal(p[1], p[0]) {
			t.Errorf("%v and %v differ", p[0], p[1])
		}
	}
	for _, p := range other {
		if Equal(p[0], p[1]) || Equal(p[1], p[0]) {
			t.Errorf("%v and %v are equal", p[0], p[1])
		}
	}
}

func TestUpdate(t *testing.T) {
	upd := m{"a": m{"y": int64(2)}, "l": []any{"b", "a"}, "n": "new"}
	dest := func() m { return m{"a": m{"x": int64(1)}, "l": []any{"a"}, "n": m{"old": true}} }
	want := m{"a": m{"x": int64(1), "y": int64(2)}, "l": []any{"b", "a"}, "n": "new"}
	got := Update(dest(), upd, false)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got["l"].([]any)[0] = "changed"
	if upd["l"].([]any)[0] != "b" {
		t.Error("the result shares a list with its source")
	}
	want["l"] = []any{"a", "b"}
	if diff := cmp.Diff(want, Update(dest(), upd, true)); diff != "" {
		t.Error(diff)
	}
}

func TestFilter(t *testing.T) {
	table := m{"Debian": m{"pkg": "apache2"}, "Red*": m{"pkg": "httpd"}, "[x]": "bracket", "default": "none", "base": m{"conf": "/etc", "pkg": "?"}, "nil": nil}
	data := m{"os": "RedHat", "list": []any{"no", "Debian"}, "odd": "[x]", "n": int64(1)}
	cases := map[string]struct {
		key               string
		merge, base, want any
		err               error
	}{
		"pattern":       {"os", nil, nil, m{"pkg": "httpd"}, nil},
		"list":          {"list", nil, nil, m{"pkg": "apache2"}, nil},
		"exact wins":    {"odd", nil, nil, "bracket", nil},
		"default":       {"nope", nil, nil, "none", nil},
		"base":          {"os", nil, "base", m{"pkg": "httpd", "conf": "/etc"}, nil},
		"merge":         {"os", m{"x": int64(1)}, nil, m{"pkg": "httpd", "x": int64(1)}, nil},
		"merge no map":  {"os", "x", nil, nil, ErrMerge},
		"base and text": {"odd", nil, "base", nil, ErrBase},
		"text, merge":   {"odd", m{"a": "b"}, nil, nil, ErrUpdate},
	}
	for name, c := range cases {
		got, err := FilterObject(pyobj.FromMap(table), c.key, map[string]any(data), pyobj.From(c.merge), "default", c.base)
		if diff := cmp.Diff(c.want, pyobj.Plain(got)); diff != "" || err != c.err {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	ordered := pyobj.NewDict("d*", "first", "db", "exact")
	if got, err := FilterObject(ordered, "os", m{"os": "db"}, nil, "default", nil); got != "first" || err != nil {
		t.Errorf("the order of the table does not count: %v, %v", got, err)
	}
}
