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

// MakeDir creates a directory, owned by the named user when this process is root. An existing directory keeps its
// owner (salt/utils/verify.py: verify_env, which changes the owner; a link inside would be followed). Where the user
// may write to the parent, no link that it puts in the new directory's place is followed.
func MakeDir(path string, mode os.FileMode, name string) error {
	if info, err := os.Stat(path); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("cannot use directory %q: it is a file: %w", path, syscall.EEXIST)
		}
		return nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot use directory: %w", err)
	}
	if err := os.MkdirAll(path, mode); err != nil {
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

// MakePIDFile creates an empty pid file for the named user when this process is root and that user may not create it: the
// directory belongs to root. An existing file is given to the user (salt/utils/process.py: set_pidfile). A directory that
// another user may write to is left alone, because that user could have put a link there.
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
