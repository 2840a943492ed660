//go:build unix

package atomicfile

import (
	"errors"
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

// Own gives the file or directory at path to a user and a group, where -1 keeps what it has, and sets its mode. It
// works on a descriptor and follows no link in the last part of path, so that a user who may write to the directory
// gets nothing but what is there by that name. The error for a link is ELOOP.
func Own(path string, uid, gid int, mode os.FileMode) error {
	// guard: given-by-path TestOwnFollowsNoLink instead: f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Chown(uid, gid), f.Chmod(mode), f.Close())
}
