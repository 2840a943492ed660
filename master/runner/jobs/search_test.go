package jobs

import (
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/payload"
)

// TestSearchInOrderedMetadata: a job is found by its metadata also where its dictionaries keep the order of their keys.
func TestSearchInOrderedMetadata(t *testing.T) {
	inner := payload.OrderedMap{{Key: "z", Value: int64(1)}, {Key: "a", Value: int64(2)}}
	load := map[string]any{"fun": "test.arg", "arg": []any{"x", payload.OrderedMap{
		{Key: "__kwarg__", Value: true}, {Key: "metadata", Value: payload.OrderedMap{{Key: "k", Value: "v"}, {Key: "in", Value: inner}}},
	}}}
	d := describeJob("20250102030405678901", load)
	for _, c := range []struct {
		want  any
		found bool
	}{
		{map[string]any{"k": "v"}, true},
		{map[string]any{"no": "x", "k": "v"}, true},
		{map[string]any{"in": map[string]any{"a": int64(2), "z": int64(1)}}, true},
		{map[string]any{"k": "w"}, false},
		{map[string]any{"no": "v"}, false},
		{"k", false},
		{nil, true},
	} {
		if got := (search{metadata: c.want}).matches(d, time.Now()); got != c.found {
			t.Errorf("%v: found is %v", c.want, got)
		}
	}
}
