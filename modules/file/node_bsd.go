//go:build unix && !linux

package file

import "golang.org/x/sys/unix"

// makeNode makes a pipe. Devices are made by the system alone on hosts of this kind.
func makeNode(path string, mode uint32, _ int) error {
	if mode&unix.S_IFMT == unix.S_IFIFO {
		return unix.Mkfifo(path, mode&0o7777)
	}
	return unix.EPERM
}
