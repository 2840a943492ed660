//go:build unix

package atomicfile

import (
	"os"
	"syscall"
)

// sameOwner sets the owner of a file to that of another file. It sets the mode again, since a change of owner may
// clear bits of it.
func sameOwner(f *os.File, of os.FileInfo) error {
	stat, ok := of.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if s, ok := now.Sys().(*syscall.Stat_t); ok && s.Uid == stat.Uid && s.Gid == stat.Gid {
		return nil
	}
	// guard: replaced-file TestReplaceFollowsNoLink instead: err = os.Chown(f.Name(), int(stat.Uid), int(stat.Gid))
	err = f.Chown(int(stat.Uid), int(stat.Gid))
	if err != nil {
		return err
	}
	return f.Chmod(of.Mode())
}
