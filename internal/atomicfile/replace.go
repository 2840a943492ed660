package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes a file that may be there already, whose mode and owner it then keeps; a symbolic link stays one, and what it
// leads to is replaced. A new file gets the mode given.
func Replace(path string, data []byte, mode os.FileMode) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return WriteFile(path, data, mode)
	}
	if err != nil {
		return err
	}
	return write(path, data, info.Mode().Perm(), func(from, to string) error {
		if err := sameOwner(from, info); err != nil {
			return err
		}
		return os.Rename(from, to)
	})
}
