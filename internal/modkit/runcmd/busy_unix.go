//go:build unix

package runcmd

import (
	"errors"
	"syscall"
)

// textBusy reports whether a program did not start because its file is open for writing.
func textBusy(err error) bool { return errors.Is(err, syscall.ETXTBSY) }
