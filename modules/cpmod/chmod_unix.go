//go:build unix

package cpmod

import (
	"os"

	"golang.org/x/sys/unix"
)

// chmod sets a mode as it is, with its special bits.
func chmod(name string, mode int64) error {
	if err := unix.Chmod(name, uint32(mode&0o7777)); err != nil {
		return &os.PathError{Op: "chmod", Path: name, Err: err}
	}
	return nil
}
