//go:build unix

package mount

import (
	"path/filepath"
	"syscall"
)

// isMountPoint implements os.path.ismount.
func isMountPoint(path string) bool {
	var here, above syscall.Stat_t
	if syscall.Lstat(path, &here) != nil || here.Mode&syscall.S_IFMT == syscall.S_IFLNK {
		return false
	}
	if syscall.Lstat(filepath.Join(path, ".."), &above) != nil {
		return false
	}
	return here.Dev != above.Dev || here.Ino == above.Ino
}
