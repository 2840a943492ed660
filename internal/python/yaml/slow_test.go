//go:build !race

package yaml

// slow is how much slower than usual the tests may be.
const slow = 1
