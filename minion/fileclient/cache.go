package fileclient

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// cached is a file being added to the cache: it is written under a temporary name, then renamed. All file operations
// use a handle of the cache directory, so that neither a hostile name nor a planted link leads out of it.
type cached struct {
	root *os.Root
	file *os.File
	temp string
	name string
}

// createFile creates a temporary file for name, and its directories. Like stock, it removes a file in the place of a
// directory.
func (c *Client) createFile(name string) (*cached, error) {
	if err := os.MkdirAll(c.o.CacheDir, 0o750); err != nil {
		return nil, fmt.Errorf("cannot write to the file cache: %w", err)
	}
	root, err := os.OpenRoot(c.o.CacheDir)
	if err != nil {
		return nil, fmt.Errorf("cannot write to the file cache: %w", err)
	}
	w := &cached{root: root, name: name}
	dir := filepath.Dir(name)
	if info, err := root.Lstat(dir); err == nil && !info.IsDir() && info.Mode()&fs.ModeSymlink == 0 {
		if err := root.Remove(dir); err != nil {
			root.Close()
			return nil, fmt.Errorf("cannot write to the file cache: %w", err)
		}
	}
	if err := root.MkdirAll(dir, 0o700); err != nil {
		root.Close()
		return nil, fmt.Errorf("cannot write to the file cache: %w", err)
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails, according to its documentation
	w.temp = filepath.Join(dir, "."+hex.EncodeToString(random[:]))
	w.file, err = root.OpenFile(w.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		root.Close()
		return nil, fmt.Errorf("cannot write to the file cache: %w", err)
	}
	return w, nil
}

// commit renames the file to its final name and returns the path.
func (w *cached) commit() (string, error) {
	if err := w.file.Close(); err != nil {
		return "", fmt.Errorf("cannot write to the file cache: %w", err)
	}
	// The name may have been a directory on the master when it was cached before.
	if info, err := w.root.Lstat(w.name); err == nil && info.IsDir() {
		if err := w.root.RemoveAll(w.name); err != nil {
			return "", fmt.Errorf("cannot write to the file cache: %w", err)
		}
	}
	if err := w.root.Rename(w.temp, w.name); err != nil {
		return "", fmt.Errorf("cannot write to the file cache: %w", err)
	}
	w.temp = ""
	return filepath.Join(w.root.Name(), w.name), nil
}

// discard removes a file that was not committed. After commit it does nothing.
func (w *cached) discard() {
	w.file.Close()
	if w.temp != "" {
		if err := w.root.Remove(w.temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
	w.root.Close()
}
