//go:build darwin || freebsd || netbsd

package fileclient

import "syscall"

func times(st *syscall.Stat_t) (atime, ctime int64) {
	return int64(st.Atimespec.Sec), int64(st.Ctimespec.Sec)
}
