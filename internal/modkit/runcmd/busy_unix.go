//go:build unix

package runcmd

import (
	"errors"
	"syscall"
)

// textBusy says that a program could not be started because somebody has it open for writing.
func textBusy(err error) bool { return errors.Is(err, syscall.ETXTBSY) }
