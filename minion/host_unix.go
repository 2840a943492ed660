//go:build !windows

package minion

import (
	"errors"
	"syscall"
)

const unixModes = true

// processAlive reports whether a process exists.
func processAlive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
