//go:build windows || solaris || aix

package minion

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// lockDir makes sure that only one minion uses a directory. It holds a file open for writing, which the system
// does not let another process remove or create again.
func lockDir(dir string) (release func(), err error) {
	path := filepath.Join(dir, ".lock")
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %q", ErrRunning, dir)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock %q: %w", dir, err)
	}
	return func() { f.Close(); os.Remove(path) }, nil
}

func ownerIDs(string) []int { return nil }
