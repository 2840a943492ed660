//go:build linux || darwin || freebsd

package status

import (
	"os"

	"golang.org/x/sys/unix"
)

// statfs returns the bytes that users may still fill in a file system, and its size in bytes.
func statfs(path string) (available, total int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, 0, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	size := int64(s.Bsize)
	return int64(s.Bavail) * size, int64(s.Blocks) * size, nil
}
