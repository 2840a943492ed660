// Package sorting sorts slices by one function for all types.
//
// slices.SortFunc and slices.SortStableFunc are compiled again for each type of element, 13 KB of machine code a time. That pays where
// sorting takes the time: in the codec and in the state compiler. Everywhere else the minion is smaller with this package.
package sorting

import "sort"

// Stable sorts list by compare and keeps equal elements in their order, as slices.SortStableFunc does.
func Stable[E any](list []E, compare func(a, b E) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}
