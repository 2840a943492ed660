package saltcli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/python/optparse"
)

// Exit codes of Salt's programs (salt/defaults/exitcodes.py).
const (
	ExitGeneric     = 1
	ExitOptions     = 42 // the command is incomplete
	ExitUsage       = 64
	ExitNoUser      = 67
	ExitUnavailable = 69
)

// Console is the input, output and environment of a program, which tests replace.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(string) string
	Terminal bool // Out is a terminal
	// ErrWidth returns the columns of the terminal Err. It is nil if Err is not a terminal.
	ErrWidth func() int
}

// OSConsole returns the console of this process.
func OSConsole() *Console {
	info, err := os.Stdout.Stat()
	return &Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv,
		Terminal: err == nil && info.Mode()&os.ModeCharDevice != 0, ErrWidth: terminalWidth(os.Stderr)}
}

// defaultWidth is the width of a terminal that does not report one.
const defaultWidth = 80

// Place returns the program's surroundings: its home and working directory, and its environment.
func (c *Console) Place() Place {
	home, _ := os.UserHomeDir()
	if h := c.Env("HOME"); h != "" {
		home = h
	}
	dir, _ := os.Getwd()
	return Place{Env: c.Env, Home: home, Dir: dir}
}

// ConfigDir returns the default of --config-dir.
func (c *Console) ConfigDir() string {
	if dir := c.Env("SALT_CONFIG_DIR"); dir != "" {
		return dir
	}
	return conf.PlatformDirs().Config
}

// Width returns the terminal's width for help texts, which Python reads from COLUMNS.
func (c *Console) Width() int {
	n, err := strconv.Atoi(c.Env("COLUMNS"))
	if err != nil || n < 1 {
		return defaultWidth
	}
	return n
}

// Program is a program between its command line and its work: configuration read, command line merged into it, log open.
type Program struct {
	*Console
	Parser *optparse.Parser
	Values *optparse.Values
	At     Place
	Conf   *conf.Config
	Took   time.Duration // reading it
	Log    *slog.Logger
	// Own are options of this program, beside Salt's and brine's.
	Own []string
	// Load reads the configuration again, with the command line over it.
	Load func() (*conf.Config, error)
	// Close closes the log file.
	Close func()
	// ReloadLog applies levels, formats and targets of a reloaded configuration. Loggers stay valid.
	ReloadLog func(c *conf.Config) error
}

// ExitError ends a program with a code after writing text to standard error as it stands.
type ExitError struct {
	Code int
	Text string
}

func (e *ExitError) Error() string { return e.Text }

// Usage returns the error for a wrong command line.
func (p *Program) Usage(msg string) *ExitError { return &ExitError{ExitUsage, p.Parser.ErrorText(msg)} }

// Exit prints the text of an error and returns the exit code.
func (p *Program) Exit(err error) int {
	var exit *ExitError
	var wrong *optparse.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		fmt.Fprint(p.Err, exit.Text)
		return exit.Code
	case errors.As(err, &wrong):
		fmt.Fprint(p.Err, p.Parser.ErrorText(wrong.Msg))
		return ExitUsage
	}
	fmt.Fprintf(p.Err, "[ERROR   ] %v\n", err)
	return ExitGeneric
}

// ExitCode returns code, or prints the text of an error and returns its exit code.
func (p *Program) ExitCode(code int, err error) int {
	if err != nil {
		return p.Exit(err)
	}
	return code
}

// Setup reads the command line and the configuration. role selects the file and its rules; daemon enables the log
// file. A finished program (--help) is an *ExitError with code 0.
func Setup(c *Console, parser *optparse.Parser, role Role, args []string) (*Program, error) {
	p := &Program{Console: c, Parser: parser, At: c.Place(), Close: func() {}, ReloadLog: func(*conf.Config) error { return nil }}
	v, err := parser.Parse(args)
	if err != nil {
		return p, err
	}
	p.Values = v
	if v.Bool("args_stdin") {
		if err := p.readArgs(); err != nil {
			return p, err
		}
	}
	switch {
	case v.Bool("help"):
		fmt.Fprint(c.Out, parser.Help())
		return p, &ExitError{}
	case v.Bool("version"):
		fmt.Fprintf(c.Out, "%s %s\n", parser.Prog, Version())
		return p, &ExitError{}
	case v.Bool("versions_report"):
		fmt.Fprint(c.Out, VersionsReport())
		return p, &ExitError{}
	}
	rest, err := Saltfile(parser, v, p.At)
	if err != nil {
		return p, err
	}
	dir, exists := ConfigDir(v, p.At)
	if !exists {
		fmt.Fprintf(c.Err, "WARNING: CONFIG '%s' directory does not exist.\n", dir)
	}
	v.Put("config_dir", dir)
	over, err := overrides(role, parser, v)
	if err != nil {
		return p, err
	}
	p.Load = func() (*conf.Config, error) {
		config, err := role.load(dir, conf.Options{Overrides: over, Getenv: c.Env, CLI: parser.Prog,
			Tool: role != Minion && parser.Prog != "salt-master", CacheID: role != Master})
		if err != nil {
			return nil, err
		}
		for key, value := range rest {
			config.Opts[key] = value
		}
		if err := conf.CheckOwners(config); err != nil && c.Env(foreignConfig) == "" {
			return nil, fmt.Errorf("%w; %s=1 in the environment allows that", err, foreignConfig)
		}
		Merge(parser, v, config.Opts)
		return config, nil
	}
	began := time.Now()
	if p.Conf, err = p.Load(); err != nil {
		return p, err
	}
	p.Took = time.Since(began)
	return p, p.emptyOutputFile()
}

// foreignConfig is the environment variable that allows configuration files of others. An option could not: the file that
// must not be trusted would set it.
const foreignConfig = "BRINE_FOREIGN_CONFIG"

// Role selects the configuration of a program.
type Role int

// The roles. A Caller reads the minion's file and forgives broken includes, as salt-call does.
const (
	Master Role = iota
	Minion
	Caller
)

func (r Role) load(dir string, o conf.Options) (*conf.Config, error) {
	if r == Master {
		return conf.LoadMasterWith(filepath.Join(dir, "master"), o)
	}
	return conf.LoadMinionWith(filepath.Join(dir, "minion"), o)
}

// readArgs adds the lines of standard input to the command line (--args-stdin).
func (p *Program) readArgs() error {
	b, err := io.ReadAll(io.LimitReader(p.In, maxStdin))
	if err != nil {
		return fmt.Errorf("cannot read arguments from standard input: %w", err)
	}
	return p.Parser.More(p.Values, splitLines(string(b)))
}

// maxStdin bounds what --args-stdin reads, in bytes.
const maxStdin = 64 << 20

// emptyOutputFile empties the output file unless appending was asked for.
func (p *Program) emptyOutputFile() error {
	out := p.Values.String("output_file")
	if out == "" || p.Values.Bool("output_file_append") || !isFile(out) {
		return nil
	}
	if err := os.Truncate(out, 0); err != nil {
		return p.Usage(fmt.Sprintf("%s: Access denied: %v", out, err))
	}
	return nil
}
