//go:build linux

package trove

import "golang.org/x/sys/unix"

func statfs(path string) (blocks, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return blocks{}, err
	}
	return blocks{int64(s.Bsize), int64(s.Blocks), int64(s.Bfree)}, nil
}
