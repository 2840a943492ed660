//go:build linux || darwin || freebsd

package sqlite

import "golang.org/x/sys/unix"

// diskSize returns how many bytes the file system of a directory has, 0 if that is unknown.
func diskSize(dir string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0
	}
	return int64(s.Blocks) * int64(s.Bsize)
}
