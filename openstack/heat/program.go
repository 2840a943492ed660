package heat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pyjson"
)

// Env is the environment of the program os-collect-config.
type Env struct {
	Stdout, Stderr io.Writer
	// Settings are those in the minion's configuration. The command line takes precedence.
	Settings Settings
	// Call runs an execution function without a master.
	Call func(ctx context.Context, fun string, kwargs map[string]any) (any, error)
	// Idle is [Options.Idle].
	Idle func()
}

// collectUsage is the text that --help prints.
const collectUsage = `usage: os-collect-config [--config-file FILE] [--config-dir DIR] [--command COMMAND] [--one-time] [--force] [--print]
    [--print-cachedir] [--cachedir DIR] [--backup-cachedir DIR] [--polling-interval SECONDS] [--min-polling-interval SECONDS]
    [--splay SECONDS] [--deployment-key KEY] [--log-file FILE] [--log-dir DIR] [--debug] [--version] [--<group>-<option> VALUE]
    [collectors ...]
Collect the metadata of Heat. Without a command the metadata is printed; with one, deployments are run as well, by this agent itself.
`

// collectArgs is a parsed command line of os-collect-config.
type collectArgs struct {
	files, dirs                                           []string
	over                                                  Conf
	log                                                   string   // log file; "" means standard error
	idle                                                  []string // options without effect
	oneTime, force, print, printDir, version, help, debug bool
}

// collectGroups are the groups of options --<group>-<option>.
var collectGroups = [...]string{"ec2", "cfn", "heat_local", "heat-local", "heat", "request", "local", "zaqar", "keystone"}

// collectNames are the other long options of os-collect-config, and those of oslo.log. The value is true if the
// option has an argument.
var collectNames = map[string]bool{
	"--one-time": false, "--force": false, "--print": false, "--print-cachedir": false, "--version": false, "--help": false, "--debug": false,
	"--verbose": false, "--noone-time": false, "--noforce": false, "--noprint": false, "--noprint-cachedir": false, "--nodebug": false,
	"--config-file": true, "--config-dir": true, "--command": true, "--cachedir": true, "--backup-cachedir": true, "--collectors": true,
	"--min-polling-interval": true, "--polling-interval": true, "--deployment-key": true, "--splay": true,
	"--log-file": true, "--logfile": true, "--log_file": true, "--log-dir": true, "--logdir": true, "--log_dir": true,
	"--log-config-append": true, "--log-config": true, "--log-date-format": true, "--syslog-log-facility": true,
	"--use-journal": false, "--nouse-journal": false, "--use-json": false, "--nouse-json": false, "--use-syslog": false, "--nouse-syslog": false,
	"--zaqar-use-websockets": false, "--zaqar-nouse-websockets": false, "--zaqar-ssl-certificate-validation": false,
	"--zaqar-nossl-certificate-validation": false,
}

// shortNames are the short options.
var shortNames = map[byte]string{'c': "--command", 'i': "--polling-interval", 'd': "--debug", 'v': "--verbose", 'h': "--help"}

// collectName completes a long option. Like argparse it accepts any unambiguous prefix.
func collectName(name string) (full string, value bool, err error) {
	if value, ok := collectNames[name]; ok {
		return name, value, nil
	}
	for _, g := range collectGroups {
		if strings.HasPrefix(name, "--"+g+"-") {
			return name, true, nil
		}
	}
	var found []string
	for n := range collectNames {
		if strings.HasPrefix(n, name) {
			found = append(found, n)
		}
	}
	switch slices.Sort(found); len(found) {
	case 0:
		return "", false, fmt.Errorf("unrecognized arguments: %s", name)
	case 1:
		return found[0], collectNames[found[0]], nil
	}
	return "", false, fmt.Errorf("ambiguous option: %s could match %s", name, strings.Join(found, ", "))
}

func parseCollect(args []string) (collectArgs, error) {
	a := collectArgs{over: Conf{}}
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(args[i], "=")
		if !strings.HasPrefix(args[i], "-") {
			a.over.add("DEFAULT", "collectors", args[i])
			continue
		}
		if len(args[i]) > 1 && args[i][1] != '-' {
			long := shortNames[args[i][1]]
			if long == "" {
				return a, fmt.Errorf("unrecognized arguments: %s", args[i])
			}
			name, value, has = long, args[i][2:], len(args[i]) > 2
		}
		full, takes, err := collectName(name)
		if err != nil {
			return a, err
		}
		switch {
		case !takes && has:
			return a, fmt.Errorf("argument %s: ignored explicit argument %q", full, value)
		case takes && !has:
			if i++; i >= len(args) {
				return a, fmt.Errorf("argument %s: expected one argument", full)
			}
			value = args[i]
		}
		a.set(full, value)
	}
	return a, nil
}

// set sets one option.
func (a *collectArgs) set(name, value string) {
	flags := map[string]*bool{"one-time": &a.oneTime, "force": &a.force, "print": &a.print, "print-cachedir": &a.printDir, "version": &a.version,
		"help": &a.help, "debug": &a.debug}
	option := strings.TrimPrefix(name, "--")
	off, isOff := strings.CutPrefix(option, "no")
	switch {
	case flags[option] != nil:
		*flags[option] = true
	case isOff && flags[off] != nil:
		*flags[off] = false
	case option == "config-file":
		a.files = append(a.files, value)
	case option == "config-dir":
		a.dirs = append(a.dirs, value)
	case strings.HasPrefix(option, "log-file"), option == "logfile", option == "log_file":
		a.log = value
	case option == "log-dir", option == "logdir", option == "log_dir":
		if a.log == "" {
			a.log = filepath.Join(value, "os-collect-config.log")
		}
	case option == "verbose":
	case strings.HasPrefix(option, "log-"), strings.Contains(option, "use-"), option == "syslog-log-facility", strings.Contains(option, "ssl-certificate"):
		a.idle = append(a.idle, name)
	default:
		for _, g := range collectGroups {
			if rest, ok := strings.CutPrefix(option, g+"-"); ok {
				a.over.add(optionName(g), optionName(rest), value)
				return
			}
		}
		a.over.add("DEFAULT", optionName(option), value)
	}
}

// confFiles returns the configuration files on the command line, or nil for the default ones. Each must exist.
func (a collectArgs) confFiles() ([]string, error) {
	files := slices.Clone(a.files)
	for _, dir := range a.dirs {
		if _, err := os.Stat(dir); err != nil {
			return nil, fmt.Errorf("cannot read the configuration: %w", err)
		}
		more, err := filepath.Glob(filepath.Join(dir, "*.conf"))
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	for _, file := range a.files {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("cannot read the configuration: %w", err)
		}
	}
	return files, nil
}

// Collect runs the program os-collect-config and returns its exit code. args do not include its name.
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
	fail := func(err error) int {
		fmt.Fprintf(env.Stderr, "os-collect-config: %v\n", err)
		return 1
	}
	files, err := a.confFiles()
	if err != nil {
		return fail(err)
	}
	if len(files) > 0 {
		s.ConfFiles = files
	}
	over := Conf{}
	over.merge(s.Over)
	over.merge(a.over)
	s.Over = over
	level := slog.LevelInfo
	if a.debug {
		level = slog.LevelDebug
	}
	to := env.Stderr
	if a.log != "" {
		f, err := os.OpenFile(a.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return fail(fmt.Errorf("cannot open the log: %w", err))
		}
		defer f.Close()
		to = f
	}
	log := slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level}))
	for _, name := range a.idle {
		log.Warn("An option has no effect", "option", name)
	}
	e := New(Options{Settings: s, Call: env.Call, Idle: env.Idle, Log: log})
	err = e.collectMain(ctx, a, env)
	if err == nil || errors.Is(err, context.Canceled) {
		return 0
	}
	fail(err)
	var exit *commandError
	if errors.As(err, &exit) {
		return exit.code
	}
	return 1
}

func (e *Engine) collectMain(ctx context.Context, a collectArgs, env Env) error {
	if err := e.start(); err != nil {
		return err
	}
	if err := e.filec.check(); err != nil {
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
		_, err := e.once(ctx, true, a.force)
		return err
	}
	return e.Run(ctx)
}

// Beside runs the engine next to a minion. ended is closed when the minion has stopped for a reason other than ctx;
// running deployments may then finish. fire, which may be nil, sends an event to the master. idle is [Options.Idle].
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
		log.Error("Heat is not polled", "err", err) // another agent has the lock, and may end
		select {
		case <-ctx.Done():
		case <-ended:
			return
		case <-time.After(lockRetry):
		}
	}
}

// lockRetry is the pause before the lock of another agent on this host is tried again.
const lockRetry = 30 * time.Second

// OSEnv returns an Env with the process's streams.
func OSEnv() Env { return Env{Stdout: os.Stdout, Stderr: os.Stderr} }
