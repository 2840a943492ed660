package atomicfile

import (
	"bytes"
	"crypto/rand"
	"io"
	"os"
)

// Owner is the user and group that a file belongs to.
type Owner struct {
	UID, GID int
}

// ReplaceIn is like WriteFile for a name in an open directory. Links cannot lead out of the directory. The file gets
// owner, or belongs to this process if owner is nil.
func ReplaceIn(dir *os.Root, name string, data []byte, mode os.FileMode, owner *Owner) (err error) {
	temp := "." + name + "." + rand.Text()[:randomLetters]
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			_ = dir.Remove(temp)
		}
	}()
	if owner != nil {
		if err = f.Chown(owner.UID, owner.GID); err != nil {
			return err
		}
	}
	if err = f.Chmod(mode.Perm()); err != nil {
		return err
	}
	if _, err = io.Copy(f, bytes.NewReader(data)); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = dir.Rename(temp, name); err != nil {
		return err
	}
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	_ = d.Sync() // some file systems refuse it
	return d.Close()
}
