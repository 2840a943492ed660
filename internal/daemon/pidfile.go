package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/brine-salt/brine/internal/atomicfile"
)

// writePID writes the process id to the file. A user who may not create files in the directory writes to the file
// that root has created.
func writePID(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot write pid file: %w", err)
	}
	text := []byte(strconv.Itoa(os.Getpid()))
	err := atomicfile.WriteFile(path, text, 0o644)
	if errors.Is(err, os.ErrPermission) {
		if f, denied := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC|noFollow, 0); denied == nil {
			_, err = f.Write(text)
			err = errors.Join(err, f.Close())
		}
	}
	if err != nil {
		return fmt.Errorf("cannot write pid file: %w", err)
	}
	return nil
}

// removePID removes the file if it contains this process's id. A user who may not remove it truncates it.
func removePID(path string) {
	b, err := os.ReadFile(path)
	if err != nil || string(b) != strconv.Itoa(os.Getpid()) {
		return
	}
	if err := os.Remove(path); errors.Is(err, os.ErrPermission) {
		_ = os.Truncate(path, 0)
	}
}
