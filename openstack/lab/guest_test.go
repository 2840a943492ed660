//go:build linux

package lab

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAwaitEndIsNotInterrupted: signals to this program don't end the wait for another process.
func TestAwaitEndIsNotInterrupted(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "0.5")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	interrupted := make(chan struct{})
	go func() {
		defer close(interrupted)
		// Send SIGCHLD to each thread, which includes the one that waits.
		for range 100 {
			time.Sleep(2 * time.Millisecond)
			for _, tid := range threads(t) {
				_ = unix.Tgkill(syscall.Getpid(), tid, unix.SIGCHLD) // the thread may have ended
			}
		}
	}()
	awaitEnd(fd, 10*time.Second)
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0); n != 1 {
		t.Errorf("the wait ended before the process: %d %v", n, err)
	}
	<-interrupted
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// threads returns the ids of this program's threads.
func threads(t *testing.T) []int {
	t.Helper()
	dirs, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Error(err)
	}
	tids := make([]int, 0, len(dirs))
	for _, d := range dirs {
		n, err := strconv.Atoi(d.Name())
		if err != nil {
			t.Error(err)
		}
		tids = append(tids, n)
	}
	return tids
}
