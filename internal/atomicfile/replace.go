package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Replace writes a file that may be there already, whose mode and owner it then keeps; a symbolic link stays one, and what it
// leads to is replaced. A new file gets the mode given. Where something is mounted on the file itself, as on
// /etc/hosts in a container, the content is written into it.
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
		err := os.Rename(from, to)
		if !errors.Is(err, syscall.EBUSY) {
			return err
		}
		defer os.Remove(from)
		return overwrite(to, data)
	})
}

func overwrite(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
