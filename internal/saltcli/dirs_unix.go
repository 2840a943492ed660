//go:build unix

package saltcli

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// MakeDir creates a directory, owned by the named user when this process is root. An existing directory keeps its
// owner (salt/utils/verify.py: verify_env, which changes the owner; a link inside would be followed).
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
	if err := os.Chown(path, uid, gid); err != nil {
		return fmt.Errorf("cannot give directory to user %q: %w", name, err)
	}
	return nil
}
