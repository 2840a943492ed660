package modules

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// getters returns what the getters of a Call return for its argument v: Str, Bool, Strings, Int, Float, Seconds, Map.
func getters(_ context.Context, c *Call) (any, error) {
	text := func(v any, err error) string {
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(v)
	}
	n, noInt := c.Int("v")
	f, noFloat := c.Float("v")
	d, noSeconds := c.Seconds("v")
	m, noMap := c.Map("v")
	return []any{fmt.Sprintf("%q", c.Str("v")), fmt.Sprint(c.Bool("v")), fmt.Sprintf("%q", c.Strings("v")), text(n, noInt), text(f, noFloat),
		text(d, noSeconds), text(m, noMap), fmt.Sprint(c.Given("v"), c.Given("w"), c.Given("x"), c.Given("none")),
		fmt.Sprintf("%v %v %v %v", c.Value("w"), c.Value("none"), c.Keywords, c.Extra)}, nil
}

// TestGetters is the table of what the getters of a Call return for each kind of argument.
func TestGetters(t *testing.T) {
	const (
		number  = "v must be a number, not "
		mapping = "v must be a dictionary, not "
		integer = "int() argument must be a string, a bytes-like object or a real number, not "
	)
	r := NewRegistry(&Module{Name: "m", Funcs: []Def{{Name: "f", Run: getters, Args: "args", Kwargs: "kwargs",
		Params: []Param{{Name: "v"}, {Name: "w", Default: "set"}}}}})
	for name, c := range map[string]struct {
		arg  any
		want []any
	}{
		"None": {nil, []any{`""`, "false", "[]", integer + "'NoneType'", number + "None", "0s", "map[]"}},
		"a text": {"a, b", []any{`"a, b"`, "true", `["a" "b"]`, "ValueError: invalid literal for int() with base 10: 'a, b'",
			number + "'a, b'", number + "'a, b'", mapping + "'a, b'"}},
		"digits": {" 7 ", []any{`" 7 "`, "true", `["7"]`, "7", "7", "7s", mapping + "' 7 '"}},
		"an int": {int64(7), []any{`"7"`, "true", `["7"]`, "7", "7", "7s", mapping + "7"}},
		"float":  {1.5, []any{`"1.5"`, "true", `["1.5"]`, "1", "1.5", "1.5s", mapping + "1.5"}},
		"False":  {false, []any{`"False"`, "false", `["False"]`, "0", "0", "0s", mapping + "False"}},
		"a list": {[]any{"a", int64(1)}, []any{`"['a', 1]"`, "true", `["a" "1"]`, integer + "'list'",
			number + "['a', 1]", number + "['a', 1]", mapping + "['a', 1]"}},
		"a dict": {map[any]any{int64(1): "x"}, []any{`"{1: 'x'}"`, "true", `["{1: 'x'}"]`, integer + "'dict'",
			number + "{1: 'x'}", number + "{1: 'x'}", "map[1:x]"}},
	} {
		t.Run(name, func(t *testing.T) {
			want := append(c.want, "true false false false", "set <nil> map[x:1] []")
			res := r.Run(t.Context(), &Env{}, Request{Fun: "m.f", Args: []any{c.arg}, Kwargs: map[string]any{"x": int64(1)}})
			if diff := cmp.Diff(want, res.Return); diff != "" {
				t.Error(diff)
			}
			res = r.Run(t.Context(), &Env{}, Request{Fun: "m.f", Args: []any{int64(0), "given", "more"}, Kwargs: map[string]any{"v2": c.arg}})
			if got := res.Return.([]any)[7:]; got[0] != "true true false false" || got[1] != fmt.Sprintf("given <nil> map[v2:%v] [more]", c.arg) {
				t.Error(got)
			}
		})
	}
}
