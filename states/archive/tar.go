package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
)

// errNoTar means that a file is not an archive that can be read without a program.
var errNoTar = errors.New("not a tar archive")

// maxMembers bounds an archive.
const maxMembers = 5_000_000

// untar unpacks a tar archive without the program tar.
func (j *job) untar() error {
	f, err := os.Open(j.Path(j.cached))
	if err != nil {
		return modules.OSError(err)
	}
	defer f.Close()
	names, err := j.members(f)
	if errors.Is(err, errNoTar) {
		if names, err = j.unxz(); errors.Is(err, errNoTar) {
			j.undo()
			return j.fail(j.ret.Comment)
		}
	}
	if err != nil {
		return modules.OSError(err)
	}
	j.files = j.trimmed(names)
	return nil
}

// unxz is like untar for an archive that the program xz decompresses. If that is not possible, the comment gives the
// reason.
func (j *job) unxz() ([]string, error) {
	program := j.Which("xz")
	if program == "" {
		j.ret.Comment = "Failed to read from tar archive. If it is XZ-compressed, install xz-utils to attempt extraction."
		return nil, errNoTar
	}
	j.ret.Comment = "Failed to read from tar archive using Python's native tar file support. If archive is compressed using something other than gzip or " +
		"bzip2, the 'options' argument may be required to pass the correct options to the tar command in order to extract the archive."
	ctx, cancel := context.WithCancel(j.ctx)
	defer cancel()
	in, out := io.Pipe()
	status := make(chan error, 1)
	go func() {
		res, err := j.Cmd(ctx, modules.Command{Args: []string{program, "--decompress", "--stdout", j.Path(j.cached)}, Stdout: out, Stderr: io.Discard})
		if err == nil && res.ExitCode != 0 {
			err = errNoTar
		}
		out.CloseWithError(io.EOF)
		status <- err
	}()
	names, err := j.members(in)
	_, _ = io.Copy(io.Discard, in) // what is behind the end of the archive
	in.CloseWithError(io.ErrClosedPipe)
	if failed := <-status; failed != nil {
		err = failed
	}
	if err == nil {
		j.ret.Comment = ""
	}
	return names, err
}

// unpacking is the work on one archive.
type unpacking struct {
	*job
	root *os.Root
	dirs []*tar.Header // whose attributes are set when all is there
	ids  map[string]int64
}

// members unpacks a stream and returns the names of its members.
func (j *job) members(r io.Reader) (names []string, err error) {
	b := bufio.NewReader(r)
	head, _ := b.Peek(3)
	var stream io.Reader = b
	switch {
	case len(head) == 0:
		return nil, errNoTar
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, errNoTar
		}
		stream = z
	case bytes.HasPrefix(head, []byte("BZh")):
		stream = bzip2.NewReader(b)
	}
	root, err := os.OpenRoot(j.Path(j.name))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	u := &unpacking{job: j, root: root, ids: map[string]int64{}}
	for t := tar.NewReader(stream); ; {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return names, u.finish()
		case j.ctx.Err() != nil:
			return nil, j.ctx.Err()
		case err != nil && len(names) == 0:
			return nil, errNoTar
		case err != nil:
			return nil, &modules.PythonError{Type: "tarfile.ReadError", Msg: "unexpected end of data"}
		case len(names) >= maxMembers:
			return nil, fmt.Errorf("cannot unpack more than %d files", maxMembers)
		}
		names = append(names, strings.TrimRight(h.Name, "/"))
		if err := u.member(h, t); err != nil {
			return nil, err
		}
	}
}

func (u *unpacking) member(h *tar.Header, content io.Reader) error {
	name := inside(h.Name)
	if dir := posixpath.Dir(name); dir != "" {
		if err := u.root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		u.dirs = append(u.dirs, h)
		if err := u.root.Mkdir(name, 0o700); err != nil {
			if info, _ := u.root.Stat(name); info == nil || !info.IsDir() {
				return err
			}
		}
		return nil
	case tar.TypeSymlink:
		if err := u.away(name); err != nil {
			return err
		}
		if err := u.root.Symlink(h.Linkname, name); err != nil {
			return err
		}
		return u.own(h, name)
	case tar.TypeLink:
		if err := u.away(name); err != nil {
			return err
		}
		return u.root.Link(inside(h.Linkname), name)
	case tar.TypeFifo, tar.TypeChar, tar.TypeBlock:
		if err := u.away(name); err != nil {
			return err
		}
		if err := node(u.root, name, h); err != nil {
			return err
		}
	default:
		if err := u.write(name, content); err != nil {
			return err
		}
	}
	return u.attributes(h, name)
}

// away removes the file in place of a link or device. A directory stays, and is an error.
func (u *unpacking) away(name string) error {
	if info, err := u.root.Lstat(name); err != nil || info.IsDir() {
		return nil
	}
	return u.root.Remove(name)
}

func (u *unpacking) write(name string, content io.Reader) error {
	f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, ending{u.ctx, content})
	return errors.Join(err, f.Close())
}

// ending is a reader that stops when the context does.
type ending struct {
	ctx context.Context
	r   io.Reader
}

func (e ending) Read(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.r.Read(p)
}

// finish sets the attributes of directories, those below first.
func (u *unpacking) finish() error {
	sorting.Stable(u.dirs, func(a, b *tar.Header) int { return strings.Compare(b.Name, a.Name) })
	for _, h := range u.dirs {
		if err := u.attributes(h, inside(h.Name)); err != nil {
			return err
		}
	}
	return nil
}

// attributes sets owner, mode and time, in this order: a change of the owner clears set-id bits.
func (u *unpacking) attributes(h *tar.Header, name string) error {
	if err := u.own(h, name); err != nil {
		return err
	}
	mode := os.FileMode(h.Mode & 0o777)
	for _, b := range [...]struct {
		unix int64
		mode os.FileMode
	}{{0o4000, os.ModeSetuid}, {0o2000, os.ModeSetgid}, {0o1000, os.ModeSticky}} {
		if h.Mode&b.unix != 0 {
			mode |= b.mode
		}
	}
	if err := u.root.Chmod(name, mode); err != nil {
		return err
	}
	return u.root.Chtimes(name, h.ModTime, h.ModTime)
}

// own sets the owner of a file to that in the archive, by name if the host knows it, if the process may.
func (u *unpacking) own(h *tar.Header, name string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	uid, err := u.id("file.user_to_uid", h.Uname, h.Uid)
	if err != nil {
		return err
	}
	gid, err := u.id("file.group_to_gid", h.Gname, h.Gid)
	if err != nil {
		return err
	}
	err = u.root.Lchown(name, int(uid), int(gid))
	if errors.Is(err, fs.ErrPermission) {
		return &modules.PythonError{Type: "tarfile.ExtractError", Msg: "could not change owner"}
	}
	return err
}

func (u *unpacking) id(fun, name string, number int) (int64, error) {
	if name == "" {
		return int64(number), nil
	}
	key := fun + " " + name
	id, ok := u.ids[key]
	if !ok {
		v, err := u.exec(fun, name)
		if err != nil {
			return 0, err
		}
		n, known := v.(int64)
		if id = n; !known || pytext.Str(v) == "" {
			id = -1
		}
		u.ids[key] = id
	}
	if id < 0 {
		return int64(number), nil
	}
	return id, nil
}
