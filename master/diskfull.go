package master

import (
	"errors"
	"fmt"

	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/master/store"
)

// ErrNotStored is wrapped by the errors for jobs that were not published because the store did not accept them,
// for example with a full disk or a lost database.
var ErrNotStored = errors.New("the job could not be stored, and was not sent")

// notStored adds to a store's error what it means for the job, and the remedy if one is known. It logs the error,
// since not everybody who asked for the job is told all of it.
func (m *Master) notStored(err error) error {
	if err == nil || errors.Is(err, store.ErrExists) {
		return err
	}
	m.log.Error("Cannot store a job", "err", err)
	switch {
	case confined.IsDiskFull(err):
		return fmt.Errorf("%w: %w: make room on the disk of the master", ErrNotStored, err)
	}
	return fmt.Errorf("%w: %w", ErrNotStored, err)
}
