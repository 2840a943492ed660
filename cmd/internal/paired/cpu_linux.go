package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime returns the processor time of a running process, without its children. Unlike /proc/PID/stat it is
// exact to nanoseconds: each process has a clock, whose number is made of its id (MAKE_PROCESS_CPUCLOCK in the kernel).
func processorTime(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED: user and system
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &t); err != nil {
		return 0, fmt.Errorf("cannot read the processor time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}
