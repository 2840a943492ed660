package master

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/brine-salt/brine/master/store"
)

// ErrNotStored is behind errors of jobs that were not published because the store did not take them: a full disk, a lost database.
var ErrNotStored = errors.New("the job could not be stored, and was not sent")

// notStored adds to the error of a store what it means for the job, and what an operator can do where that is known.
func notStored(err error) error {
	switch {
	case err == nil, errors.Is(err, store.ErrExists):
		return err
	case isDiskFull(err):
		return fmt.Errorf("%w: %w: make room on the disk of the master", ErrNotStored, err)
	}
	return fmt.Errorf("%w: %w", ErrNotStored, err)
}

// isDiskFull reports whether something could not be written because the disk, or the user's share of it, is full. What SQLite says about it has
// no type outside of package sqlite.
func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || err != nil && strings.Contains(err.Error(), "disk is full")
}
