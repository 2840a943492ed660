//go:build unix

package atomicfile

import (
	"errors"
	"os"
	"syscall"
)

// sameOwner gives f the owner of another file. It sets the mode again afterwards, since changing the owner may clear
// mode bits.
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

// Own sets the owner, the group and the mode of the file or directory at path; -1 keeps an owner or group. It works
// on a descriptor and does not follow a link in the last part of path, so that a user who may write to the directory
// cannot gain another file. The error for a link is ELOOP.
func Own(path string, uid, gid int, mode os.FileMode) error {
	// guard: given-by-path TestOwnFollowsNoLink instead: f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Chown(uid, gid), f.Chmod(mode), f.Close())
}
