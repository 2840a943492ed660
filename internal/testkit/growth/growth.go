// Package growth measures how a cost grows with the size of the work, as an exponent: 1 is linear, 2 is quadratic.
// Tests limit the exponent, which does not depend on the speed of the machine.
package growth

import (
	"math"
	"runtime"
	"testing"
)

// Linear is the limit for costs that may grow as n log n, which is an exponent of 1.13 between 1,000 and 10,000. The
// rest allows for tables that double their size and for other costs in the measurement.
const Linear = 1.25

// Constant is the bound for what costs the same whatever the size. The rest is for what is measured beside the work.
const Constant = 0.2

// A Point is the cost, in any unit, of one size of the work.
type Point struct {
	Size int
	Cost float64
}

// Exponent returns k of the curve cost = c·size^k that fits the points best (least squares of the logarithms). The
// points must have at least two different sizes, and positive costs.
func Exponent(points []Point) float64 {
	var sx, sy, sxx, sxy, n float64
	for _, p := range points {
		x, y := math.Log(float64(p.Size)), math.Log(p.Cost)
		sx, sy, sxx, sxy, n = sx+x, sy+y, sxx+x*x, sxy+x*y, n+1
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

// Allocated returns how many bytes and objects f allocates. Nothing else may run in the process meanwhile.
func Allocated(f func()) (bytes, objects float64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc), float64(after.Mallocs - before.Mallocs)
}

// Bound fails the test if the allocations of run's work grow with a larger exponent than bound. run prepares the work
// of size n, which is not measured, and returns it.
func Bound(t *testing.T, bound float64, sizes []int, run func(n int) func()) {
	t.Helper()
	var bytes, objects []Point
	run(sizes[0])() // initialize what is built once
	for _, n := range sizes {
		b, o := Allocated(run(n))
		bytes, objects = append(bytes, Point{n, b}), append(objects, Point{n, o})
	}
	b, o := Exponent(bytes), Exponent(objects)
	t.Logf("bytes grow with exponent %.2f, objects with %.2f: %v, %v", b, o, bytes, objects)
	if b > bound || o > bound {
		t.Errorf("bytes grow with exponent %.2f, objects with %.2f, want at most %.2f", b, o, bound)
	}
}
