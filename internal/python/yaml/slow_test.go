//go:build !race

package yaml

// slow is how much longer the tests may take.
const slow = 1
