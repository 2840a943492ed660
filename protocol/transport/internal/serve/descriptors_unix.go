//go:build unix

package serve

import "syscall"

// descriptors returns how many files and connections this process may have open.
func descriptors() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return maxDescriptors
	}
	return int(min(uint64(l.Cur), maxDescriptors)) // FreeBSD's is signed
}
