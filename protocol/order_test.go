package protocol

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// TestArgumentsKeepTheirOrder: maps in the arguments of a job keep the order in which they were
// packed.
func TestArgumentsKeepTheirOrder(t *testing.T) {
	pairs := func(kv ...any) payload.OrderedMap {
		m := payload.OrderedMap{}
		for i := 0; i < len(kv); i += 2 {
			m = append(m, payload.Pair{Key: kv[i], Value: kv[i+1]})
		}
		return m
	}
	for name, arg := range map[string][]any{
		"none":          []any{"a", int64(1)},
		"one key":       []any{pairs("a", []any{int64(1)})},
		"keywords":      []any{pairs("z", int64(1), "__kwarg__", true)},
		"map":           []any{pairs("z", int64(1), "a", pairs("y", int64(2), "b", nil))},
		"in a keyword":  []any{"x", pairs("pillar", pairs("z", int64(1), "a", int64(2)), "__kwarg__", true)},
		"in a list":     []any{[]any{pairs("z", int64(1), int64(3), int64(2))}},
		"below one key": []any{pairs("one", pairs("z", int64(1), "a", int64(2)))},
	} {
		t.Run(name, func(t *testing.T) {
			packed, err := payload.Marshal(pairs("fun", "test.arg", "arg", arg, "tgt", "*", "jid", "20260101000000000001"))
			if err != nil {
				t.Fatal(err)
			}
			key, err := crypt.NewKey()
			if err != nil {
				t.Fatal(err)
			}
			published, err := key.Seal(packed, "")
			if err != nil {
				t.Fatal(err)
			}
			load, err := OpenPublish(Envelope{Enc: EncAES, Load: published}, key, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			j, err := ParseJob(load)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][]any{arg}, j.Args) + cmp.Diff(any(arg), j.Raw["arg"]); diff != "" {
				t.Error(diff)
			}
		})
	}
	_, kwargs := ParseArgs([]any{pairs("pillar", pairs("z", int64(1), "a", int64(2)), "__kwarg__", true)}, nil)
	if diff := cmp.Diff(map[string]any{"pillar": pairs("z", int64(1), "a", int64(2))}, kwargs); diff != "" {
		t.Error(diff)
	}
}
