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

// With --with-parent the master belongs to the process that started it: it ends when its standard input does, which is
// when every process that has the other end of the pipe closed it or ended. It starts only if no other master runs with
// the same cachedir.

// exitRunning is how a master with --with-parent ends when another one runs already (EX_TEMPFAIL of sysexits).
const exitRunning = 75

// Time limits for awaited results once the parent has ended, and for the whole shutdown.
const (
	drainTime = 5 * time.Second
	endTime   = 30 * time.Second
)

// parentOption returns an option of masterParser that stock does not have; the help hides it.
func parentOption() optparse.Option {
	return optparse.Option{Names: []string{"--with-parent"}, Kind: optparse.True, Hidden: true,
		Help: "End when standard input closes: it is a pipe that the parent process holds open."}
}

// parentInput checks that standard input is something that a parent holds open.
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

// takeLock makes sure that only one master uses the cachedir. Without --with-parent a second master fails as
// stock's does, when it opens its ports.
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

// follow returns a context that ends some time after ctx or the parent's end of standard input: when the master has
// handed over its orders, and the results that are awaited have come or drainTime is over. stop ends it at once and
// waits until nothing of it runs any more.
func follow(ctx context.Context, m *master.Master, in io.Reader,
	log *slog.Logger) (drained context.Context, stop context.CancelFunc) {
	drained, cancel := context.WithCancel(context.WithoutCancel(ctx))
	gone := make(chan struct{})
	go func() { // ends with the process: a read from standard input cannot be interrupted
		defer close(gone)
		_, _ = io.Copy(io.Discard, in)
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		select {
		case <-drained.Done(): // the master ended by itself
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
