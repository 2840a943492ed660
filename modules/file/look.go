//go:build unix

package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pyglob"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// found returns the file for file.stats, following a link if follow is set and its target exists.
func (h *host) found(path string, follow bool) (*stat, error) {
	if follow {
		if st, err := h.stat(path); err == nil {
			return st, nil
		}
	}
	st, err := h.lstat(path) // a link that leads nowhere has an owner, too
	if err != nil {
		return nil, modules.Errorf("Path not found: %s", path)
	}
	return st, nil
}

// stats implements file.stats.
func (h *host) stats(path string, hashType any, follow bool) (map[string]any, error) {
	st, err := h.found(path, follow)
	if err != nil {
		return nil, err
	}
	s := map[string]any{
		"inode": int64(st.ino), "uid": int64(st.uid), "gid": int64(st.gid),
		"group": h.gidToGroup(int64(st.gid)), "user": h.uidToUser(int64(st.uid)),
		"atime": st.atime, "mtime": st.mtime, "ctime": st.ctime, "size": st.size,
		"mode": st.digits(), "type": kindName(st.kind()),
	}
	if hashType != nil && hashType != "" {
		sum, err := h.hash(path, hashType)
		if err != nil {
			return nil, err
		}
		s["sum"] = sum
	}
	return s, nil
}

func kindName(kind uint32) string {
	switch kind {
	case unix.S_IFDIR:
		return "dir"
	case unix.S_IFCHR:
		return "char"
	case unix.S_IFBLK:
		return "block"
	case unix.S_IFLNK:
		return "link"
	case unix.S_IFIFO:
		return "pipe"
	case unix.S_IFSOCK:
		return "socket"
	}
	return "file"
}

func stats(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	follow := h.Bool("follow_symlinks")
	s, err := h.stats(path, h.Value("hash_type"), follow)
	if err != nil {
		return nil, modules.OSError(err)
	}
	if s["target"] = h.abs(path); follow {
		s["target"] = h.real(path)
	}
	return pyobj.Keyed(s, "inode", "uid", "gid", "group", "user", "atime", "mtime", "ctime", "size", "mode", "sum", "type", "target"), nil
}

// absolute returns a path argument. If it is not absolute, the error has the text complaint.
func (h *host) absolute(name, complaint string) (string, error) {
	path, err := h.path(name)
	if err != nil {
		return "", err
	}
	if !posixpath.IsAbs(path) {
		return "", modules.Usagef("%s", complaint)
	}
	return path, nil
}

func lstat(h *host) (any, error) {
	path, err := h.absolute("path", "Path to file must be absolute.")
	if err != nil {
		return nil, err
	}
	st, err := h.lstat(path)
	if err != nil {
		return map[string]any{}, nil
	}
	return map[string]any{
		"st_atime": st.atime, "st_ctime": st.ctime, "st_gid": int64(st.gid), "st_mode": int64(st.mode), "st_mtime": st.mtime,
		"st_nlink": int64(st.nlink), "st_size": st.size, "st_uid": int64(st.uid),
	}, nil
}

func isHardlink(h *host) (any, error) {
	path, err := h.absolute("path", "Path to file must be absolute.")
	if err != nil {
		return nil, err
	}
	st, err := h.lstat(path)
	if err != nil {
		return map[string]any{}, nil // Salt 3007 answers with the empty map that it found
	}
	return st.nlink > 1, nil
}

func isLink(h *host) (any, error) {
	if pytext.Truth(h.Value("nostat")) {
		return isLinkByParent(h)
	}
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	return h.isLink(path), nil
}

// isLinkByParent asks the directory what the entry is, and never the entry itself, which may be on a server that does not answer.
func isLinkByParent(h *host) (any, error) {
	path := h.Str("path")
	dir := posixpath.Dir(path)
	if dir == "" {
		return nil, modules.OSError(&fs.PathError{Op: "open", Path: dir, Err: unix.ENOENT})
	}
	d, err := os.Open(h.Path(dir))
	if err != nil {
		return nil, modules.OSError(err)
	}
	defer d.Close()
	for {
		list, err := d.ReadDir(256)
		for _, e := range list {
			if posixpath.Join(dir, e.Name()) == path {
				return e.Type()&fs.ModeSymlink != 0, nil
			}
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return nil, modules.OSError(err)
		}
	}
}

func access(h *host) (any, error) {
	path, err := h.absolute("path", "Path to link must be absolute.")
	if err != nil {
		return nil, err
	}
	mode := uint32(0)
	switch v := h.Value("mode").(type) {
	case string:
		switch v {
		case "f":
		case "r":
			mode = unix.R_OK
		case "w":
			mode = unix.W_OK
		case "x":
			mode = unix.X_OK
		default:
			return nil, modules.Usagef("Invalid mode specified.")
		}
	case int64:
		if v != 0 && v != 1 && v != 2 && v != 4 {
			return nil, modules.Usagef("Invalid mode specified.")
		}
		mode = uint32(v)
	case []any, map[string]any, map[any]any:
		return nil, &modules.TypeError{Msg: fmt.Sprintf("unhashable type: '%s'", modules.TypeName(v))}
	case bool:
		if v {
			mode = 1
		}
	default:
		return nil, modules.Usagef("Invalid mode specified.")
	}
	return unix.Access(h.Path(path), mode) == nil, nil
}

func readlink(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	path = posixpath.Vars(path, h.Context().Getenv)
	if !posixpath.IsAbs(path) {
		return nil, modules.Usagef("Path to link must be absolute: %s", path)
	}
	if !h.isLink(path) {
		return nil, modules.Usagef("A valid link was not specified: %s", path)
	}
	if h.Bool("canonicalize") {
		return h.real(path), nil
	}
	target, err := h.readLink(path)
	if errors.Is(err, unix.EINVAL) {
		return nil, modules.Errorf("Not a symbolic link: %s", path)
	} else if err != nil {
		return nil, modules.Errorf("%s", osText(err))
	}
	return target, nil
}

// names returns the entries of a directory in the order of the file system.
func (h *host) names(path string) ([]string, error) {
	d, err := os.Open(h.Path(path))
	if err != nil {
		return nil, h.named(err, path)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	return names, h.named(err, path)
}

func readdir(h *host) (any, error) {
	path, err := h.absolute("path", "Dir path must be absolute.")
	if err != nil {
		return nil, err
	}
	if !h.isDir(path) {
		return nil, modules.Usagef("A valid directory was not specified: %s", path)
	}
	names, err := h.names(path)
	if err != nil {
		return nil, modules.OSError(err)
	}
	return nested.Anys(append([]string{".", ".."}, names...)), nil
}

func directoryExists(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	return h.isDir(path), nil
}

func fileExists(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	return h.isFile(path), nil
}

func pathExistsGlob(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	return len(pyglob.Glob(h.Path, path)) > 0, nil
}

// isKind answers is_blkdev, is_chrdev and is_fifo.
func isKind(h *host, kind uint32) (any, error) {
	path, err := h.path("name")
	if err != nil {
		return nil, err
	}
	ok, err := h.isKind(path, kind)
	return ok, modules.OSError(err)
}

func (h *host) isKind(path string, kind uint32) (bool, error) {
	st, err := h.stat(path)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return st.kind() == kind, nil
}

func getDevmm(h *host) (any, error) {
	path, err := h.path("name")
	if err != nil {
		return nil, err
	}
	st, err := h.stat(path)
	switch {
	case errors.Is(err, unix.ENOENT):
		return pyobj.Tuple{int64(0), int64(0)}, nil
	case err != nil:
		return nil, modules.OSError(err)
	case st.kind() == unix.S_IFCHR || st.kind() == unix.S_IFBLK:
		return pyobj.Tuple{int64(unix.Major(st.rdev)), int64(unix.Minor(st.rdev))}, nil
	}
	return pyobj.Tuple{int64(0), int64(0)}, nil
}

// textArg returns the path argument of functions that use only its text and read no file.
func (h *host) textArg(name string) (string, error) {
	switch v := h.Value(name).(type) {
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	default:
		return "", &modules.TypeError{Msg: "expected str, bytes or os.PathLike object, not " + modules.TypeName(v)}
	}
}

// onText answers basename, dirname and normpath.
func onText(h *host, f func(string) string) (any, error) {
	path, err := h.textArg("path")
	if err != nil {
		return nil, err
	}
	return f(path), nil
}

func join(h *host) (any, error) {
	parts := make([]string, len(h.Extra))
	for i, v := range h.Extra {
		s, ok := v.(string)
		switch {
		case !ok && i == 0:
			return nil, &modules.TypeError{Msg: "expected str, bytes or os.PathLike object, not " + modules.TypeName(v)}
		case !ok:
			return nil, &modules.TypeError{Msg: fmt.Sprintf("join() argument must be str, bytes, or os.PathLike object, not '%s'", modules.TypeName(v))}
		}
		parts[i] = s
	}
	if len(parts) == 0 {
		return nil, &modules.TypeError{Msg: "join() missing 1 required positional argument: 'a'"}
	}
	return posixpath.Join(parts[0], parts[1:]...), nil
}

func pardir(*host) (any, error) { return "..", nil }

// diskusage sums the sizes of the files below a directory, each file once.
func diskusage(h *host) (any, error) {
	path, err := h.textArg("path") // Salt does not expand ~ here
	if err != nil {
		return nil, err
	}
	if st, err := h.stat(path); err == nil && st.isRegular() {
		return st.size, nil
	}
	total, seen := int64(0), map[uint64]bool{}
	err = h.walk(path, func(dir string, _ *[]string, files []string) error {
		for _, f := range files {
			st, err := h.stat(posixpath.Join(dir, f))
			if err != nil || seen[st.ino] {
				continue
			}
			seen[st.ino] = true
			total += st.size
		}
		return nil
	})
	return total, err
}

// walk implements os.walk from the top: links to directories count as directories but are not entered;
// directories that cannot be read are left out. visit may shorten the list of directories to enter.
func (h *host) walk(top string, visit func(dir string, dirs *[]string, files []string) error) error {
	if err := h.ctx.Err(); err != nil {
		return err
	}
	entries, err := h.dirEntries(top)
	if err != nil {
		return nil
	}
	var dirs, files []string
	for _, e := range entries {
		if e.dir {
			dirs = append(dirs, e.name)
		} else {
			files = append(files, e.name)
		}
	}
	if err := visit(top, &dirs, files); err != nil {
		return err
	}
	for _, d := range dirs {
		full := posixpath.Join(top, d)
		if h.isLink(full) {
			continue
		}
		if err := h.walk(full, visit); err != nil {
			return err
		}
	}
	return nil
}

// dirEntry is a name in a directory, and whether it leads to a directory.
type dirEntry struct {
	name string
	dir  bool
}

func (h *host) dirEntries(path string) ([]dirEntry, error) {
	d, err := os.Open(h.Path(path))
	if err != nil {
		return nil, h.named(err, path)
	}
	defer d.Close()
	list, err := d.ReadDir(-1)
	out := make([]dirEntry, len(list))
	for i, e := range list {
		out[i] = dirEntry{e.Name(), e.IsDir() || e.Type()&os.ModeSymlink != 0 && h.isDir(posixpath.Join(path, e.Name()))}
	}
	return out, h.named(err, path)
}

// inside reports whether a path is in a directory or is it, by text.
func inside(path, dir string) bool {
	dir = strings.TrimRight(dir, "/")
	return path == dir || strings.HasPrefix(path, dir+"/")
}
