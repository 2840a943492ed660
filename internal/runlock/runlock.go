// Package runlock lets one process at a time use a directory. The lock is a file that the process keeps open and that
// holds its process id. The lock is released when the process ends, for whatever reason.
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

// HeldError is the error of [Take] while another process holds the lock.
type HeldError struct {
	Path string
	// PID is the process that holds it, 0 if that is not known.
	PID int
}

// Error names the process and the file.
func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("already running (%s is locked)", e.Path)
	}
	return fmt.Sprintf("already running as pid %d (%s)", e.PID, e.Path)
}

// Take takes the lock and writes the id of this process into the file, which only its owner may read. It returns
// a *HeldError while another process holds the lock.
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
		_ = f.Close()
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}

// errHeld is the error of lock while another process has it.
var errHeld = errors.New("the lock is held")

// holder reads the process id in a lock file. The process that has just taken the lock may not have written it yet.
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
