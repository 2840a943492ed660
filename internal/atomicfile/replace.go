package atomicfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Replace writes a file. An existing file keeps its mode and owner; if path is a symbolic link, its target is
// replaced. A new file gets mode. If something is mounted on the file itself, like /etc/hosts in a container, its
// content is overwritten in place.
func Replace(path string, data []byte, mode os.FileMode) error {
	return ReplaceFrom(path, bytes.NewReader(data), mode)
}

// ReplaceFrom is like Replace with the data of r. If r fails the file is unchanged.
func ReplaceFrom(path string, r io.Reader, mode os.FileMode) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return writeFrom(path, r, mode)
	}
	if err != nil {
		return err
	}
	return write(path, r, info.Mode().Perm(), info, func(from, to string) error {
		err := os.Rename(from, to)
		if !errors.Is(err, syscall.EBUSY) {
			return err
		}
		defer os.Remove(from)
		return overwrite(to, from)
	})
}

// overwrite copies a file's content into another file.
func overwrite(to, from string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, src)
	return errors.Join(err, f.Sync(), f.Close())
}
