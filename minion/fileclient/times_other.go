//go:build unix && !(darwin || freebsd || netbsd)

package fileclient

import "syscall"

func times(st *syscall.Stat_t) (atime, ctime int64) { return int64(st.Atim.Sec), int64(st.Ctim.Sec) }
