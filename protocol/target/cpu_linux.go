package target

import (
	"syscall"
	"time"
)

// rusageThread is RUSAGE_THREAD, which package syscall does not define.
const rusageThread = 1

// cpuTime returns the processor time of the calling thread.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(rusageThread, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
