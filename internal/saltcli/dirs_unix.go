//go:build unix

package saltcli

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// MakeDir creates a directory, owned by the named user if this process is root. An existing directory keeps its
// owner, unlike in stock (salt/utils/verify.py: verify_env), where a link inside would be followed. If the user may
// write to the parent directory, it could replace a new directory by a link; MakeDir does not follow that.
func MakeDir(path string, mode os.FileMode, name string) error {
	if info, err := os.Stat(path); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("cannot use directory %q: it is a file: %w", path, syscall.EEXIST)
		}
		return nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot use directory: %w", err)
	}
	path = filepath.Clean(path)
	above, err := openDir(filepath.Dir(path))
	if err == nil {
		defer above.Close()
		_, err = makeIn(above, path, mode)
	}
	if err != nil {
		return fmt.Errorf("cannot create directory: %w", err)
	}
	u, err := user.Lookup(name)
	if err != nil || os.Geteuid() != 0 {
		return nil // BecomeUser reports the error
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	f, err := openIn(above, path)
	if err == nil {
		err = errors.Join(f.Chown(uid, gid), f.Close())
	}
	if err != nil {
		return fmt.Errorf("cannot give directory to user %q: %w", name, err)
	}
	return nil
}

// openDir opens a directory, and creates it and those above it if they are missing. All may read and enter the new
// ones, whatever the umask is: the user must reach what is below. In stock this depends on the umask.
func openDir(path string) (*os.File, error) {
	dir, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if !errors.Is(err, os.ErrNotExist) || filepath.Dir(path) == path {
		return dir, err
	}
	above, err := openDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer above.Close()
	made, err := makeIn(above, path, 0o755)
	if err != nil {
		return nil, err
	}
	if dir, err = openIn(above, path); err != nil || !made {
		return dir, err
	}
	info, err := dir.Stat()
	if err == nil {
		err = dir.Chmod(info.Mode() | 0o755)
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// makeIn creates the directory at path, whose parent is above. made is false if it exists.
func makeIn(above *os.File, path string, mode os.FileMode) (made bool, err error) {
	err = unix.Mkdirat(int(above.Fd()), filepath.Base(path), uint32(mode.Perm()))
	if err != nil && err != unix.EEXIST {
		return false, &os.PathError{Op: "mkdir", Path: path, Err: err}
	}
	return err == nil, nil
}

// openIn opens the directory at path, whose parent is above, unless it is a link.
func openIn(above *os.File, path string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	// guard: new-directory TestMakeDirFollowsNoLink instead: fd, err := unix.Openat(int(above.Fd()), filepath.Base(path), 0, 0)
	fd, err := unix.Openat(int(above.Fd()), filepath.Base(path), flags|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// MakePIDFile creates an empty pid file for the named user if this process is root and the directory belongs to root,
// so that the user cannot create it. The user gets an existing file, too (salt/utils/process.py: set_pidfile).
// MakePIDFile does nothing in a directory that others may write to, because they could have put a link there.
func MakePIDFile(path, name string) error {
	u, err := user.Lookup(name)
	if path == "" || err != nil || u.Uid == "0" || os.Geteuid() != 0 {
		return nil // BecomeUser reports the error
	}
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil // the daemon creates the directory of its file, or reports the error
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	// guard: pid-file TestMakePIDFile
	if !ok || owner.Uid != 0 || info.Mode().Perm()&0o022 != 0 {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o644)
	if err == nil {
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		err = errors.Join(f.Chown(uid, gid), f.Close())
	}
	if err != nil {
		return fmt.Errorf("cannot give the pid file to user %q: %w", name, err)
	}
	return nil
}
