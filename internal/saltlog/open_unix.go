//go:build unix

package saltlog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const logFlags = os.O_WRONLY | os.O_APPEND | os.O_CREATE

// maxLinks is how many links in a row are followed.
const maxLinks = 8

// openAppend opens a log file. A link in its place is followed only if root or the user of the process made it: where another user
// owns the directory of logs, as that of the master does on hosts of stock Salt, it would make root write to any file. A pipe or socket
// there is refused, because its reader could stop the process.
func openAppend(path string) (*os.File, error) { return openLinked(path, maxLinks) }

func openLinked(path string, links int) (*os.File, error) {
	f, err := os.OpenFile(path, logFlags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o640)
	if err == nil {
		return onlyFile(f)
	}
	if !errors.Is(err, syscall.ELOOP) && !errors.Is(err, syscall.EMLINK) || links == 0 { // FreeBSD has the latter
		return nil, err
	}
	target, uid, err := readLink(path)
	if err != nil {
		return nil, err
	}
	// guard: log-file-by-link TestForeignLink
	if uid != 0 && uid != os.Geteuid() {
		return nil, errors.New(path + " is a link of another user")
	}
	if strings.HasPrefix(target, "/proc/") { // of /dev/stdout: no path leads to what it means
		return os.OpenFile(target, logFlags, 0o640)
	}
	if !filepath.IsAbs(target) {
		target = filepath.Dir(path) + "/" + target // not cleaned: the directory may be a link
	}
	return openLinked(target, links-1)
}

// onlyFile closes what is neither a file nor a device.
func onlyFile(f *os.File) (*os.File, error) {
	info, err := f.Stat()
	// guard: log-file-by-link TestPipeAsLog
	if err == nil && !info.Mode().IsRegular() && info.Mode()&os.ModeCharDevice == 0 {
		err = errors.New(f.Name() + " is not a file")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
