//go:build !race

package master_test

// raceEnabled reports whether the race detector is on.
const raceEnabled = false
