//go:build unix

package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/internal/modkit/nss"
	"github.com/brine-salt/brine/internal/modkit/pycodec"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// host is a call and the host it works on. Its methods take paths as users write them, after expandUser.
type host struct {
	*modules.Call
	ctx context.Context
}

func on(ctx context.Context, c *modules.Call) *host { return &host{Call: c, ctx: ctx} }

// path returns an argument that names a file. A leading ~ is expanded.
func (h *host) path(name string) (string, error) { return h.pathOf(h.Value(name)) }

func (h *host) pathOf(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return nss.ExpandUser(h.ctx, h.Call, v), nil
	case []byte:
		return nss.ExpandUser(h.ctx, h.Call, string(v)), nil
	}
	return "", &modules.TypeError{Msg: "expected str, bytes or os.PathLike object, not " + modules.TypeName(v)}
}

// stat holds the system's data about a file.
type stat struct {
	mode, uid, gid      uint32
	dev, ino, nlink     uint64
	rdev                uint64
	size                int64
	atime, mtime, ctime float64
	mtimeSec            int64
}

func (s *stat) kind() uint32 { return s.mode & unix.S_IFMT }

func (s *stat) isDir() bool { return s.kind() == unix.S_IFDIR }

func (s *stat) isRegular() bool { return s.kind() == unix.S_IFREG }

func (s *stat) isLink() bool { return s.kind() == unix.S_IFLNK }

// perm returns the permission bits, without the file type.
func (s *stat) perm() uint32 { return s.mode & 0o7777 }

// digits returns the permissions in the form in which Salt shows modes.
func (s *stat) digits() any { return modules.NormalMode(strconv.FormatUint(uint64(s.perm()), 8)) }

func (h *host) stat(path string) (*stat, error) { return h.statAt(path, 0) }

func (h *host) lstat(path string) (*stat, error) { return h.statAt(path, unix.AT_SYMLINK_NOFOLLOW) }

func (h *host) statAt(path string, flags int) (*stat, error) {
	if strings.IndexByte(path, 0) >= 0 {
		return nil, &modules.PythonError{Type: "ValueError", Msg: "embedded null byte"}
	}
	var st unix.Stat_t
	var err error = unix.EINTR
	for err == unix.EINTR {
		err = unix.Fstatat(unix.AT_FDCWD, h.Path(path), &st, flags)
	}
	if err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return &stat{
		mode: uint32(st.Mode), uid: st.Uid, gid: st.Gid, dev: uint64(st.Dev), ino: uint64(st.Ino), nlink: uint64(st.Nlink),
		rdev: uint64(st.Rdev), size: int64(st.Size), atime: seconds(st.Atim), mtime: seconds(st.Mtim), ctime: seconds(st.Ctim),
		mtimeSec: int64(st.Mtim.Sec),
	}, nil
}

func ignoringEINTR(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func seconds(t unix.Timespec) float64 { return float64(t.Sec) + 1e-9*float64(t.Nsec) }

// exists follows links; lexists does not.
func (h *host) exists(path string) bool {
	_, err := h.stat(path)
	return err == nil
}

func (h *host) lexists(path string) bool {
	_, err := h.lstat(path)
	return err == nil
}

func (h *host) isDir(path string) bool {
	st, err := h.stat(path)
	return err == nil && st.isDir()
}

func (h *host) isFile(path string) bool {
	st, err := h.stat(path)
	return err == nil && st.isRegular()
}

func (h *host) isLink(path string) bool {
	st, err := h.lstat(path)
	return err == nil && st.isLink()
}

// abs implements os.path.abspath.
func (h *host) abs(path string) string {
	if !posixpath.IsAbs(path) {
		if cwd, err := os.Getwd(); err == nil {
			path = posixpath.Join(cwd, path)
		}
	}
	return posixpath.Norm(path)
}

// real implements os.path.realpath.
func (h *host) real(path string) string {
	if !posixpath.IsAbs(path) {
		if cwd, err := os.Getwd(); err == nil {
			path = posixpath.Join(cwd, path)
		}
	}
	return posixpath.Real(path, func(p string) string {
		if !h.isLink(p) {
			return ""
		}
		target, _ := os.Readlink(h.Path(p))
		return target
	})
}

// readLink implements os.readlink.
func (h *host) readLink(path string) (string, error) {
	target, err := os.Readlink(h.Path(path))
	return target, h.named(err, path)
}

// named puts the user's path in the place of the one that was opened.
func (h *host) named(err error, path string) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return &os.PathError{Op: p.Op, Path: path, Err: p.Err}
	}
	return err
}

// maxFile bounds what is read into memory at once.
const maxFile = 1 << 30

// read returns a file's content. As with Python's open, a directory is an error.
func (h *host) read(path string) ([]byte, error) {
	st, err := h.stat(path)
	if err != nil {
		return nil, err
	}
	if st.isDir() {
		return nil, &os.PathError{Op: "open", Path: path, Err: unix.EISDIR}
	}
	if st.size > maxFile {
		return nil, modules.Errorf("cannot read %q: %d bytes are more than the %d that are edited in memory", path, st.size, maxFile)
	}
	b, err := os.ReadFile(h.Path(path))
	return b, h.named(err, path)
}

// readText returns a file's content as text. Content that is not UTF-8 is an error.
func (h *host) readText(path string) (string, error) {
	b, err := h.read(path)
	if err != nil {
		return "", err
	}
	return pycodec.UTF8(b)
}

// chmod sets a mode as it is, with its special bits.
func (h *host) chmod(path string, mode uint32) error {
	if err := ignoringEINTR(func() error { return unix.Chmod(h.Path(path), mode&0o7777) }); err != nil {
		return &os.PathError{Op: "chmod", Path: path, Err: err}
	}
	return nil
}

// chmodFile is like chmod and follows no link: the error for one is EOPNOTSUPP or ELOOP.
func (h *host) chmodFile(path string, mode uint32) error {
	err := ignoringEINTR(func() error {
		return unix.Fchmodat(unix.AT_FDCWD, h.Path(path), mode&0o7777, unix.AT_SYMLINK_NOFOLLOW)
	})
	if errors.Is(err, unix.EOPNOTSUPP) { // Linux before 6.6, or a link
		err = ignoringEINTR(func() error { return h.chmodOpen(path, mode) })
	}
	if err != nil {
		return &os.PathError{Op: "chmod", Path: path, Err: err}
	}
	return nil
}

func (h *host) chmodOpen(path string, mode uint32) error {
	// guard: given-by-path TestPermsFollowNoLink instead: fd, err := unix.Open(h.Path(path), unix.O_RDONLY, 0)
	fd, err := unix.Open(h.Path(path), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchmod(fd, mode&0o7777)
}

func (h *host) testing() bool { return pytext.Truth(h.Opt("test")) }

// testOnly reports whether the option test is exactly True. Some functions check that, and not its truth.
func (h *host) testOnly() bool { return h.Opt("test") == any(true) }

// strerror returns only the operating system's text of an error, without the operation and path.
func strerror(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		s := errno.Error()
		return strings.ToUpper(s[:1]) + s[1:]
	}
	return err.Error()
}

// osText returns an error of the operating system as by Python's str().
func osText(err error) string {
	if s, _ := modules.OSErrorText(err); s != "" {
		return s
	}
	return err.Error()
}

// isOS reports whether an error is one that Python calls an OSError.
func isOS(err error) bool {
	s, _ := modules.OSErrorText(err)
	return s != ""
}

// message returns the text of an exception of Salt, as str(exc), or exc.strerror for an error of the operating
// system.
func message(err error) string {
	if isOS(err) {
		return osText(err)
	}
	return modules.ExceptionText(err)
}

// isExec reports whether an error is Salt's CommandExecutionError.
func isExec(err error) bool {
	return modules.IsExecError(err)
}

func valueError(format string, args ...any) error {
	return &modules.PythonError{Type: "ValueError", Msg: fmt.Sprintf(format, args...)}
}

// str returns the Python str() of a value, and "" for None.
func str(v any) string {
	if v == nil {
		return ""
	}
	return pytext.Str(v)
}
