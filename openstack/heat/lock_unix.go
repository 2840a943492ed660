//go:build unix

package heat

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lock prevents a second engine from using the same directories.
func (e *Engine) lock() (func(), error) {
	path := filepath.Join(e.o.state(), "lock")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("another agent runs the deployments of this host: %s is locked", path)
	}
	return func() { f.Close() }, nil
}
