//go:build !linux

package confine

import (
	"fmt"
	"runtime"
)

// Support describes what the kernel supports.
func Support() string { return runtime.GOOS + " offers nothing" }

// Apply returns an error that matches ErrUnsupported: there is no implementation for this system.
func Apply(Rules) (Report, error) {
	return Report{Kernel: Support()}, fmt.Errorf("%w: %s", ErrUnsupported, Support())
}
