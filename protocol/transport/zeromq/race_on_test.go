//go:build race

package zeromq

const raceEnabled = true
