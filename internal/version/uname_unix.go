//go:build unix

package version

import "golang.org/x/sys/unix"

// Host returns uname's machine and system, like Python's platform module: "x86_64", "Linux".
func Host() (machine, system string) {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "", ""
	}
	return unix.ByteSliceToString(u.Machine[:]), unix.ByteSliceToString(u.Sysname[:])
}
