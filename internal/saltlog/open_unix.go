//go:build unix

package saltlog

import (
	"errors"
	"os"
	"syscall"
)

const logFlags = os.O_WRONLY | os.O_APPEND | os.O_CREATE

// openAppend opens a log file. A link in its place is followed only if root or the user of the process made it: where another user
// owns the directory of logs, as that of the master does on hosts of stock Salt, it would make root write to any file.
func openAppend(path string) (*os.File, error) {
	f, err := os.OpenFile(path, logFlags|syscall.O_NOFOLLOW, 0o640)
	if !errors.Is(err, syscall.ELOOP) && !errors.Is(err, syscall.EMLINK) { // FreeBSD has the latter
		return f, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	// guard: log-file-by-link TestForeignLink
	if !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return nil, errors.New(path + " is a link of another user")
	}
	return os.OpenFile(path, logFlags, 0o640)
}
