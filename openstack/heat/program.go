package heat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/pyjson"
)

// Env is what the program os-collect-config needs of the agent.
type Env struct {
	Stdout, Stderr io.Writer
	// Settings are those of the minion's configuration; the command line is put over them.
	Settings Settings
	// Call runs an execution function without a master.
	Call func(ctx context.Context, fun string, kwargs map[string]any) (any, error)
	// Idle is Options.Idle.
	Idle func()
}

// collectFlags are the options of os-collect-config outside of groups; the others are --<group>-<option>.
var collectFlags = map[string]string{"-c": "command", "--command": "command", "--cachedir": "cachedir",
	"--backup-cachedir": "backup_cachedir", "--collectors": "collectors", "--min-polling-interval": "min_polling_interval",
	"-i": "polling_interval", "--polling-interval": "polling_interval", "--deployment-key": "deployment_key", "--splay": "splay"}

const collectUsage = `usage: os-collect-config [--config-file FILE] [--command COMMAND] [--one-time] [--force] [--print] [--print-cachedir]
    [--cachedir DIR] [--polling-interval SECONDS] [--min-polling-interval SECONDS] [--splay SECONDS] [--deployment-key KEY]
    [--debug] [--version] [--<group>-<option> VALUE] [collectors ...]
Collect the metadata of Heat. Without a command the metadata is printed; with one, deployments are run as well, by this agent itself.
`

// collectArgs is a command line of os-collect-config.
type collectArgs struct {
	files                                                          []string
	over                                                           Conf
	oneTime, force, print, printDir, version, help, debug, verbose bool
}

func parseCollect(args []string) (collectArgs, error) {
	a := collectArgs{over: Conf{}}
	flags := map[string]*bool{"--one-time": &a.oneTime, "--force": &a.force, "--print": &a.print, "--print-cachedir": &a.printDir,
		"--version": &a.version, "--help": &a.help, "-h": &a.help, "--debug": &a.debug, "-d": &a.debug, "--verbose": &a.verbose, "-v": &a.verbose}
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(args[i], "=")
		if !strings.HasPrefix(name, "-") {
			a.over.add("DEFAULT", "collectors", args[i])
			continue
		}
		if on := flags[name]; on != nil {
			*on = true
			continue
		}
		if off, ok := strings.CutPrefix(name, "--no"); ok && flags["--"+strings.TrimPrefix(off, "-")] != nil {
			*flags["--"+strings.TrimPrefix(off, "-")] = false
			continue
		}
		section, option := "DEFAULT", collectFlags[name]
		if option == "" && name != "--config-file" && name != "--config-dir" {
			for _, s := range [...]string{"ec2", "cfn", "heat_local", "heat-local", "heat", "request", "local", "zaqar", "keystone"} {
				if rest, ok := strings.CutPrefix(name, "--"+s+"-"); ok {
					section, option = strings.ReplaceAll(s, "-", "_"), optionName(rest)
					break
				}
			}
			if option == "" {
				return a, fmt.Errorf("unrecognized arguments: %s", name)
			}
		}
		if !has {
			if i++; i >= len(args) {
				return a, fmt.Errorf("argument %s: expected one argument", name)
			}
			value = args[i]
		}
		if option == "" {
			a.files = append(a.files, value)
			continue
		}
		a.over.add(section, option, value)
	}
	return a, nil
}

// Collect is the program os-collect-config, from its arguments without its name to its exit code.
func Collect(ctx context.Context, args []string, env Env) int {
	a, err := parseCollect(args)
	if err != nil {
		fmt.Fprintf(env.Stderr, "%sos-collect-config: error: %v\n", collectUsage, err)
		return 2
	}
	if a.help {
		fmt.Fprint(env.Stdout, collectUsage)
		return 0
	}
	if a.version {
		fmt.Fprintln(env.Stdout, "14.1.0")
		return 0
	}
	s := env.Settings
	if len(a.files) > 0 {
		s.ConfFiles = a.files
	}
	over := Conf{}
	over.merge(s.Over)
	over.merge(a.over)
	s.Over = over
	level := slog.LevelInfo
	if a.debug {
		level = slog.LevelDebug
	}
	e := New(Options{Settings: s, Call: env.Call, Idle: env.Idle, Log: slog.New(slog.NewTextHandler(env.Stderr, &slog.HandlerOptions{Level: level}))})
	if err := e.collectMain(ctx, a, env); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(env.Stderr, "os-collect-config: %v\n", err)
		return 1
	}
	return 0
}

func (e *Engine) collectMain(ctx context.Context, a collectArgs, env Env) error {
	if err := e.start(); err != nil {
		return err
	}
	for _, name := range e.source.names() {
		if !slices.Contains(DefaultCollectors, name) {
			return fmt.Errorf("Unknown collectors [%q]. Valid collectors are: %q", name, DefaultCollectors)
		}
	}
	command := e.filec.Get("DEFAULT", "command", e.o.Settings.Command)
	switch {
	case a.printDir:
		fmt.Fprintln(env.Stdout, e.filec.Get("DEFAULT", "cachedir", "/var/lib/os-collect-config"))
		return nil
	case command == "" || a.print:
		docs, err := e.Once(ctx, false)
		if err != nil {
			return err
		}
		all := map[string]any{}
		for _, d := range docs {
			all[d.Name] = d.Content
		}
		text, err := pyjson.Format(all, pyjson.Options{Indent: 1, ASCII: true})
		if err == nil {
			_, err = fmt.Fprintln(env.Stdout, text)
		}
		return err
	case a.oneTime || a.force:
		_, err := e.Once(ctx, true)
		return err
	}
	return e.Run(ctx)
}

// Beside runs the engine next to a minion. ended is closed when the minion has stopped for a reason of its own: deployments that run
// may then finish. fire, which may be nil, sends an event to the master; idle is Options.Idle.
func Beside(ctx context.Context, opts map[string]any, log *slog.Logger, call func(context.Context, string, map[string]any, func(any)) (any, error),
	fire func(ctx context.Context, tag string, data any) error, ended <-chan struct{}, idle func()) {
	s, err := NewSettings(opts)
	if err != nil {
		log.Error("Heat is not polled", "err", err)
		return
	}
	if s.Disabled {
		return
	}
	o := Options{Settings: s, Log: log, Drain: ended, Idle: idle}
	o.Call = func(ctx context.Context, fun string, kwargs map[string]any) (any, error) {
		return call(ctx, fun, kwargs, func(item any) {
			m, _ := item.(map[string]any)
			if id, ok := m["deployment"].(string); ok && fire != nil {
				if err := fire(ctx, "heat/progress/"+id, item); err != nil {
					log.Debug("No master gets the progress of a deployment", "err", err)
				}
			}
		})
	}
	for ctx.Err() == nil {
		err := New(o).Run(ctx)
		if err == nil {
			return
		}
		log.Error("Heat is not polled", "err", err) // another agent has the lock; it may end
		select {
		case <-ctx.Done():
		case <-ended:
			return
		case <-time.After(lockRetry):
		}
	}
}

// lockRetry is how long to wait for another agent of this host to end.
const lockRetry = 30 * time.Second

// OSEnv is an Env with the process's streams.
func OSEnv() Env { return Env{Stdout: os.Stdout, Stderr: os.Stderr} }
