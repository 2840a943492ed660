//go:build unix

package oracle

import (
	"fmt"
	"io/fs"
	"syscall"
)

// ownerOf is who owns a file, "uid:gid"; "" is root.
func ownerOf(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && (s.Uid != 0 || s.Gid != 0) {
		return fmt.Sprintf("%d:%d", s.Uid, s.Gid)
	}
	return ""
}

// isWhiteout reports whether a file of a layer says that the file below it is gone.
func isWhiteout(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && s.Rdev == 0
}
