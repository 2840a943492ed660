package pytext

import (
	"math"
	"testing"
)

func TestRepr(t *testing.T) {
	cases := []struct {
		in   any
		want string
	}{
		{nil, "None"}, {true, "True"}, {false, "False"}, {int64(-3), "-3"}, {uint64(math.MaxUint64), "18446744073709551615"},
		{1.0, "1.0"}, {0.1, "0.1"}, {1e16, "1e+16"}, {1e15, "1000000000000000.0"}, {1e-5, "1e-05"}, {0.0001, "0.0001"},
		{math.Inf(-1), "-inf"}, {math.NaN(), "nan"}, {math.Copysign(0, -1), "-0.0"},
		{"a", "'a'"}, {"it's", `"it's"`}, {`"it's"`, `'"it\'s"'`}, {"a\nb\t\\", `'a\nb\t\\'`}, {"é\x01\u200b", `'é\x01\u200b'`},
		{[]byte{0xff, 'a', '\''}, `b"\xffa'"`},
		{[]any{int64(1), "x", nil}, "[1, 'x', None]"},
		{map[string]any{"b": int64(1), "a": []any{}}, "{'a': [], 'b': 1}"},
		{map[any]any{int64(1): "x"}, "{1: 'x'}"},
	}
	for _, c := range cases {
		if got := Repr(c.in); got != c.want {
			t.Errorf("Repr(%#v) = %s, want %s", c.in, got, c.want)
		}
	}
	if got := Str("it's"); got != "it's" {
		t.Errorf("Str = %s", got)
	}
}

func TestTruth(t *testing.T) {
	for _, v := range []any{nil, false, "", int64(0), 0, 0.0, []any{}, map[string]any{}, []byte{}} {
		if Truth(v) {
			t.Errorf("Truth(%#v) = true", v)
		}
	}
	for _, v := range []any{true, "0", int64(-1), 0.5, []any{nil}, map[any]any{int64(1): nil}} {
		if !Truth(v) {
			t.Errorf("Truth(%#v) = false", v)
		}
	}
}
