//go:build unix

package doctor

import "golang.org/x/sys/unix"

// mayWrite reports whether this process may create files in a directory.
func mayWrite(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }

// hostSpace returns the space that statfs reports.
func hostSpace(dir string) (Space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return Space{}, err
	}
	size := uint64(s.Bsize)
	return Space{Free: uint64(s.Bavail) * size, Total: uint64(s.Blocks) * size, FreeFiles: uint64(s.Ffree), TotalFiles: uint64(s.Files),
		ReadOnly: s.Flags&readOnlyFlag != 0}, nil
}
