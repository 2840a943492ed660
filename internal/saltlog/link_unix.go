//go:build unix && !linux

package saltlog

import (
	"errors"
	"os"
	"syscall"
)

// readLink returns the target and the owner of a link, which must be the same one before and after.
func readLink(path string) (target string, uid int, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", 0, err
	}
	if target, err = os.Readlink(path); err != nil {
		return "", 0, err
	}
	now, err := os.Lstat(path)
	if err != nil {
		return "", 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode()&os.ModeSymlink == 0 || !os.SameFile(info, now) {
		return "", 0, errors.New(path + " changes")
	}
	return target, int(st.Uid), nil
}
