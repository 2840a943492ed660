//go:build unix

package gitfs

import (
	"errors"
	"syscall"
)

// running says whether there is a process.
func running(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
