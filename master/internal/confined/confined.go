// Package confined confines files to one directory, whatever their names: the kernel resolves every path below
// an open directory (os.Root), only regular files are read, sizes are limited before reading, and writes
// replace a file atomically. The master turns an id, a job id or a path from a peer into a file only through
// this package.
package confined

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// ErrTooLarge means that a file exceeds the reader's limit.
var ErrTooLarge = errors.New("file is too large")

// ErrNotRegular means that a name is a directory, link, pipe, socket or device instead of a plain file.
var ErrNotRegular = errors.New("not a regular file")

// Dir is a directory that names cannot leave. Its methods are safe for concurrent use.
type Dir struct {
	root *os.Root
	path string
}

// Open opens the directory at path, and creates it with the given permissions if it is missing.
func Open(dir string, perm fs.FileMode) (*Dir, error) {
	if err := os.MkdirAll(dir, perm); err != nil {
		return nil, fmt.Errorf("cannot create directory %q: %w", dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open directory %q: %w", dir, err)
	}
	return &Dir{root: root, path: dir}, nil
}

// Sub opens a directory below d, for many uses of its content: names are then not resolved from d each time.
func (d *Dir) Sub(name string) (*Dir, error) {
	root, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &Dir{root: root, path: path.Join(d.path, name)}, nil
}

// Same reports whether both are the same directory.
func (d *Dir) Same(o *Dir) bool {
	a, err := d.root.Stat(".")
	if err != nil {
		return false
	}
	b, err := o.root.Stat(".")
	return err == nil && os.SameFile(a, b)
}

// Path returns the path with which the directory was opened.
func (d *Dir) Path() string { return d.path }

// Close closes the directory. Later calls fail.
func (d *Dir) Close() error { return d.root.Close() }

// Mkdir creates the directories of name, each with the given permissions.
func (d *Dir) Mkdir(name string, perm fs.FileMode) error { return d.root.MkdirAll(name, perm) }

// Stat describes a name without following a link in its last part.
func (d *Dir) Stat(name string) (fs.FileInfo, error) { return d.root.Lstat(name) }

// Remove removes a file or an empty directory. A missing name is not an error.
func (d *Dir) Remove(name string) error {
	err := d.root.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// RemoveAll removes a name and everything below it.
func (d *Dir) RemoveAll(name string) error { return d.root.RemoveAll(name) }

// List returns the entries of a directory below d, unsorted. A missing directory has no entries. Types come
// from the directory itself, which costs nothing; only Info makes a system call for each entry.
func (d *Dir) List(name string) ([]fs.DirEntry, error) {
	f, err := d.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found, err := readEntries(f)
	entries := make([]fs.DirEntry, len(found))
	for i, e := range found {
		entries[i] = entry{e, d, name}
	}
	return entries, err
}

// entry is a listed name. Info goes through the root, like everything else.
type entry struct {
	fs.DirEntry
	dir    *Dir
	folder string
}

// Info describes the entry without following a link.
func (e entry) Info() (fs.FileInfo, error) { return e.dir.Stat(e.folder + "/" + e.Name()) }

// OpenFile opens a regular file for reading. It does not block on pipes and does not open devices.
func (d *Dir) OpenFile(name string) (*os.File, fs.FileInfo, error) {
	f, err := d.root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// Read returns the content of a regular file of at most limit bytes, and its description.
func (d *Dir) Read(name string, limit int64) ([]byte, fs.FileInfo, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "read", Path: name, Err: ErrNotRegular}
	}
	f, info, err := d.OpenFile(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info.Size() > limit {
		return nil, nil, fmt.Errorf("cannot read %q: %w: %d bytes are more than %d", name,
			ErrTooLarge, info.Size(), limit)
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("cannot read %q: %w: more than %d bytes", name, ErrTooLarge, limit)
	}
	return b, info, err
}

// Write replaces a file by data atomically: a reader sees the old content or the new one. With sync the data is
// on the disk before the name is, and the name when Write returns.
func (d *Dir) Write(name string, data []byte, perm fs.FileMode, sync bool) error {
	temp := path.Join(path.Dir(name), unfinished+randomName())
	f, err := d.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = f.Chmod(perm)
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if err = d.finish(f, err, temp, name); err == nil && sync {
		err = d.syncDir(path.Dir(name))
	}
	return err
}

// Own gives a file to a user and a group, where -1 keeps what it has. It follows no link.
func (d *Dir) Own(name string, uid, gid int) error {
	// guard: given-by-path TestOwnFollowsNoLink instead: return os.Chown(d.path+"/"+name, uid, gid)
	return d.root.Lchown(name, uid, gid)
}

// syncDir makes the names in a directory durable.
func (d *Dir) syncDir(name string) error {
	f, err := d.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// WriteBelow is Write without sync, and with permissions that the umask restricts, for a file in a directory
// below that was created here. The temporary file is in d itself, so that the other directory is looked up only
// once.
func (d *Dir) WriteBelow(name string, data []byte, perm fs.FileMode) error {
	temp := unfinished + randomName()
	f, err := d.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return d.finish(f, err, temp, name)
}

// unfinished is the prefix of temporary files.
const unfinished = ".new-"

// writingTime is how long a file that is being written may be idle. An older temporary file was left by a
// crash.
const writingTime = 10 * time.Second

// RemoveUnfinished removes the temporary files that a crash left in a directory.
func (d *Dir) RemoveUnfinished(name string) error {
	entries, err := d.List(name)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), unfinished) || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		// The clock may have been set back.
		if err != nil || time.Since(info.ModTime()).Abs() < writingTime {
			continue
		}
		if err := d.root.Remove(path.Join(name, e.Name())); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// finish closes a file and renames it, unless err is not nil.
func (d *Dir) finish(f *os.File, err error, temp, name string) error {
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = d.root.Rename(temp, name)
	}
	if err != nil {
		d.root.Remove(temp)
	}
	return err
}

// Create creates a file that must not exist yet. It reports whether this call created it.
func (d *Dir) Create(name string, data []byte, perm fs.FileMode) (bool, error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	return true, err
}

// MakeDir creates one directory. It reports whether this call created it.
func (d *Dir) MakeDir(name string, perm fs.FileMode) (bool, error) {
	err := d.root.Mkdir(name, perm)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// WriteAt writes data at an offset of a regular file. create first creates or truncates the file. Writing
// beyond the end is refused, so a file has no holes.
func (d *Dir) WriteAt(name string, data []byte, offset int64, create bool, perm fs.FileMode) error {
	flags := os.O_WRONLY | nonblock
	if create {
		flags |= os.O_CREATE | os.O_TRUNC
	}
	f, err := d.root.OpenFile(name, flags, perm)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = &fs.PathError{Op: "write", Path: name, Err: ErrNotRegular}
	case offset > info.Size():
		err = fmt.Errorf("cannot write %q: offset %d is after its end %d", name, offset,
			info.Size())
	default:
		_, err = f.WriteAt(data, offset)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// Size returns how many bytes the files and directories below a directory take, counting at least atLeast for
// each. A missing directory takes none.
func (d *Dir) Size(name string, atLeast int64) (int64, error) {
	entries, err := d.List(name)
	if err != nil {
		return 0, err
	}
	var n int64
	for _, e := range entries {
		if e.IsDir() {
			below, err := d.Size(path.Join(name, e.Name()), atLeast)
			if err != nil {
				return 0, err
			}
			n += atLeast + below
		} else if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			n += max(info.Size(), atLeast)
		}
	}
	return n, nil
}

func randomName() string {
	var b [12]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
