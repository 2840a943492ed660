package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/confine"
	"github.com/brine-salt/brine/internal/daemon"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/minion/standard"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/payload"
)

// restartPause is the pause before a restart. It gives the cause time to disappear, such as an unreachable master.
const restartPause = 2 * time.Second

// idlePause is how long after a job or a change of connection the minion counts as idle.
const idlePause = time.Second

// becomeUser switches from root to the option user. Before that it creates the directories that only root can create,
// with this user as the owner. Without sock_dir, which is below /run, the minion has no event sockets and logs that.
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
	if err := saltcli.MakePIDFile(p.Conf.String("pidfile"), name); err != nil {
		p.Log.Warn(err.Error())
	}
	return saltcli.BecomeUser(name)
}

// Minion is the program salt-minion. args do not include the program's name; the result is its exit code.
func Minion(ctx context.Context, args []string, o Options) int {
	daemon.StartSmall()
	c := o.console()
	p, err := saltcli.Setup(c, minionParser(c), saltcli.Minion, args)
	if err != nil {
		return p.Exit(err)
	}
	if p.Values.Bool("daemon") && !daemon.InBackground(c.Env) {
		return p.ExitCode(daemon.Background())
	}
	if err := p.OpenLog("salt.minion", true); err != nil {
		return p.Exit(err)
	}
	defer p.Close()
	id, _ := p.Conf.Opts["id"].(string)
	p.Log.Info(fmt.Sprintf("Setting up the Salt Minion %q", id))
	p.Own = modules.Default().Options()
	p.LogUnknown(p.Conf)
	if p.Conf.Bool("start_after_cloud_init") && cloudInitRuns(cloudInitDir) {
		if !awaitCloudInit(ctx, p, cloudInitDir) {
			return 0
		}
		return exitCode(p.Log, daemon.Again())
	}
	if err := becomeUser(p); err != nil {
		fmt.Fprintln(c.Err, err) // at any log level, like stock's verify_env
		return saltcli.ExitNoUser
	}
	err = o.runDaemon(ctx, p)
	if o.startsAgain(p, err) {
		p.Log.Info("Restarting the Salt Minion")
		time.Sleep(restartPause)
		err = daemon.Again()
	}
	return exitCode(p.Log, err)
}

// startsAgain reports whether the process replaces itself after err.
func (o Options) startsAgain(p *saltcli.Program, err error) bool {
	return errors.Is(err, minion.ErrRestart) && !o.sealed(p) && !p.Values.Bool("disable_keepalive")
}

// sealed reports whether the minion is sealed, or may be because its seal cannot be read. Such a minion leaves
// restarts to the service manager, because a process that it starts inherits the kernel's restrictions.
func (o Options) sealed(p *saltcli.Program) bool {
	s, err := o.readSeal(p.Conf.String("conf_file"))
	return s != nil || err != nil
}

func daemonOptions(p *saltcli.Program) daemon.Options {
	return daemon.Options{
		PIDFile: p.Conf.String("pidfile"), Notify: p.Env("NOTIFY_SOCKET"),
		Watchdog: p.Env("WATCHDOG_USEC"), Log: p.Log, Name: "Minion",
		Detached: p.Values.Bool("daemon"),
		Dump: func(stacks []byte) {
			p.Log.Warn("Stacks of all goroutines:\n" + string(stacks))
		},
	}
}

func (o Options) runDaemon(ctx context.Context, p *saltcli.Program) error {
	var running atomic.Pointer[minion.Minion]
	had := p.Conf // used only by the signal goroutine
	d := daemonOptions(p)
	d.Again = func(err error) bool { return o.startsAgain(p, err) }
	d.Reload = func() {
		var err error
		if had, err = reload(ctx, p, running.Load(), had); err != nil {
			p.LogBadReload("Cannot reload", err)
		}
	}
	return daemon.Run(ctx, d, func(ctx context.Context, n *daemon.Notifier) error {
		options, err := o.minionOptions(p, slog.LevelWarn)
		if err != nil {
			return err
		}
		ready := make(chan struct{})
		options.Ready = func() {
			n.Ready()
			close(ready)
		}
		memory := daemon.NewMemory(idlePause)
		defer memory.Stop()
		options.Locked = n.Started
		options.OnState = func(s minion.Status) {
			n.Status(s.String())
			memory.Touch()
		}
		options.OnJobs, options.OnWork = memory.Jobs, memory.Touch
		m, err := minion.New(options)
		if err != nil {
			return err
		}
		running.Store(m)
		if o.Beside == nil {
			return m.Run(ctx)
		}
		return runBeside(ctx, m, ready, func(ctx context.Context, ended <-chan struct{}) {
			o.Beside(ctx, m, p.Conf.Opts, p.Log, ended, memory.Rest)
		})
	})
}

// runBeside runs the minion and, once it is ready, work. It returns when both have returned.
func runBeside(ctx context.Context, m *minion.Minion, ready <-chan struct{},
	work func(context.Context, <-chan struct{})) error {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ready:
			work(ctx, ended)
		case <-ended:
		}
	}()
	err := m.Run(ctx)
	close(ended)
	<-done
	return err
}

// reload reads the configuration again and applies it to the log and the minion. m is nil while the minion starts.
// had is the current configuration. The result is the new one.
func reload(ctx context.Context, p *saltcli.Program, m *minion.Minion,
	had *conf.Config) (*conf.Config, error) {
	c, err := p.Load()
	if err == nil {
		err = p.ReloadLog(c)
	}
	if err == nil && m != nil {
		err = m.Reload(ctx)
	}
	if err != nil {
		return had, err
	}
	p.LogReload(had, c, "")
	return c, nil
}

// exitCode logs err and returns the exit code for it.
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

// minionOptions returns the minion's options. level is the level of the log message about its seal.
func (o Options) minionOptions(p *saltcli.Program, level slog.Level) (minion.Options, error) {
	o.configure(p.Conf)
	seal, err := o.readSeal(p.Conf.String("conf_file"))
	if err != nil {
		return minion.Options{}, sealError(err)
	}
	options, err := standard.SealedOptions(p.Conf.Opts, p.Log, seal)
	if err != nil {
		return options, err
	}
	options.Restrict = restrictor(seal, p.Conf.Opts, p.Log, level, confine.Apply)
	current := p.Conf
	options.OptsOrder = func() payload.OrderedMap { return current.Order }
	options.Load = func() (map[string]any, error) {
		c, err := p.Load()
		if err != nil {
			return nil, err
		}
		o.configure(c)
		current = c
		return c.Opts, nil
	}
	if o.MasterHost != nil {
		options.MasterHost = o.MasterHost(p.Conf.String("conf_file"), p.Env, p.Log)
	}
	return options, nil
}

// configure applies o.NoDefaultMaster to the configuration.
func (o Options) configure(c *conf.Config) {
	if o.NoDefaultMaster && !c.Given["master"] && !c.Given["master_type"] &&
		c.Opts["master"] == "salt" {
		c.Opts["master_type"] = "disable"
	}
}
