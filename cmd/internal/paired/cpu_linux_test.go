package main

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// TestProcessorTime: a process's clock has what getrusage returns.
func TestProcessorTime(t *testing.T) {
	for begin := time.Now(); time.Since(begin) < 50*time.Millisecond; {
	}
	got, err := processorTime(os.Getpid())
	var u syscall.Rusage
	if err == nil {
		err = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	}
	if err != nil {
		t.Fatal(err)
	}
	later := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	if got <= 0 || got > later+10*time.Millisecond || later > got+time.Second {
		t.Errorf("%s, and then %s by getrusage", got, later)
	}
	if _, err := processorTime(1 << 22); err == nil {
		t.Error("a process that cannot exist has a processor time")
	}
}
