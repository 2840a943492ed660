// Package atomicfile writes files atomically, even if the machine crashes: it writes a temporary file with the final
// mode in the same directory, syncs it, renames it, and syncs the directory.
package atomicfile

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// attempts limits the search for a free temporary name. The first name is free unless another process guesses 50
// random bits.
const attempts = 16

// WriteFile writes data to path with exactly this mode, whatever the umask. The mode is set before the content. A
// symbolic link at path is replaced, not its target. After an error the old file is unchanged.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	return writeFrom(path, bytes.NewReader(data), mode)
}

// writeFrom is like WriteFile with the data of r.
func writeFrom(path string, r io.Reader, mode os.FileMode) error {
	if err := write(path, r, mode, nil, os.Rename); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	return SyncDir(filepath.Dir(path))
}

// Create is like WriteFile for a new file. If path exists, the error matches fs.ErrExist and the file is unchanged.
func Create(path string, data []byte, mode os.FileMode) error {
	if err := write(path, bytes.NewReader(data), mode, nil, linkNew); err != nil {
		return fmt.Errorf("cannot create %q: %w", path, err)
	}
	return SyncDir(filepath.Dir(path))
}

// linkNew gives a finished temporary file its name, and fails if the name exists. A rename would replace the existing
// file.
func linkNew(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		os.Remove(from)
		return err
	}
	// The file system may lack hard links. A rename after a check is nearly as good.
	if _, serr := os.Lstat(to); serr == nil {
		os.Remove(from)
		return &fs.PathError{Op: "create", Path: to, Err: fs.ErrExist}
	}
	return os.Rename(from, to)
}

// write writes a temporary file and calls place to give it its name. If of is not nil, the file gets the owner of of.
func write(path string, r io.Reader, mode os.FileMode, of os.FileInfo, place func(from, to string) error) (err error) {
	f, err := create(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err = f.Chmod(mode.Perm()); err != nil {
		return err
	}
	if _, err = io.Copy(f, r); err != nil {
		return err
	}
	// Use the descriptor: another user who may write to the directory could replace the name by a link.
	if of != nil {
		if err = sameOwner(f, of); err != nil {
			return err
		}
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return place(f.Name(), path)
}

// writingTime is how long a temporary file may be unchanged while it is written. An older file was left behind by a
// crash.
const writingTime = 10 * time.Second

// randomLetters is how many random characters a temporary name ends with.
const randomLetters = 10

// RemoveUnfinished removes temporary files of path that a crash of the machine left behind.
func RemoveUnfinished(path string) error {
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return fmt.Errorf("cannot look for unfinished files: %w", err)
	}
	var errs []error
	for _, e := range entries {
		random, ok := strings.CutPrefix(e.Name(), "."+base+".")
		if !ok || len(random) != randomLetters || strings.Trim(random, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		// The clock may have been set back since.
		if err != nil || time.Since(info.ModTime()).Abs() < writingTime {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// create creates a temporary file beside path, with a name that other processes cannot predict.
func create(path string) (*os.File, error) {
	dir, base := filepath.Split(path)
	for i := 0; ; i++ {
		name := filepath.Join(dir, "."+base+"."+rand.Text()[:randomLetters])
		// guard: CVE-2014-3563,CVE-2015-1838,CVE-2015-1839,CVE-2023-34049 TestCVE_2014_3563_PlantedLinks instead: f, err := os.OpenFile(name[:len(name)-11], os.O_RDWR|os.O_CREATE, 0o600)
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil || !errors.Is(err, fs.ErrExist) || i == attempts {
			return f, err
		}
	}
}
