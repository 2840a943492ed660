package states

import (
	"testing"

	"github.com/brine-salt/brine/modules/pyobj"
)

// TestOrderOfTheCaller: keys that a dictionary of the caller has keep its order in changes, as with stock
// (3007.16).
func TestOrderOfTheCaller(t *testing.T) {
	dict := pyobj.NewDict
	for name, c := range map[string]struct {
		state string
		value any
		made  any
		want  string
	}{
		"a dictionary": {"environ", dict("ZZ", "a", "AA", "b", "MM", "c"), map[string]any{"AA": "b", "MM": "c", "ZZ": "a"},
			"{'ZZ': 'a', 'AA': 'b', 'MM': 'c'}"},
		"inside of another": {"ini", dict("z", dict("y", 1, "b", 2)),
			map[string]any{"z": map[string]any{"before": nil, "after": map[string]any{"b": "2", "y": "1"}}},
			"{'z': {'before': None, 'after': {'y': '1', 'b': '2'}}}"},
		"a list of dictionaries": {"x", &pyobj.List{Items: []any{dict("z", 1), dict("a", 2)}}, map[string]any{"a": "2", "z": "1"},
			"{'z': '1', 'a': '2'}"},
		"in a list": {"grains", dict("z", 1, "a", 2), []any{"x", map[string]any{"a": 2, "z": 1}}, "['x', {'z': 1, 'a': 2}]"},
		"a part":    {"file", dict("z", 1, "a", 2), map[string]any{"a": 1, "b": 2, "mode": "0644", "diff": "x", "z": 3}, "{'diff': 'x', 'z': 3, 'a': 1, 'b': 2, 'mode': '0644'}"},
		"others":    {"x", dict("z", 1, "q", 2), map[string]any{"b": "2", "a": "1"}, "{'a': '1', 'b': '2'}"},
		"new":       {"x", dict("new", 1, "old", 2), map[string]any{"new": "1", "old": "2"}, "{'new': '1', 'old': '2'}"},
		"no order":  {"x", "text", map[string]any{"new": "1", "old": "2"}, "{'old': '2', 'new': '1'}"},
	} {
		low := NewLow(map[string]any{"state": c.state, "fun": "f", "name": "n"})
		low.Set("value", c.value)
		if got := pyobj.Str(keyOrderOf(low).apply(c.made)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestTextOfArguments(t *testing.T) {
	inner := pyobj.NewDict("y", int64(2), "b", int64(3))
	outer := pyobj.NewDict("z", int64(1), "a", inner)
	outer.Ordered = true
	low := NewLow(map[string]any{"state": "grains", "fun": "present", "name": "n"})
	low.Set("value", outer)
	c := &Call{Low: low}
	plain := map[string]any{"a": map[string]any{"b": int64(3), "y": int64(2)}, "z": int64(1)}
	for want, v := range map[string]any{
		"OrderedDict([('z', 1), ('a', {'y': 2, 'b': 3})])":        plain,
		"['x', OrderedDict([('z', 1), ('a', {'y': 2, 'b': 3})])]": []any{"x", plain},
		"{'b': 1, 'q': 2}": map[string]any{"q": int64(2), "b": int64(1)},
		"x":                "x",
	} {
		if got := c.Text(v); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
