//go:build !windows

package minion

import (
	"errors"
	"syscall"
)

const unixModes = true

// processAlive tells whether a process exists.
func processAlive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
