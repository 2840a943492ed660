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
