//go:build unix

package fileclient

import (
	"os"
	"syscall"
)

// statList returns Python's list(os.stat(path)): mode, inode, device, links, uid, gid, size and three times in
// seconds.
func statList(name string) []any {
	info, err := os.Stat(name)
	if err != nil {
		return nil
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	mtime := info.ModTime().Unix()
	atime, ctime := times(st)
	return []any{int64(st.Mode), int64(st.Ino), int64(st.Dev), int64(st.Nlink), int64(st.Uid), int64(st.Gid), st.Size, atime, mtime, ctime}
}
