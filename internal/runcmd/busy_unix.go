//go:build unix

package runcmd

import (
	"errors"
	"math"
	"syscall"
)

// textBusy says that a program could not be started because somebody has it open for writing.
func textBusy(err error) bool { return errors.Is(err, syscall.ETXTBSY) }

// descriptors is how many files this process may have open.
func descriptors() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return math.MaxInt32
	}
	return int(min(uint64(l.Cur), math.MaxInt32)) // FreeBSD's is signed
}
