package yaml

import (
	"errors"
	"strings"
	"testing"

	"github.com/brine-salt/brine/modules/pyobj"
)

func TestParseAggregate(t *testing.T) {
	for _, tt := range [...]struct{ src, want string }{
		{"a: 1\na: 2", "{'a': 2}"},
		{"a: !aggregate 1\na: !aggregate [1, 2]", "{'a': [1, 2]}"},
		{"a: !aggregate {x: 1}\na: !aggregate {y: 010}", "{'a': {'x': 1, 'y': 10}}"},
		{"a: !aggregate [1]\n!reset a: !aggregate [3]", "{'a': [3]}"},
		{"!aggregate a: 1\n!aggregate a: 2", "{'a': [1, 2]}"},
		{"a: [1]\na: [2]", "{'a': []}"}, // stock loses the items too
		{"b: &b {l: !aggregate [1]}\nc:\n  <<: *b\n  l: !aggregate [2]", "{'b': {'l': [1]}, 'c': {'l': [1, 2]}}"},
		{"", "None"},
	} {
		v, err := ParseAggregate([]byte(tt.src), "<file>")
		if err != nil {
			t.Errorf("%q: %v", tt.src, err)
			continue
		}
		if got := pyobj.Repr(pyobj.From(plainDicts(v))); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.src, got, tt.want)
		}
	}
}

// plainDicts removes the OrderedDict mark.
func plainDicts(v any) any {
	if d, ok := v.(*pyobj.Dict); ok {
		out := pyobj.NewDict()
		for k, x := range d.All() {
			_ = out.Set(k, plainDicts(x))
		}
		return out
	}
	return v
}

func TestParseAggregateHostile(t *testing.T) {
	for _, src := range [...]string{
		strings.Repeat("[", 1000), "a: &x [*x]", "<<: {<<: 5}", "a: " + strings.Repeat("9", 5000), "!aggregate [a]: 1", "? !reset {a: b}\n: 1", "a: !!pairs 5", "a: !!set 5",
		"a: !!map [1]", "a: !!int []", "a: !!omap 5", "a: !!seq 5", "<<: [[1]]",
	} {
		v, err := ParseAggregate([]byte(src), "<file>")
		if msg := src[:min(len(src), 40)]; err == nil {
			t.Errorf("%q: no error but %v", msg, v)
		} else if text, _ := Problem(err); text == "" {
			t.Errorf("%q: an error without a text", msg)
		}
	}
	big := "b: &b !aggregate [" + strings.Repeat("1, ", 5_000) + "1]\nc: &c {l: *b}\n" + strings.Repeat("b: !aggregate [1]\n", 3_000)
	if _, err := ParseAggregate([]byte(big), "<file>"); !errors.Is(err, ErrLimit) {
		t.Errorf("many merges: %v, want the limit", err)
	}
}
