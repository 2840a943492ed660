//go:build unix && !linux && !darwin && !freebsd

package file

import "golang.org/x/sys/unix"

// statFS knows nothing of file systems on hosts of other kinds.
func statFS(string) (map[string]any, error) { return nil, unix.ENOSYS }
