package sorting

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestStable(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for size := range 200 {
		type element struct{ key, place int }
		list := make([]element, size)
		for i := range list {
			list[i] = element{random.IntN(size/3 + 1), i}
		}
		compare := func(a, b element) int { return a.key - b.key }
		want := slices.Clone(list)
		slices.SortStableFunc(want, compare)
		if Stable(list, compare); !slices.Equal(list, want) {
			t.Fatalf("%d elements: %v, want %v", size, list, want)
		}
	}
}
