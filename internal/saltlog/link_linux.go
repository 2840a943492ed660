package saltlog

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// readLink returns the target and the owner of one and the same link, whatever takes its place meanwhile.
func readLink(path string) (target string, uid int, err error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", 0, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", 0, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return "", 0, errors.New(path + " was a link and is none now")
	}
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", b)
	if err != nil {
		return "", 0, &os.PathError{Op: "readlink", Path: path, Err: err}
	}
	return string(b[:n]), int(st.Uid), nil
}
