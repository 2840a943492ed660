//go:build !race

package master_test

// raceEnabled says that the race detector is on.
const raceEnabled = false
