//go:build unix

package serve

import "syscall"

// descriptorLimit returns how many files and connections this process may have open.
func descriptorLimit() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return maxDescriptors
	}
	return int(min(uint64(l.Cur), maxDescriptors)) // signed on FreeBSD
}
