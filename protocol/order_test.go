package protocol

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/protocol/payload"
)

// TestArgumentsKeepTheirOrder: a job has its arguments as plain maps and, if there is a map, in the order in which they were packed.
func TestArgumentsKeepTheirOrder(t *testing.T) {
	pairs := func(kv ...any) payload.OrderedMap {
		m := payload.OrderedMap{}
		for i := 0; i < len(kv); i += 2 {
			m = append(m, payload.Pair{Key: kv[i], Value: kv[i+1]})
		}
		return m
	}
	for name, c := range map[string]struct {
		arg     any
		ordered bool
	}{
		"none":          {[]any{"a", int64(1)}, false},
		"one key":       {[]any{pairs("a", []any{int64(1)})}, true},
		"keywords":      {[]any{pairs("z", int64(1), "__kwarg__", true)}, true},
		"map":           {[]any{pairs("z", int64(1), "a", pairs("y", int64(2), "b", nil))}, true},
		"in a keyword":  {[]any{"x", pairs("pillar", pairs("z", int64(1), "a", int64(2)), "__kwarg__", true)}, true},
		"in a list":     {[]any{[]any{pairs("z", int64(1), int64(3), int64(2))}}, true},
		"below one key": {[]any{pairs("one", pairs("z", int64(1), "a", int64(2)))}, true},
	} {
		t.Run(name, func(t *testing.T) {
			packed, err := payload.Marshal(pairs("fun", "test.arg", "arg", c.arg, "tgt", "*", "jid", "20260101000000000001"))
			if err != nil {
				t.Fatal(err)
			}
			v, err := payload.UnmarshalShared(packed, payload.Limits{}, "arg")
			if err != nil {
				t.Fatal(err)
			}
			load := v.(map[string]any)
			before := payload.OrderedMap{{Key: "arg", Value: load["arg"]}}
			j, err := ParseJob(load)
			if err != nil {
				t.Fatal(err)
			}
			plain := payload.Plain(c.arg).([]any)
			if diff := cmp.Diff([][]any{plain}, j.Args) + cmp.Diff(any(plain), j.Raw["arg"]); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, payload.OrderedMap{{Key: "arg", Value: load["arg"]}}); diff != "" {
				t.Error("the load was changed:", diff)
			}
			var want [][]any
			if c.ordered {
				want = [][]any{c.arg.([]any)}
			}
			if diff := cmp.Diff(want, j.Ordered); diff != "" {
				t.Error(diff)
			}
		})
	}
	_, kwargs := ParseArgs([]any{pairs("pillar", pairs("z", int64(1), "a", int64(2)), "__kwarg__", true)}, nil)
	if diff := cmp.Diff(map[string]any{"pillar": pairs("z", int64(1), "a", int64(2))}, kwargs); diff != "" {
		t.Error(diff)
	}
}
