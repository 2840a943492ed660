package confined

import (
	"errors"
	"strings"
	"syscall"
)

// IsDiskFull reports whether an error means that the disk or the user's quota is full. SQLite's error for that
// has no type outside of package sqlite.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || err != nil &&
		strings.Contains(err.Error(), "disk is full")
}
