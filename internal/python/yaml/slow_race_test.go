//go:build race

package yaml

// slow is how much longer the tests may take: the race detector slows them down about this much.
const slow = 10
