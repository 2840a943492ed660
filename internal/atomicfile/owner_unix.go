//go:build unix

package atomicfile

import (
	"os"
	"syscall"
)

// sameOwner sets the owner of a file to that of another file. It sets the mode again, since a change of owner may
// clear bits of it.
func sameOwner(path string, of os.FileInfo) error {
	stat, ok := of.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	now, err := os.Stat(path)
	if err != nil {
		return err
	}
	if s, ok := now.Sys().(*syscall.Stat_t); ok && s.Uid == stat.Uid && s.Gid == stat.Gid {
		return nil
	}
	if err := os.Chown(path, int(stat.Uid), int(stat.Gid)); err != nil {
		return err
	}
	return os.Chmod(path, of.Mode())
}
