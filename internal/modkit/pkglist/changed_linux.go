package pkglist

import (
	"os"
	"syscall"
	"time"
)

// Changed returns when a file's inode was changed last (ctime).
func Changed(info os.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(int64(st.Ctim.Sec), int64(st.Ctim.Nsec))
	}
	return info.ModTime()
}
