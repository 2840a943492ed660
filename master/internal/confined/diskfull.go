package confined

import (
	"errors"
	"strings"
	"syscall"
)

// IsDiskFull reports whether something could not be written because the disk, or the user's share of it, is full. What
// SQLite says about it has no type outside of package sqlite.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || err != nil &&
		strings.Contains(err.Error(), "disk is full")
}
