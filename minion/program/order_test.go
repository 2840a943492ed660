package program

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/payload"
)

func TestResultsInOrder(t *testing.T) {
	high := pyobj.NewDict("z", int64(1), "a", pyobj.NewList(pyobj.NewDict("y", nil, "b", "t")))
	plainHigh, keptHigh := pyobj.Plain(high), payload.OrderedMap{{Key: "z", Value: int64(1)}, {Key: "a", Value: []any{payload.OrderedMap{{Key: "y"}, {Key: "b", Value: "t"}}}}}
	low := pyobj.NewList(pyobj.NewDict("state", "test", "fun", "nop"))
	plainLow, keptLow := pyobj.Plain(low), []any{payload.OrderedMap{{Key: "state", Value: "test"}, {Key: "fun", Value: "nop"}}}
	first, second := map[string]any{"__run_num__": int64(0)}, map[string]any{"__run_num__": int64(1)}
	ran := map[string]any{"b": first, "a": second}
	refused := map[string]any{"b": "text"}
	for _, tt := range []struct {
		outputter string
		res       modules.Result
		want      any
	}{
		{"json", modules.Result{Return: plainHigh, Ordered: high}, keptHigh},
		{"yaml", modules.Result{Return: plainHigh, Ordered: high}, keptHigh},
		{"nested", modules.Result{Return: plainHigh, Ordered: high}, keptHigh},
		{"raw", modules.Result{Return: plainHigh, Ordered: high}, high},
		{"json", modules.Result{Return: plainLow, Ordered: low}, keptLow},
		{"yaml", modules.Result{Return: plainLow, Ordered: low}, plainLow},
		{"json", modules.Result{Return: ran, Out: "highstate"}, payload.OrderedMap{{Key: "b", Value: first}, {Key: "a", Value: second}}},
		{"yaml", modules.Result{Return: ran, Out: "highstate"}, ran},
		{"raw", modules.Result{Return: ran, Out: "highstate"}, payload.OrderedMap{{Key: "b", Value: first}, {Key: "a", Value: second}}},
		{"json", modules.Result{Return: ran}, ran},
		{"json", modules.Result{Return: refused, Out: "highstate"}, refused},
		{"json", modules.Result{Return: "text"}, "text"},
	} {
		if diff := cmp.Diff(tt.want, inOrder(tt.res, tt.outputter), cmp.Comparer(func(a, b *pyobj.Dict) bool { return pyobj.Repr(a) == pyobj.Repr(b) })); diff != "" {
			t.Errorf("%s of %v (-want +got):\n%s", tt.outputter, tt.res.Return, diff)
		}
	}
}
