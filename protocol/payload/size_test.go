package payload_test

import (
	"testing"

	"github.com/brine-salt/brine/protocol/payload"
)

func TestSize(t *testing.T) {
	var deep any = string(make([]byte, 1000))
	for range 40 {
		deep = []any{map[string]any{"k": deep}}
	}
	for name, c := range map[string]struct {
		v    any
		want int
	}{
		"nothing": {nil, 16}, "text": {"four", 20}, "bytes": {[]byte{1, 2}, 18}, "ids": {[]string{"a", "bc"}, 16 + 17 + 18}, "list": {[]any{"a", int64(1)}, 16 + 17 + 16},
		"map": {map[string]any{"key": "v"}, 16 + 35 + 17}, "deep": {deep, 16 + 1000 + 40*(16+16+33)},
	} {
		if got := payload.Size(c.v); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
