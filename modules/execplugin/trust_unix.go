//go:build unix

package execplugin

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// trusted returns an error if a user other than root or the present one could change a file or directory, or replace
// it. Links are followed first; the directory of a link counts, too.
func trusted(path string) error {
	if err := chain(path); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if real != path {
		return chain(real)
	}
	return nil
}

// chain checks a path and every directory above it.
func chain(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	for leaf := true; ; leaf = false {
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if err := owned(path, info, leaf); err != nil {
			return err
		}
		up := filepath.Dir(path)
		if up == path {
			return nil
		}
		path = up
	}
}

func owned(path string, info fs.FileInfo, leaf bool) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("the owner of %s is not known", path)
	}
	if st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, not to root", path, st.Uid)
	}
	mode := info.Mode()
	if mode&fs.ModeSymlink != 0 {
		return nil // its target and its directory count
	}
	if mode.Perm()&0o022 == 0 || !leaf && mode&fs.ModeSticky != 0 {
		return nil // in a sticky directory nobody can replace what belongs to others
	}
	who := "its group"
	if mode.Perm()&0o002 != 0 {
		who = "everybody"
	}
	return fmt.Errorf("%s is writable by %s (mode %04o)", path, who, mode.Perm())
}

// identity tells one state of a file from another.
type identity struct {
	size, mtime, ctime int64
	inode, device      uint64
	mode               fs.FileMode
}

func identify(info fs.FileInfo) identity {
	id := identity{size: info.Size(), mtime: info.ModTime().UnixNano(), mode: info.Mode()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.inode, id.device, id.ctime = uint64(st.Ino), uint64(st.Dev), changed(st)
	}
	return id
}
