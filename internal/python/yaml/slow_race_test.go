//go:build race

package yaml

// slow is how much slower than usual the tests may be: the race detector costs about this much.
const slow = 10
