package update

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/brine-salt/brine/internal/runlock"
	"github.com/brine-salt/brine/minion/policy"
)

// Run continues a trial, or looks for an update and tries it. It returns when the outcome is known.
func (u *Updater) Run(ctx context.Context, q Request) (Outcome, error) {
	release, err := u.lock()
	if err != nil {
		return Outcome{}, err
	}
	defer release()
	if out, err := u.Finish(ctx); err != nil || out.Comment != "" {
		return out, err
	}
	out, err := u.Stage(ctx, q)
	if err != nil || !out.staged {
		return out, err
	}
	return u.Finish(ctx)
}

// lock locks the state directory for this process, and removes the remains of an interrupted run.
func (u *Updater) lock() (release func(), err error) {
	if err := os.MkdirAll(u.StateDir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot update: %w", err)
	}
	// Take writes to the file.
	// guard: update TestStateDirIsRoots
	if err := u.stateDirIsRoots(); err != nil {
		return nil, err
	}
	release, err = runlock.Take(u.path(lockFile))
	var held *runlock.HeldError
	if errors.As(err, &held) {
		return nil, fmt.Errorf("cannot update: another update is under way: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot update: %w", err)
	}
	if err := u.stateDirIsRoots(); err != nil {
		release()
		return nil, err
	}
	u.sweep()
	return release, nil
}

// stateDirIsRoots returns an error if another user could replace what is in the state directory.
func (u *Updater) stateDirIsRoots() error {
	err := policy.RootOnly(u.path(lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = policy.RootOnlyDir(u.StateDir)
	}
	if err != nil {
		return fmt.Errorf("cannot use the state directory %s: %w", u.StateDir, err)
	}
	return nil
}

// set locks the state directory and changes the state.
func (u *Updater) set(change func(*State)) error {
	release, err := u.lock()
	if err != nil {
		return err
	}
	defer release()
	s, err := u.readState()
	if err != nil {
		return err
	}
	change(s)
	return u.writeState(s)
}
