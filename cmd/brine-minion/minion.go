package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/cmd/internal/daemon"
	"github.com/brine-salt/brine/cmd/internal/saltcli"
	"github.com/brine-salt/brine/internal/version"
	"github.com/brine-salt/brine/minion"
)

// detached marks the process that --daemon left in the background.
const detached = "BRINE_DETACHED"

// restartPause lets the reason for a restart, such as a master that is away, pass.
const restartPause = 2 * time.Second

// idlePause is how long after a job or a change of the connection the minion counts as idle.
const idlePause = time.Second

// becomeUser gives up root for the option user, who gets the directories that only root may make. Without sock_dir, which is below
// /run, the minion has no event sockets, and says so.
func becomeUser(p *saltcli.Program) error {
	name := p.Conf.String("user")
	for _, dir := range [...]struct {
		option string
		mode   os.FileMode
	}{{"sock_dir", 0o755}, {"cachedir", 0o750}, {"pki_dir", 0o700}} {
		if path := p.Conf.String(dir.option); path != "" {
			if err := saltcli.MakeDir(path, dir.mode, name); err != nil {
				p.Log.Warn(err.Error())
			}
		}
	}
	return saltcli.BecomeUser(name)
}

// runMinion is salt-minion from command line to exit code.
func runMinion(ctx context.Context, c *saltcli.Console, args []string) int {
	p, err := saltcli.Setup(c, minionParser(c), saltcli.Minion, args)
	if err != nil {
		return p.Exit(err)
	}
	if p.Values.Bool("daemon") && c.Env(detached) == "" {
		return p.Exit(goBackground())
	}
	if err := p.OpenLog("salt.minion", true); err != nil {
		return p.Exit(err)
	}
	defer p.Close()
	id, _ := p.Conf.Opts["id"].(string)
	p.Log.Info(fmt.Sprintf("Setting up the Salt Minion %q", id))
	if err := becomeUser(p); err != nil {
		p.Log.Error(err.Error())
		return saltcli.ExitNoUser
	}
	err = runDaemon(ctx, p)
	if errors.Is(err, minion.ErrRestart) && !p.Values.Bool("disable_keepalive") {
		p.Log.Info("Restarting the Salt Minion")
		time.Sleep(restartPause)
		err = daemon.Again()
	}
	return exitCode(p.Log, err)
}

// goBackground starts the program again as a daemon.
func goBackground() error {
	program, err := os.Executable()
	if err == nil {
		err = daemon.Detach(program, os.Args, append(os.Environ(), detached+"=1"))
	}
	if err != nil {
		return fmt.Errorf("cannot start the daemon: %w", err)
	}
	return nil
}

func runDaemon(ctx context.Context, p *saltcli.Program) error {
	var running atomic.Pointer[minion.Minion]
	o := daemon.Options{
		PIDFile: p.Conf.String("pidfile"), Notify: p.Env("NOTIFY_SOCKET"), Watchdog: p.Env("WATCHDOG_USEC"), Log: p.Log, Name: "Minion",
		Dump: func(stacks []byte) { p.Log.Warn("Stacks of all goroutines:\n" + string(stacks)) },
		Reload: func() {
			if err := reload(ctx, p, running.Load()); err != nil {
				p.Log.Error("Cannot reload", "err", err)
			}
		},
	}
	return daemon.Run(ctx, o, func(ctx context.Context, n *daemon.Notifier) error {
		options, err := minionOptions(p)
		if err != nil {
			return err
		}
		options.Ready = n.Ready
		memory := daemon.NewMemory(idlePause)
		defer memory.Stop()
		options.OnState = func(s minion.Status) {
			n.Status(s.String())
			memory.Touch()
		}
		options.OnJobs = memory.Jobs
		m, err := minion.New(options)
		if err != nil {
			return err
		}
		running.Store(m)
		return m.Run(ctx)
	})
}

// reload reads the configuration again, for the log and for the minion, which is nil while it starts.
func reload(ctx context.Context, p *saltcli.Program, m *minion.Minion) error {
	c, err := p.Load()
	if err == nil {
		err = p.ReloadLog(c)
	}
	if err == nil && m != nil {
		err = m.Reload(ctx)
	}
	return err
}

// exitCode is the code a minion's error ends the program with, after telling the log.
func exitCode(log *slog.Logger, err error) int {
	if err == nil {
		return 0
	}
	log.Error(err.Error())
	var exit *minion.ExitError
	if errors.As(err, &exit) {
		return exit.Code
	}
	return saltcli.ExitGeneric
}

// minionOptions assembles the parts that this program chose.
func minionOptions(p *saltcli.Program) (minion.Options, error) {
	wrap, err := tlsWrap(p.Conf.Opts)
	if err != nil {
		return minion.Options{}, err
	}
	return minion.Options{
		Opts: p.Conf.Opts,
		Load: func() (map[string]any, error) {
			c, err := p.Load()
			if err != nil {
				return nil, err
			}
			return c.Opts, nil
		},
		Log: p.Log, Dialers: dialers(), Wrap: wrap, Grains: gatherGrains(p.Log), Files: fileClient(p.Log),
		Runner: commandRunner(), Version: version.Brine(), Templates: templates(), Others: others, Beacons: beacons(),
		MasterHost: masterHere{p},
	}, nil
}
