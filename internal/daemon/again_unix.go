//go:build unix

package daemon

import (
	"fmt"
	"os"
	"syscall"
)

// Again replaces the process by a new run of its program, with the same pid, arguments and environment. It returns
// only if that fails.
func Again() error {
	program, err := os.Executable()
	if err == nil {
		err = syscall.Exec(program, os.Args, os.Environ())
	}
	return fmt.Errorf("cannot restart: %w", err)
}
