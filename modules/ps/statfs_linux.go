package ps

import "syscall"

// statfs returns the size of a file system, its free space, and the part of that which users may use, in bytes.
func statfs(path string) (total, free, avail int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, 0, 0, err
	}
	unit := int64(s.Frsize)
	return int64(s.Blocks) * unit, int64(s.Bfree) * unit, int64(s.Bavail) * unit, nil
}

// ioPriority returns the I/O scheduling class and priority of a process.
func ioPriority(pid int64) (class, value int64) {
	const whoProcess = 1
	n, _, errno := syscall.Syscall(syscall.SYS_IOPRIO_GET, whoProcess, uintptr(pid), 0)
	if errno != 0 {
		return 0, 0
	}
	return int64(n >> 13), int64(n & (1<<13 - 1))
}
