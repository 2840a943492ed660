//go:build unix

package archive

import (
	"io/fs"
	"syscall"
)

// owner returns the ids of a file's owner and group.
func owner(info fs.FileInfo) (uid, gid int64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(st.Uid), int64(st.Gid)
	}
	return -1, -1
}
