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
)

// MakeDir creates a directory, owned by the named user if this process is root. An existing directory keeps its
// owner, unlike in stock (salt/utils/verify.py: verify_env), where a link inside would be followed. If the user may
// write to the parent directory, it could replace the new directory by a link; MakeDir does not follow that.
func MakeDir(path string, mode os.FileMode, name string) error {
	if info, err := os.Stat(path); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("cannot use directory %q: it is a file: %w", path, syscall.EEXIST)
		}
		return nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot use directory: %w", err)
	}
	// The user must reach the directory: the missing ones above it are readable, as in stock.
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.MkdirAll(path, mode)
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
	// guard: new-directory TestMakeDirFollowsNoLink instead: f, err := os.Open(path)
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err == nil {
		err = errors.Join(f.Chown(uid, gid), f.Close())
	}
	if err != nil {
		return fmt.Errorf("cannot give directory to user %q: %w", name, err)
	}
	return nil
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
