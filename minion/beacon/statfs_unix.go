//go:build linux || darwin || freebsd

package beacon

import "syscall"

// diskShare returns how full a file system is for users other than root, in percent.
func diskShare(path string) (float64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, err
	}
	size := float64(st.Bsize)
	// Free blocks include those reserved for root, available ones do not. psutil computes it in the same way.
	used := (float64(st.Blocks) - float64(st.Bfree)) * size
	return share(used, used+float64(st.Bavail)*size), nil
}
