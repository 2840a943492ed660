// Package sorting sorts slices with one compiled function for all types.
//
// slices.SortFunc and slices.SortStableFunc are compiled for each element type, which takes 13 KB of machine code
// each time. That is justified where sorting takes time: in the codec and in the state compiler. Elsewhere, this
// package keeps the minion smaller.
package sorting

import "sort"

// Stable sorts list with compare and keeps the order of equal elements, as slices.SortStableFunc does.
func Stable[E any](list []E, compare func(a, b E) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}
