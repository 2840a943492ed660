//go:build unix

package ssh

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/pycodec"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// userFile is a file of a user in an open directory. What the user puts in the place of the file or of a directory
// above it meanwhile is not followed.
type userFile struct {
	c    *call
	path string
	dir  *os.Root
	name string
	// owner gets a new file. It is nil if this process keeps what it creates.
	owner *atomicfile.Owner
}

// userFile opens the directory of a file that belongs to a user, with the result of user.info, or to this process if
// info is nil. It creates the directory if it is missing, with the mode 0700 for a user and mode otherwise.
//
// For root, links below the user's home lead only to what is below it or to directories that the user owns. Stock
// follows every link, and gives what it leads to to the user: with a link to /root/.ssh or /etc/shadow in the place of
// the file, the user is root.
func (c *call) userFile(path string, info map[string]any, mode os.FileMode) (*userFile, error) {
	u := &userFile{c: c, path: path}
	uid, ok1 := info["uid"].(int64)
	gid, ok2 := info["gid"].(int64)
	if ok1 && ok2 && os.Geteuid() == 0 {
		u.owner = &atomicfile.Owner{UID: int(uid), GID: int(gid)}
	}
	home := posixpath.Norm(pytext.Str(info["home"]))
	linked := false
	for range 10 {
		dir, name := posixpath.Split(path)
		r, err := u.openDir(posixpath.Norm(dir), home, linked, mode)
		if err != nil {
			return nil, err
		}
		target, err := r.Readlink(name)
		if err != nil {
			u.dir, u.name = r, name
			return u, nil
		}
		r.Close()
		linked = true
		path = posixpath.Join(dir, target)
	}
	return nil, &os.PathError{Op: "open", Path: u.path, Err: unix.ELOOP}
}

func (u *userFile) close() { u.dir.Close() }

// openDir opens a directory of a user, or creates it. linked means that a link led to it.
func (u *userFile) openDir(dir, home string, linked bool, mode os.FileMode) (*os.Root, error) {
	below := u.owner != nil && (dir == home || strings.HasPrefix(dir, strings.TrimSuffix(home, "/")+"/"))
	if below {
		h, err := os.OpenRoot(u.c.Path(home))
		if err != nil {
			return nil, named(err, home)
		}
		defer h.Close()
		r, err := u.openIn(h, strings.TrimPrefix(strings.TrimPrefix(dir, home), "/"))
		if err == nil {
			return r, nil
		}
	}
	if !below && !linked && u.owner != nil {
		// Stock gives such a directory to the user when it creates it.
		parent := u.c.Path(posixpath.Dir(dir))
		if err := os.MkdirAll(parent, mode); err != nil {
			return nil, named(err, dir)
		}
		p, err := os.OpenRoot(parent)
		if err != nil {
			return nil, named(err, dir)
		}
		defer p.Close()
		r, err := u.openIn(p, posixpath.Base(dir))
		if err == nil {
			return r, nil
		}
		if _, gone := os.Stat(u.c.Path(dir)); gone != nil {
			return nil, named(err, dir)
		}
		// The directory is a link out of its parent, as the administrator may have it.
	}
	if !below && !linked {
		if err := os.MkdirAll(u.c.Path(dir), mode); err != nil {
			return nil, named(err, dir)
		}
	}
	r, err := os.OpenRoot(u.c.Path(dir))
	if err != nil {
		return nil, named(err, dir)
	}
	if u.owner == nil || !below && !linked {
		return r, nil
	}
	info, err := r.Stat(".")
	if err != nil {
		r.Close()
		return nil, named(err, dir)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	// guard: links-of-users TestLinksOfUsers
	if !ok || int(st.Uid) != u.owner.UID {
		r.Close()
		return nil, modules.Errorf("cannot use %q: a link leads to a directory of another user", u.path)
	}
	return r, nil
}

// openIn opens a directory below the home of the owner, or creates it for the owner.
func (u *userFile) openIn(home *os.Root, dir string) (*os.Root, error) {
	if dir == "" {
		return home.OpenRoot(".")
	}
	r, err := home.OpenRoot(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if err := home.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if r, err = home.OpenRoot(dir); err != nil {
		return nil, err
	}
	err = errors.Join(r.Chown(".", u.owner.UID, u.owner.GID), r.Chmod(".", 0o700), u.c.relabel(posixpath.Dir(u.path)))
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// read returns the text of the file, and its description. If there is no file, the description is nil.
func (u *userFile) read() (string, fs.FileInfo, error) {
	f, err := u.dir.OpenFile(u.name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, named(err, u.path)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", nil, named(err, u.path)
	}
	if info.IsDir() {
		return "", nil, &os.PathError{Op: "open", Path: u.path, Err: unix.EISDIR}
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return "", nil, named(err, u.path)
	}
	if len(b) > maxSize {
		return "", nil, modules.Errorf("cannot read %q: more than %d bytes", u.path, maxSize)
	}
	text, err := pycodec.UTF8(b)
	return text, info, err
}

// write replaces the file, which keeps the owner and mode that it has in was. If was is nil, the file is new: the user
// gets it with this mode.
func (u *userFile) write(text string, was fs.FileInfo, mode os.FileMode) error {
	owner := u.owner
	if was != nil {
		mode = was.Mode()
		if st, ok := was.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
			owner = &atomicfile.Owner{UID: int(st.Uid), GID: int(st.Gid)}
		}
	}
	return named(atomicfile.ReplaceIn(u.dir, u.name, []byte(text), mode, owner), u.path)
}
