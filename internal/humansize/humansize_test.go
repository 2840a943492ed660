package humansize_test

import (
	"testing"

	"github.com/brine-salt/brine/internal/humansize"
)

func TestBytes(t *testing.T) {
	for _, c := range []struct {
		text   string
		metric bool
		want   int64
	}{
		{"0", false, 0}, {"12", false, 12}, {"1K", false, 1024}, {"1KB", false, 1024}, {"1KB", true, 1000}, {" 2.5 MiB ", true, 2621440},
		{"1GB", true, 1000000000}, {"1 g", true, 1 << 30}, {"x", false, 0}, {"5 apples", false, 0}, {"5kbb", false, 0}, {"5b", true, 5}, {"", false, 0}, {"1..2k", false, 0},
	} {
		if got := humansize.Bytes(c.text, "B", c.metric); got.Int64() != c.want {
			t.Errorf("%q, %v: %s, want %d", c.text, c.metric, got, c.want)
		}
	}
}
