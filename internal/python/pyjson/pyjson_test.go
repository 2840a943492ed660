package pyjson

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	got, err := Parse([]byte(`{"a": [1, -2, 2.5, 1e2, 18446744073709551615, true, null, "x\"]"]}`))
	want := map[string]any{"a": []any{int64(1), int64(-2), 2.5, 100.0, uint64(1<<64 - 1), true, nil, `x"]`}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, bad := range []string{"", "{", "[1] 2", "nul", strings.Repeat("[", 1000000)} {
		if v, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%.20q: %v", bad, v)
		}
	}
}

// TestParseSent expects the results of salt.payload.loads(salt.payload.dumps(...)) of 3006, 3007 and 3008.
func TestParseSent(t *testing.T) {
	got, err := ParseSent([]byte(`{"a": [1000000000000000000000000000000, -10000000000000000000000000, 18446744073709551616, 18446744073709551615, -9223372036854775808,
		-9223372036854775809, 7, 1.5, 1e30]}`))
	want := map[string]any{"a": []any{"1000000000000000000000000000000", "-10000000000000000000000000", "18446744073709551616", uint64(18446744073709551615),
		int64(-9223372036854775808), "-9223372036854775809", int64(7), 1.5, 1e30}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Error(err, d)
	}
}
