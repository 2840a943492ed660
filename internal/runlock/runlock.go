// Package runlock ensures that only one process at a time uses a directory. The lock is a file with the process's id
// that the process keeps open. The operating system releases it when the process ends for any reason.
package runlock

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

// HeldError is the error of [Take] if another process holds the lock.
type HeldError struct {
	Path string
	// PID is the process that holds the lock, or 0 if it is unknown.
	PID int
}

// Error names the process and the file.
func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("already running (%s is locked)", e.Path)
	}
	return fmt.Sprintf("already running as pid %d (%s)", e.PID, e.Path)
}

// Take takes the lock and writes this process's id to the file, which only its owner may read. It returns a
// *HeldError if another process holds the lock.
func Take(path string) (release func(), err error) {
	f, err := lock(path)
	if errors.Is(err, errHeld) {
		return nil, &HeldError{Path: path, PID: holder(path)}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	text := strconv.Itoa(os.Getpid()) + "\n"
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(text), 0)
	}
	if err != nil {
		unlock(f)
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	return func() { unlock(f) }, nil
}

// errHeld is the error of lock if another process holds the lock.
var errHeld = errors.New("the lock is held")

// holder returns the process id in a lock file, or 0. It retries: a process that has just taken the lock may not have
// written its id yet.
func holder(path string) int {
	for range 20 {
		if f, err := os.Open(path); err == nil {
			b, err := io.ReadAll(io.LimitReader(f, 32))
			_ = f.Close()
			pid, ok := bytes.CutSuffix(b, []byte("\n"))
			if n, bad := strconv.Atoi(string(pid)); err == nil && ok && bad == nil && n > 0 {
				return n
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return 0
}
