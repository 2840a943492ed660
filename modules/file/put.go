//go:build unix

package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// like says whose owner and mode a new file gets.
type like struct {
	uid, gid int
	mode     uint32
}

// create makes a new file beside a path, for it to take the path's place, and gives its name.
func (h *host) create(path string, content io.Reader, as *like) (name string, err error) {
	dir, base := posixpath.Split(path)
	f, err := os.CreateTemp(h.Path(orDot(dir)), "."+base[:min(len(base), 100)]+".")
	if err != nil {
		return "", h.named(err, path)
	}
	name = f.Name()
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(name)
		}
	}()
	if as != nil {
		if err := f.Chown(as.uid, as.gid); err != nil {
			return "", h.named(err, path)
		}
		if err := ignoringEINTR(func() error { return unix.Fchmod(int(f.Fd()), as.mode&0o7777) }); err != nil {
			return "", &os.PathError{Op: "chmod", Path: path, Err: err}
		}
	}
	if _, err := io.Copy(f, endingWith{h.ctx, content}); err != nil {
		return "", h.named(err, path)
	}
	if err := f.Sync(); err != nil {
		return "", h.named(err, path)
	}
	return name, h.named(f.Close(), path)
}

func orDot(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}

// replaceFile puts content in the place of a file at once, with the file's owner and mode; a file that was not there gets the
// mode that new files have.
func (h *host) replaceFile(path string, content []byte) error {
	as := &like{uid: -1, gid: -1}
	if st, err := h.stat(path); err == nil {
		*as = like{int(st.uid), int(st.gid), st.perm()}
	} else if as.mode, err = h.newMode(); err != nil {
		return err
	}
	name, err := h.create(path, bytes.NewReader(content), as)
	if err != nil {
		return err
	}
	err = os.Rename(name, h.Path(path))
	if err == nil {
		return nil
	}
	defer os.Remove(name)
	if errors.Is(err, unix.EBUSY) {
		return h.fill(path, name)
	}
	return h.named(linkError(err), path)
}

// linkError makes an error about one path of an error about two.
func linkError(err error) error {
	var l *os.LinkError
	if errors.As(err, &l) {
		return &os.PathError{Op: l.Op, Path: l.New, Err: l.Err}
	}
	return err
}

// newMode returns the mode that the process gives to new files. The umask cannot be read without changing it for a
// moment, so newMode creates a file and looks at it.
func (h *host) newMode() (uint32, error) {
	dir := h.tempDir()
	if h.Root != "" {
		if err := os.MkdirAll(h.Path(dir), 0o700); err != nil {
			return 0, err
		}
	}
	for range 10 {
		name, err := os.MkdirTemp(h.Path(dir), tempPrefix)
		if err != nil {
			return 0, h.named(err, dir)
		}
		defer os.RemoveAll(name)
		f, err := os.OpenFile(name+"/mode", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if err != nil {
			continue
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return 0, err
		}
		return uint32(info.Mode().Perm()), nil
	}
	return 0, modules.Errorf("cannot find out the mode of new files in %s", dir)
}

// rewrite writes new content into a file, which stays the same file. If that fails, the old content is put back.
func (h *host) rewrite(path string, content, old []byte) error {
	f, err := os.OpenFile(h.Path(path), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return h.named(err, path)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync()); err != nil {
		if f.Truncate(0) == nil {
			if _, serr := f.WriteAt(old, 0); serr == nil {
				f.Close()
				return fmt.Errorf("%w; its content is the old one", h.named(err, path))
			}
		}
	}
	return h.named(errors.Join(err, f.Close()), path)
}

// place implements salt.utils.files.copyfile: it writes content to dest and keeps the owner and mode of an existing
// file. It first makes a backup if backup asks for one. New files have mode 0600.
func (h *host) place(dest string, content io.Reader, backup any) error {
	if !h.isDir(posixpath.Dir(dest)) {
		return &modules.PythonError{Type: "OSError", Msg: "[Errno 2] No such file or directory: " + dest}
	}
	var as *like
	if st, err := h.stat(dest); err == nil {
		if st.isDir() {
			return &os.PathError{Op: "rename", Path: dest, Err: unix.EISDIR}
		}
		as = &like{int(st.uid), int(st.gid), st.perm()}
	}
	name, err := h.create(dest, content, as)
	if err != nil {
		return err
	}
	if as != nil && (backup == any("minion") || backup == any("both")) {
		if err := h.backup(dest, h.backupRoot()); err != nil {
			os.Remove(name)
			return err
		}
	}
	if err := os.Rename(name, h.Path(dest)); err != nil {
		defer os.Remove(name)
		if !errors.Is(err, unix.EBUSY) {
			return h.named(linkError(err), dest)
		}
		// Something is mounted there, as on /etc/hosts in a container: the file itself must take the content.
		if err := h.fill(dest, name); err != nil {
			return err
		}
	}
	return h.relabel(dest)
}

// fill writes the content of a file of this machine into another one.
func (h *host) fill(dest, name string) error {
	fresh, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	old, err := h.read(dest)
	if err != nil {
		return err
	}
	return h.rewrite(dest, fresh, old)
}

// placeFile is like place with the content of a file.
func (h *host) placeFile(source, dest string, backup any) error {
	if !h.isFile(source) {
		return &modules.PythonError{Type: "OSError", Msg: "[Errno 2] No such file or directory: " + source}
	}
	f, err := os.Open(h.Path(source))
	if err != nil {
		return h.named(err, source)
	}
	defer f.Close()
	return h.place(dest, f, backup)
}

// relabel gives a file the SELinux context that its place wants, on hosts that enforce it.
func (h *host) relabel(path string) error {
	b, err := os.ReadFile(h.Path("/sys/fs/selinux/enforce"))
	if err != nil || !bytes.HasPrefix(b, []byte("1")) {
		return nil
	}
	if restorecon := h.Which("restorecon"); restorecon != "" {
		_, err := h.Cmd(h.ctx, modules.Command{Args: []string{restorecon, path}})
		return err
	}
	return nil
}

// backupRoot returns the directory of the minion's backups.
func (h *host) backupRoot() string {
	cache, _ := h.Opt("cachedir").(string)
	return posixpath.Join(cache, "file_backup")
}

// backup implements salt.utils.files.backup_minion: it makes a copy whose name contains the time.
func (h *host) backup(path, root string) error {
	st, err := h.stat(path)
	if err != nil {
		return err
	}
	dir, base := posixpath.Split(path)
	now := h.Now()
	stamp := now.Format("Mon_Jan_02_15:04:05_") + fmt.Sprintf("%06d_%d", now.Nanosecond()/1000, now.Year())
	to := posixpath.Join(root, strings.TrimPrefix(dir, "/"), base+"_"+stamp)
	if err := os.MkdirAll(h.Path(posixpath.Dir(to)), 0o755); err != nil {
		return h.named(err, posixpath.Dir(to))
	}
	f, err := os.Open(h.Path(path))
	if err != nil {
		return h.named(err, path)
	}
	defer f.Close()
	name, err := h.create(to, f, &like{int(st.uid), int(st.gid), st.perm()})
	if err != nil {
		return err
	}
	return h.named(os.Rename(name, h.Path(to)), to)
}

// backupMode implements config.backup_mode: the argument, or otherwise the option backup_mode.
func (h *host) backupMode(arg any) any {
	if pytext.Truth(arg) {
		return arg
	}
	return h.option("backup_mode")
}

// option returns the value of an option, found as by config.option.
func (h *host) option(name string) any {
	if v, err := h.Exec(h.ctx, "config.option", name); err == nil {
		return v
	}
	return h.Opt(name)
}
