package master

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/master/store"
)

// ErrNotStored is wrapped by the errors for jobs that were not published because the store did not accept them,
// for example with a full disk or a lost database.
var ErrNotStored = errors.New("the job could not be stored, and was not sent")

// notStored adds to a store's error what it means for the job, and the remedy if one is known. It logs the error,
// since a caller such as a tenant is not told all of it.
func notStored(log *slog.Logger, err error) error {
	if err == nil || errors.Is(err, store.ErrExists) {
		return err
	}
	log.Error("Cannot store a job", "err", err)
	if confined.IsDiskFull(err) {
		return fmt.Errorf("%w: %w: make room on the disk of the master", ErrNotStored, err)
	}
	return fmt.Errorf("%w: %w", ErrNotStored, err)
}
