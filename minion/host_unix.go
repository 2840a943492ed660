//go:build !windows

package minion

import (
	"errors"
	"syscall"
)

const unixModes = true

// alive tells whether a process exists.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
