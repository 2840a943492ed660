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
	ExitOptions     = 42 // the command line is incomplete
	ExitUsage       = 64
	ExitNoUser      = 67
	ExitUnavailable = 69
)

// Console is the input, output and environment of a program. Tests replace it.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(string) string
	Terminal bool // Out is a terminal
	// ErrWidth returns the number of columns of the terminal Err. It is nil if Err is not a terminal.
	ErrWidth func() int
}

// OSConsole returns the console of this process.
func OSConsole() *Console {
	info, err := os.Stdout.Stat()
	return &Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv,
		Terminal: err == nil && info.Mode()&os.ModeCharDevice != 0, ErrWidth: terminalWidth(os.Stderr)}
}

// defaultWidth is the width of a terminal that does not report its width.
const defaultWidth = 80

// Place returns the program's environment variables, home directory and working directory.
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

// Width returns the width of help texts. As in Python, it comes from COLUMNS.
func (c *Console) Width() int {
	n, err := strconv.Atoi(c.Env("COLUMNS"))
	if err != nil || n < 1 {
		return defaultWidth
	}
	return n
}

// Program is a program after its start: the configuration is read, the command line is merged into it, and the log is
// open.
type Program struct {
	*Console
	Parser *optparse.Parser
	Values *optparse.Values
	At     Place
	Conf   *conf.Config
	Took   time.Duration // time for reading the configuration
	Log    *slog.Logger
	// Own holds options of this program in addition to Salt's and brine's.
	Own []string
	// Load reads the configuration again and merges the command line into it.
	Load func() (*conf.Config, error)
	// Close closes the log file.
	Close func()
	// ReloadLog applies the levels, formats and targets of a reloaded configuration. Existing loggers use them.
	ReloadLog func(c *conf.Config) error
}

// ExitError ends a program with an exit code, after writing Text unchanged to standard error.
type ExitError struct {
	Code int
	Text string
}

func (e *ExitError) Error() string { return e.Text }

// Usage returns the error for an invalid command line.
func (p *Program) Usage(msg string) *ExitError { return &ExitError{ExitUsage, p.Parser.ErrorText(msg)} }

// Exit prints the text of an error and returns the exit code for it.
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

// ExitCode returns code if err is nil. Otherwise it prints the error and returns its exit code.
func (p *Program) ExitCode(code int, err error) int {
	if err != nil {
		return p.Exit(err)
	}
	return code
}

// Setup parses the command line and reads the configuration. role selects the configuration file and its rules. For
// --help and similar options it returns an *ExitError with code 0.
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

// foreignConfig is the environment variable that allows configuration files that belong to other users. It cannot be
// an option, since an untrusted file could set it.
const foreignConfig = "BRINE_FOREIGN_CONFIG"

// Role selects the configuration of a program.
type Role int

// A Caller reads the minion's file and ignores broken includes, as salt-call does.
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

// readArgs adds the lines of standard input to the arguments (--args-stdin).
func (p *Program) readArgs() error {
	b, err := io.ReadAll(io.LimitReader(p.In, maxStdin))
	if err != nil {
		return fmt.Errorf("cannot read arguments from standard input: %w", err)
	}
	return p.Parser.More(p.Values, splitLines(string(b)))
}

// maxStdin limits the bytes that --args-stdin reads.
const maxStdin = 64 << 20

// emptyOutputFile truncates the output file unless --out-file-append is set.
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
