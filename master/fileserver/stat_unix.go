//go:build unix

package fileserver

import (
	"io/fs"
	"syscall"
)

// nonblock keeps an open from waiting for the other end of a named pipe.
const nonblock = syscall.O_NONBLOCK

// localName reports whether a name can be one file; a backslash is an ordinary character here.
func localName(string) bool { return true }

func inodeOf(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}

// sysStat fills in what the operating system knows.
func sysStat(info fs.FileInfo, out *[10]int64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	out[0], out[1], out[2], out[3] = int64(st.Mode), int64(st.Ino), int64(st.Dev), int64(st.Nlink)
	out[4], out[5] = int64(st.Uid), int64(st.Gid)
}
