package growth

import (
	"math"
	"testing"
)

func TestExponent(t *testing.T) {
	for _, k := range []float64{0, 0.5, 1, 2} {
		var points []Point
		for _, n := range []int{100, 1000, 10_000} {
			points = append(points, Point{n, 3 * math.Pow(float64(n), k)})
		}
		if got := Exponent(points); math.Abs(got-k) > 1e-9 {
			t.Errorf("n^%v has exponent %v", k, got)
		}
	}
	if got := Exponent([]Point{{1000, 1000 * math.Log(1000)}, {10_000, 10_000 * math.Log(10_000)}}); got > Linear {
		t.Errorf("n log n has exponent %v, more than the bound", got)
	}
}

func TestBound(t *testing.T) {
	var kept [][]byte
	Bound(t, Linear, []int{100, 1000}, func(n int) func() {
		return func() {
			for range n {
				kept = append(kept, make([]byte, 1000))
			}
		}
	})
	kept = nil
}
