package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/brine-salt/brine/internal/runlock"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/master"
)

// With --with-parent the master belongs to the process that started it. It ends at the end of its standard input,
// which is a pipe: when every process with the other end has closed it or ended. It starts only if no other master
// with the same cachedir runs.

// exitRunning is the exit code of a master with --with-parent if another master runs (EX_TEMPFAIL of sysexits).
const exitRunning = 75

// Time limits after the parent has ended: for awaited results, and for the whole shutdown.
const (
	drainTime = 5 * time.Second
	endTime   = 30 * time.Second
)

// parentOption returns the option --with-parent, which stock does not have. The help does not show it.
func parentOption() optparse.Option {
	return optparse.Option{Names: []string{"--with-parent"}, Kind: optparse.True, Hidden: true,
		Help: "End when standard input closes: it is a pipe that the parent process holds open."}
}

// parentInput returns an error if standard input is not something that a parent process holds open.
func parentInput(in io.Reader) error {
	f, ok := in.(*os.File)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("--with-parent: standard input: %w", err)
	}
	null, err := os.Stat(os.DevNull)
	if info.Mode().IsRegular() || info.IsDir() || err == nil && os.SameFile(info, null) {
		return errors.New("--with-parent: standard input must be a pipe that the parent process " +
			"holds open")
	}
	return nil
}

// takeLock ensures that only one master uses the cachedir. Without --with-parent a second master only logs the
// problem, and then fails like stock's when it opens its ports.
func takeLock(p *saltcli.Program) (release func(), err error) {
	release, err = runlock.Take(filepath.Join(p.Conf.String("cachedir"), "master.lock"))
	if err == nil {
		return release, nil
	}
	if p.Values.Bool("with_parent") {
		return nil, fmt.Errorf("the master of this directory is %w", err)
	}
	msg := "Cannot find out whether another master uses this cachedir"
	if held := (*runlock.HeldError)(nil); errors.As(err, &held) {
		msg = "A master seems to run with this cachedir"
	}
	p.Log.Warn(msg, "err", err)
	return func() {}, nil
}

// follow returns a context that ends after ctx or the parent's end of standard input: once the master has handed over
// its orders and received the awaited results, or after drainTime. stop ends it at once and waits for its goroutine.
func follow(ctx context.Context, m *master.Master, in io.Reader,
	log *slog.Logger) (drained context.Context, stop context.CancelFunc) {
	drained, cancel := context.WithCancel(context.WithoutCancel(ctx))
	gone := make(chan struct{})
	go func() { // ends with the process, since a read of standard input cannot be interrupted
		defer close(gone)
		_, _ = io.Copy(io.Discard, in)
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		select {
		case <-drained.Done(): // the master has ended
			return
		case <-ctx.Done():
		case <-gone:
			log.Warn("The parent closed standard input. Exiting.")
			time.AfterFunc(endTime, func() {
				log.Error("The master did not end in time")
				os.Exit(saltcli.ExitGeneric)
			})
		}
		select {
		case <-m.Ready():
		default:
			return
		}
		limit, over := context.WithTimeout(drained, drainTime)
		defer over()
		if err := m.Drain(limit); err != nil {
			log.Warn("The master could not hand over everything", "err", err)
		}
	}()
	return drained, func() { cancel(); <-ended }
}
