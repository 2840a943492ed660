package protocol_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/brine-salt/brine/protocol"
)

// The expected values are the results of salt.utils.dicttrim.trim_dict of 3007.15.
func TestTrimEvent(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	const gone = "VALUE_TRIMMED"
	cases := []struct {
		name string
		in   map[string]any
		max  int
		want map[string]any
	}{
		{"small enough", map[string]any{"a": long(500)}, 1000, map[string]any{"a": long(500)}},
		{"off", map[string]any{"a": long(5000)}, 0, map[string]any{"a": long(5000)}},
		{"one large value", map[string]any{"a": "b", "c": long(10000)}, 1000, map[string]any{"a": "b", "c": gone}},
		{"in a map of a map", map[string]any{"m": map[string]any{"n": map[string]any{"v": long(3000), "w": int64(1)}}}, 1000,
			map[string]any{"m": map[string]any{"n": map[string]any{"v": gone, "w": int64(1)}}}},
		{"several of middle size go in the second pass", map[string]any{"a": long(380), "b": long(380), "c": long(380)}, 1000,
			map[string]any{"a": gone, "b": gone, "c": gone}},
		{"a list counts its references only", map[string]any{"l": []any{long(5000)}}, 1000, map[string]any{"l": []any{long(5000)}}},
		{"wide characters count more", map[string]any{"a": strings.Repeat("ä", 420), "b": strings.Repeat("€", 220), "c": long(300)}, 1000,
			map[string]any{"a": gone, "b": gone, "c": long(300)}},
		{"wide characters count more than narrow ones", map[string]any{"a": strings.Repeat("ä", 220), "b": strings.Repeat("€", 220), "c": long(220), "d": long(200)}, 1000,
			map[string]any{"a": strings.Repeat("ä", 220), "b": gone, "c": long(220), "d": long(200)}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := protocol.TrimEvent(c.in, c.max); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %.300v", got)
			}
		})
	}
	in := map[string]any{"m": map[string]any{"v": long(3000)}}
	protocol.TrimEvent(in, 1000)
	if in["m"].(map[string]any)["v"] == gone {
		t.Error("the caller's data was changed")
	}
}
