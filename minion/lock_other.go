//go:build windows || solaris || aix

package minion

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// lockDir makes sure that one minion uses a directory: the system does not let anybody remove or create a file again
// that is open for writing here.
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
