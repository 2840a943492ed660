//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package status

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime returns the time when the kernel started.
func bootTime() (time.Time, error) {
	tv, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(tv.Unix()), nil
}
