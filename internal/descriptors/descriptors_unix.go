//go:build unix

// Package descriptors reports how many files a process may have open.
package descriptors

import (
	"math"
	"syscall"
)

// Limit returns how many files, including connections, this process may have open.
func Limit() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return math.MaxInt32
	}
	return int(min(uint64(l.Cur), math.MaxInt32)) // signed on FreeBSD
}
