package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/brine-salt/brine/internal/daemon"
	"github.com/brine-salt/brine/internal/runlock"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/audit"
	"github.com/brine-salt/brine/master/fileserver/gitfs"
	"github.com/brine-salt/brine/master/store/sqlite"
)

// exitPorts is stock's exit code if its ports are in use.
const exitPorts = 4

// runMaster runs salt-master and returns its exit code.
func runMaster(ctx context.Context, c *saltcli.Console, args []string) int {
	p, err := saltcli.Setup(c, masterParser(c), saltcli.Master, args)
	if err != nil {
		return p.Exit(err)
	}
	if p.Values.Bool("with_parent") {
		if p.Values.Bool("daemon") {
			err = errors.New("use --with-parent or --daemon, not both")
		} else {
			err = parentInput(c.In)
		}
		if err != nil {
			fmt.Fprintln(p.Err, err)
			return saltcli.ExitUsage
		}
	}
	if p.Values.Bool("daemon") && !daemon.InBackground(c.Env) {
		return p.ExitCode(daemon.Background())
	}
	if err := p.OpenLog("salt.master", true); err != nil {
		return p.Exit(err)
	}
	defer p.Close()
	p.Log.Info("Setting up the Salt Master")
	p.LogUnknown(p.Conf)
	if err := makeDirs(p); err != nil {
		return failed(p, err)
	}
	if err := saltcli.BecomeUser(p.Conf.String("user")); err != nil {
		p.Log.Error(err.Error())
		return saltcli.ExitNoUser
	}
	release, err := takeLock(p)
	if err != nil {
		return failed(p, err)
	}
	defer release()
	return failed(p, serveMaster(ctx, p, c.In))
}

// becomeMasterUser switches from root to the user in the option user, in a command that writes files of the master,
// so that they belong to that user (salt/cli/key.py, salt/cli/run.py). Another user keeps its identity; stock does
// nothing then and exits with 0.
func becomeMasterUser(p *saltcli.Program) error {
	if os.Geteuid() != 0 {
		return nil
	}
	if err := saltcli.BecomeUser(p.Conf.String("user")); err != nil {
		return &saltcli.ExitError{Code: saltcli.ExitNoUser, Text: "[CRITICAL] " + err.Error() +
			"\n"}
	}
	return nil
}

// failed logs why the master ended, and returns the exit code.
func failed(p *saltcli.Program, err error) int {
	if err == nil {
		return 0
	}
	p.Log.Error(err.Error())
	var number syscall.Errno
	var held *runlock.HeldError
	switch {
	case errors.As(err, &held):
		fmt.Fprintln(p.Err, err)
		return exitRunning
	case errors.Is(err, syscall.EADDRINUSE):
		fmt.Fprintln(p.Err, "The ports are not available to bind")
		for _, name := range []string{"publish_port", "ret_port"} {
			if who := portHolder(p.Conf.Int(name)); who != "" {
				fmt.Fprintln(p.Err, who)
			}
		}
		return exitPorts
	case (errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EEXIST)) &&
		errors.As(err, &number):
		return int(number)
	}
	return saltcli.ExitGeneric
}

// makeDirs creates the directories that the master writes to, for the user that it will switch to
// (salt/utils/verify.py: verify_env).
func makeDirs(p *saltcli.Program) error {
	c := p.Conf
	pki := c.String("pki_dir")
	dirs := []struct {
		path string
		mode os.FileMode
	}{
		{pki, 0o700}, {c.String("cachedir"), 0o755},
		{filepath.Join(c.String("cachedir"), "jobs"), 0o755},
		{c.String("sock_dir"), 0o755}, {filepath.Dir(c.String("pidfile")), 0o755},
		// brine stores nothing in these directories. Python programs on this host expect them.
		{c.String("token_dir"), 0o700}, {c.String("sqlite_queue_dir"), 0o755},
		{c.String("syndic_dir"), 0o755},
	}
	for _, sub := range []string{"minions", "minions_pre", "minions_denied", "minions_rejected",
		"minions_autosign"} {
		dirs = append(dirs, struct {
			path string
			mode os.FileMode
		}{filepath.Join(pki, sub), 0o755})
	}
	for _, d := range dirs {
		if err := saltcli.MakeDir(d.path, d.mode, c.String("user")); err != nil {
			return err
		}
	}
	if err := saltcli.MakePIDFile(c.String("pidfile"), c.String("user")); err != nil {
		p.Log.Warn(err.Error())
	}
	return nil
}

// serveMaster runs the master until a signal ends it or, with --with-parent, until the end of standard input.
func serveMaster(ctx context.Context, p *saltcli.Program, in io.Reader) error {
	options, err := masterOptions(p.Conf, p.Log)
	if err != nil {
		return err
	}
	if name := p.Conf.String("audit_log"); name != "" {
		f, err := audit.Open(name, p.Conf.Bool("audit_log_chain"))
		if err != nil {
			return err
		}
		defer f.Close()
		options.Audit = f
	}
	db, err := openDatabase(p.Conf)
	if err != nil {
		return err
	}
	if db != nil {
		defer db.Close()
		options.Store = db
		if options.Shared, err = sharedOptions(p.Conf); err != nil {
			return err
		}
	} else if p.Conf.Bool("job_cache") {
		name := filepath.Join(p.Conf.String("cachedir"), "jobs.sqlite")
		jobs, err := sqlite.Open(name)
		if err != nil {
			if strings.Contains(err.Error(), "disk is full") {
				return fmt.Errorf("%w; make room on the disk that has %s", err, name)
			}
			return fmt.Errorf("%w; if it is damaged, move %s away: the master makes a new one, "+
				"and stock's job cache keeps what was there", err, name)
		}
		defer jobs.Close()
		options.Store = jobs
	}
	services, err := newServices(p)
	if err != nil {
		return err
	}
	repos := (*gitfs.FS)(nil)
	if options.Files.Backends, repos,
		err = fileBackends(p.Conf, p.Log, services.filesChanged); err != nil {
		return err
	}
	services.options(&options)
	if options.Minions.Tops, err = masterTops(p.Conf, p.Log); err != nil {
		return err
	}
	o := daemon.Options{
		PIDFile: p.Conf.String("pidfile"), Notify: p.Env("NOTIFY_SOCKET"),
		Watchdog: p.Env("WATCHDOG_USEC"), Log: p.Log, Name: "Master",
		Detached: p.Values.Bool("daemon"),
		Dump:     func(stacks []byte) { p.Log.Warn("Stacks of all goroutines:\n" + string(stacks)) },
		// Keys, files and pillar are read on each use. Other settings need a restart.
		Reload: func() {
			c, err := p.Load()
			if err != nil {
				p.LogBadReload("The configuration could not be read again; the master goes on with "+
					"the one of its start", err)
				return
			}
			p.LogReload(p.Conf, c, ", which counts from the next start")
		},
	}
	return daemon.Run(ctx, o, func(ctx context.Context, n *daemon.Notifier) error {
		m, err := master.New(options)
		if err != nil {
			return err
		}
		services.join(m)
		defer services.close()
		var cancel context.CancelFunc
		if p.Values.Bool("with_parent") {
			ctx, cancel = follow(ctx, m, in, p.Log)
		} else {
			ctx, cancel = context.WithCancel(ctx)
		}
		defer cancel()
		go daemon.Shrink(ctx)
		if err := services.startReactor(ctx); err != nil {
			m.Close()
			return err
		}
		apis, err := openAPIs(services)
		if err != nil {
			m.Close()
			return err
		}
		if repos != nil {
			fetched := make(chan struct{})
			go func() {
				defer close(fetched)
				repos.Run(ctx)
			}()
			defer func() { cancel(); <-fetched }()
		}
		served := make(chan error, len(apis))
		for _, a := range apis {
			go func() {
				served <- a.serve(ctx)
				cancel()
			}()
		}
		told := make(chan struct{})
		go func() {
			defer close(told)
			if m.AwaitReady(ctx) == nil {
				n.Started()
				n.Ready()
				n.Status("serving minions on " + m.PublishAddr().String() + " and " +
					m.RequestAddr().String())
			}
		}()
		err = m.Serve(ctx)
		cancel()
		for range apis {
			err = errors.Join(err, <-served)
		}
		<-told
		return err
	})
}
