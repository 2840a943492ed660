//go:build unix

package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// linked gives an error about two names the users' names.
func linked(err error, from, to string) error {
	var l *os.LinkError
	if errors.As(err, &l) {
		return &os.LinkError{Op: l.Op, Old: from, New: to, Err: l.Err}
	}
	return err
}

func link(h *host) (any, error) {
	src, err := h.absolute("src", "File path must be absolute.")
	if err != nil {
		return nil, err
	}
	path, err := h.textArg("path")
	if err != nil {
		return nil, err
	}
	if err := os.Link(h.Path(src), h.Path(path)); err != nil {
		return nil, modules.Errorf("Could not create '%s': %s", path, osText(linked(err, src, path)))
	}
	return true, nil
}

func symlink(h *host) (any, error) {
	src, err := h.textArg("src")
	if err != nil {
		return nil, err
	}
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	if !posixpath.IsAbs(path) {
		return nil, modules.Usagef("Link path must be absolute: %s", path)
	}
	force, atomic := h.Bool("force"), h.Bool("atomic")
	exists := h.exists
	if !h.Bool("follow_symlinks") {
		exists = h.lexists
	}
	isLink := h.isLink(path)
	if isLink {
		if target, err := h.readLink(path); err == nil && posixpath.Norm(target) == posixpath.Norm(src) {
			return true, nil
		}
		if !force && !atomic {
			return nil, modules.Errorf("Found existing symlink: %s", path)
		}
	}
	switch {
	case exists(path) && !force && !atomic:
		return nil, modules.Errorf("Existing path is not a symlink: %s", path)
	case (isLink || exists(path)) && force && !atomic:
		if err := unix.Unlink(h.Path(path)); err != nil {
			return nil, modules.OSError(&os.PathError{Op: "unlink", Path: path, Err: err})
		}
	case atomic:
		return h.symlinkOver(src, path)
	}
	if os.Symlink(src, h.Path(path)) != nil {
		return nil, modules.Errorf("Could not create '%s'", path)
	}
	return true, nil
}

// symlinkOver creates a link under another name, then renames it over the existing file.
func (h *host) symlinkOver(src, path string) (any, error) {
	for range 5 {
		name := posixpath.Join(posixpath.Dir(path), fmt.Sprintf(".%s.%d", posixpath.Base(path), time.Now().UnixNano()))
		err := os.Symlink(src, h.Path(name))
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		if err != nil {
			return nil, modules.OSError(linked(err, src, name))
		}
		if os.Rename(h.Path(name), h.Path(path)) == nil {
			return true, nil
		}
		os.Remove(h.Path(name))
		break
	}
	return nil, modules.Errorf("Could not create '%s'", path)
}

func rename(h *host) (any, error) {
	src, err := h.absolute("src", "File path must be absolute.")
	if err != nil {
		return nil, err
	}
	dst, err := h.path("dst")
	if err != nil {
		return nil, err
	}
	// os.Rename of Go refuses a directory in a directory's place that rename(2) takes.
	if unix.Rename(h.Path(src), h.Path(dst)) != nil {
		return nil, modules.Errorf("Could not rename '%s' to '%s'", src, dst)
	}
	return true, nil
}

func move(h *host) (any, error) {
	if h.Bool("disallow_copy_and_unlink") {
		return rename(h)
	}
	src, err := h.absolute("src", "Source path must be absolute.")
	if err != nil {
		return nil, err
	}
	dst, err := h.absolute("dst", "Destination path must be absolute.")
	if err != nil {
		return nil, err
	}
	if err := h.move(src, dst); isOS(err) || err != nil && !isExec(err) {
		return nil, modules.Errorf("Unable to move '%s' to '%s': %s", src, dst, osText(err))
	} else if err != nil {
		return nil, err
	}
	return map[string]any{"result": true, "comment": fmt.Sprintf("'%s' moved to '%s'", src, dst)}, nil
}

// move implements shutil.move.
func (h *host) move(src, dst string) error {
	to := dst
	if h.isDir(dst) {
		from, err1 := h.stat(src)
		into, err2 := h.stat(dst)
		if err1 == nil && err2 == nil && from.dev == into.dev && from.ino == into.ino {
			return linked(renameOne(h.Path(src), h.Path(dst)), src, dst)
		}
		if to = posixpath.Join(dst, posixpath.Base(strings.TrimRight(src, "/"))); h.exists(to) {
			return fmt.Errorf("Destination path '%s' already exists", to) //nolint:staticcheck // Python's text
		}
	}
	err := linked(renameOne(h.Path(src), h.Path(to)), src, to)
	if err == nil {
		return nil
	}
	st, serr := h.lstat(src)
	switch {
	case serr != nil:
		return serr
	case st.isLink():
		target, err := h.readLink(src)
		if err != nil {
			return err
		}
		if err := os.Symlink(target, h.Path(to)); err != nil {
			return linked(err, target, to)
		}
	case st.isDir():
		if inside(h.abs(dst), h.abs(src)) {
			return fmt.Errorf("Cannot move a directory '%s' into itself '%s'.", src, dst) //nolint:staticcheck // Python's text
		}
		if err := h.copyTree(src, to, true); err != nil {
			return err
		}
		return h.named(os.RemoveAll(h.Path(src)), src)
	default:
		if err := h.copyFile(src, to, true); err != nil {
			return err
		}
	}
	return h.named(os.Remove(h.Path(src)), src)
}

func renameOne(from, to string) error {
	if err := unix.Rename(from, to); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

func copyPath(h *host) (any, error) {
	src, err := h.absolute("src", "File path must be absolute.")
	if err != nil {
		return nil, err
	}
	dst, err := h.path("dst")
	if err != nil {
		return nil, err
	}
	if !h.exists(src) {
		return nil, modules.Errorf("No such file or directory '%s'", src)
	}
	was, err := h.stats(src, nil, true)
	if err != nil {
		return nil, err
	}
	if h.isDir(dst) || h.isDir(src) {
		if !h.Bool("recurse") {
			return nil, modules.Usagef("Cannot copy overwriting a directory without recurse flag set to true!")
		}
		if h.Bool("remove_existing") {
			if h.exists(dst) {
				err = os.RemoveAll(h.Path(dst))
			}
			if err == nil {
				err = h.copyTree(src, dst, false)
			}
		} else {
			err = h.copyInto(src, dst)
		}
	} else {
		err = h.copyFile(src, dst, false)
	}
	if cause := h.ctx.Err(); cause != nil {
		return nil, cause
	}
	if err != nil {
		h.Logger().Debug("Cannot copy", "from", src, "to", dst, "err", err)
		return nil, modules.Errorf("Could not copy '%s' to '%s'", src, dst)
	}
	_, _, err = h.checkPerms(dst, nil, perms{user: was["user"], group: was["group"], mode: was["mode"]})
	if err != nil {
		return nil, modules.OSError(err)
	}
	return true, nil
}

// copyFile implements shutil.copyfile, or shutil.copy2 with all, which also copies mode and times.
func (h *host) copyFile(src, dst string, all bool) error {
	if all && h.isDir(dst) {
		dst = posixpath.Join(dst, posixpath.Base(src))
	}
	a, err := os.Stat(h.Path(src))
	if err != nil {
		return h.named(err, src)
	}
	if !a.Mode().IsRegular() { // opening a pipe would wait for its other end
		return fmt.Errorf("cannot copy %q: not a regular file", src)
	}
	from, err := os.Open(h.Path(src))
	if err != nil {
		return h.named(err, src)
	}
	defer from.Close()
	if b, err := os.Stat(h.Path(dst)); err == nil && os.SameFile(a, b) {
		return fmt.Errorf("%s and %s are the same file", pytext.Repr(src), pytext.Repr(dst))
	}
	to, err := os.OpenFile(h.Path(dst), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return h.named(err, dst)
	}
	_, err = io.Copy(to, endingWith{h.ctx, from})
	if err = errors.Join(err, to.Close()); err != nil || !all {
		return h.named(err, dst)
	}
	st, err := h.stat(src)
	if err != nil {
		return err
	}
	return errors.Join(h.chmod(dst, st.perm()), h.copyTimes(src, h.Path(dst)))
}

// copyInto implements salt.utils.files.recursive_copy: it copies the files below a directory into another one, but no
// links to directories.
func (h *host) copyInto(src, dst string) error {
	return h.walk(src, func(dir string, _ *[]string, files []string) error {
		rel := strings.TrimLeft(strings.ReplaceAll(dir, src, ""), "/")
		to := posixpath.Join(dst, rel)
		if !h.exists(to) {
			if err := os.MkdirAll(h.Path(to), 0o777); err != nil {
				return err
			}
		}
		for _, f := range files {
			if err := h.copyFile(posixpath.Join(src, rel, f), posixpath.Join(to, f), false); err != nil {
				return err
			}
		}
		return nil
	})
}

// copyTree implements shutil.copytree to a directory that must not exist. With links, it copies links as links.
func (h *host) copyTree(src, dst string, links bool) error {
	if err := h.ctx.Err(); err != nil {
		return err
	}
	entries, err := h.dirEntries(src)
	if err != nil {
		return err
	}
	if parent := posixpath.Dir(dst); parent != "" && !h.exists(parent) {
		if err := os.MkdirAll(h.Path(parent), 0o777); err != nil {
			return h.named(err, parent)
		}
	}
	if err := os.Mkdir(h.Path(dst), 0o777); err != nil {
		return h.named(err, dst)
	}
	for _, e := range entries {
		from, to := posixpath.Join(src, e.name), posixpath.Join(dst, e.name)
		switch {
		case links && h.isLink(from):
			var target string
			if target, err = h.readLink(from); err == nil {
				err = linked(os.Symlink(target, h.Path(to)), target, to)
			}
		case e.dir:
			err = h.copyTree(from, to, links)
		default:
			err = h.copyFile(from, to, true)
		}
		if err != nil {
			return err
		}
	}
	st, err := h.stat(src)
	if err != nil {
		return err
	}
	return errors.Join(h.chmod(dst, st.perm()), h.copyTimes(src, h.Path(dst)))
}

func remove(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	if !posixpath.IsAbs(path) {
		return nil, modules.Usagef("File path must be absolute: %s", path)
	}
	switch {
	case h.isLink(path) || h.exists(path) && !h.isDir(path):
		err = unix.Unlink(h.Path(path))
		if err != nil {
			err = &os.PathError{Op: "unlink", Path: path, Err: err}
		}
	case h.isDir(path):
		err = h.named(os.RemoveAll(h.Path(path)), path)
	default:
		return false, nil
	}
	if err != nil {
		return nil, modules.Errorf("Could not remove '%s': %s", path, osText(err))
	}
	return true, nil
}

// removal is one run of file.rmdir.
type removal struct {
	*host
	// before is the time that a directory must be older than, 0 for any.
	before          float64
	deleted, errors []any
}

func rmdir(h *host) (any, error) {
	path, err := h.absolute("path", "File path must be absolute.")
	if err != nil {
		return nil, err
	}
	if !h.isDir(path) {
		return nil, modules.Usagef("A valid directory was not specified: %s", path)
	}
	r := &removal{host: h, deleted: []any{}, errors: []any{}}
	if older := h.Value("older_than"); pytext.Truth(older) {
		if days, err := modules.ToInt(older); err == nil {
			now := h.Now()
			r.before = float64(now.Unix()) + float64(now.Nanosecond())/1e9 - float64(days)*86400
		}
	}
	ok := true
	if h.Bool("recurse") {
		if err := r.below(path); err != nil {
			return nil, modules.OSError(err)
		}
		ok = len(r.errors) == 0
	}
	tried, err := r.remove(path)
	if err != nil {
		return nil, modules.OSError(err)
	}
	switch {
	case !tried && !h.Bool("recurse"):
		ok = false
	case tried && len(r.errors) > 0:
		ok = false
	}
	if h.Bool("verbose") {
		return map[string]any{"deleted": r.deleted, "errors": r.errors, "result": ok}, nil
	}
	return ok, nil
}

// remove takes a directory away if it is old enough.
func (r *removal) remove(path string) (tried bool, err error) {
	if r.before != 0 {
		st, err := r.stat(path)
		if err != nil || st.mtime >= r.before {
			return false, err
		}
	}
	if err := unix.Rmdir(r.Path(path)); err != nil {
		r.errors = append(r.errors, []any{path, osText(&os.PathError{Op: "rmdir", Path: path, Err: err})})
		return true, nil
	}
	r.deleted = append(r.deleted, path)
	return true, nil
}

// below takes the directories below one away, the deepest first.
func (r *removal) below(dir string) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	entries, err := r.dirEntries(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if full := posixpath.Join(dir, e.name); e.dir && !r.isLink(full) {
			if err := r.below(full); err != nil {
				return err
			}
		}
	}
	for _, e := range entries {
		if !e.dir {
			continue
		}
		if _, err := r.remove(posixpath.Join(dir, e.name)); err != nil {
			return err
		}
	}
	return nil
}
