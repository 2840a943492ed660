package master

import (
	"errors"
	"fmt"

	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/master/store"
)

// ErrNotStored is behind errors of jobs that were not published because the store did not take them: a full disk, a
// lost database.
var ErrNotStored = errors.New("the job could not be stored, and was not sent")

// notStored adds to the error of a store what it means for the job, and what an operator can do where that is known.
func notStored(err error) error {
	switch {
	case err == nil, errors.Is(err, store.ErrExists):
		return err
	case confined.IsDiskFull(err):
		return fmt.Errorf("%w: %w: make room on the disk of the master", ErrNotStored, err)
	}
	return fmt.Errorf("%w: %w", ErrNotStored, err)
}
