package headtail

import (
	"fmt"
	"strings"
	"testing"
)

// TestBuffer writes text in pieces of different sizes. The result does not depend on the sizes.
func TestBuffer(t *testing.T) {
	mark := func(n int64) string { return fmt.Sprintf("<%d>", n) }
	const text = "0123456789abcdefghijklmnopqrstuvwxyz"
	for limit, want := range map[int]string{0: "<36>", 1: "<36>", 2: "0<34>z", 10: "01234<26>vwxyz", 36: text, 100: text} {
		for _, piece := range []int{1, 3, 5, 7, 36} {
			b := &Buffer{Limit: limit}
			for rest := text; rest != ""; {
				n := min(piece, len(rest))
				if k, err := b.Write([]byte(rest[:n])); k != n || err != nil {
					t.Fatal(k, err)
				}
				rest = rest[n:]
			}
			if got := string(b.Join(mark)); got != want {
				t.Errorf("limit %d in pieces of %d: %q, want %q", limit, piece, got, want)
			}
			if dropped := int64(len(text) - len(strings.ReplaceAll(want, mark(b.Dropped()), ""))); b.Dropped() != dropped || b.Total() != 36 {
				t.Errorf("limit %d: dropped %d of %d, want %d", limit, b.Dropped(), b.Total(), dropped)
			}
		}
	}
}
