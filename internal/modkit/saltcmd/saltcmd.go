// Package saltcmd runs programs for execution modules as Salt's modules do through cmd.run_all with
// python_shell=False. Messages are in English, the output is text without line ends at its end, the exit status
// becomes the job's return code, and the error for a program that cannot be started has Salt's text. Module cmd
// itself runs the commands of users.
package saltcmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/output"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Command is a program to run.
type Command struct {
	Args []string
	// Env are "name=value" settings; Stdin is the program's input.
	Env   []string
	Stdin string
	// Dir is the working directory, or "" for the user's home; RunAs is the user, or "" for the minion's own.
	Dir, RunAs, Password string
	Umask                *int
	// IgnoreRetcode does not store the exit status as the job's return code.
	IgnoreRetcode bool
	// Merge redirects standard error to standard output, as cmd.run does.
	Merge bool
	// Raw keeps white space at the end of the output.
	Raw bool
	// KeepLocale does not set the language of messages to English.
	KeepLocale bool
	Timeout    time.Duration
	// Secret keeps the arguments out of errors.
	Secret bool
	// Success holds further exit statuses that count as 0.
	Success []int
}

// Result holds the output and the exit status of a program.
type Result struct {
	Stdout, Stderr string
	Retcode, PID   int
}

// Lines returns the lines of standard output.
func (r Result) Lines() []string { return pytext.SplitLines(r.Stdout, false) }

// Map returns the result in the form of cmd.run_all.
func (r Result) Map() map[string]any {
	return map[string]any{"pid": int64(r.PID), "retcode": int64(r.Retcode), "stdout": r.Stdout, "stderr": r.Stderr}
}

// Run runs the program and waits for it.
func Run(ctx context.Context, c *modules.Call, cmd Command) (Result, error) {
	if cmd.Dir != "" {
		if info, err := os.Stat(c.Path(cmd.Dir)); err != nil || !info.IsDir() || !filepath.IsAbs(cmd.Dir) {
			return Result{}, modules.Errorf("Specified cwd '%s' either not absolute or does not exist", cmd.Dir)
		}
	}
	m := modules.Command{
		Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir, RunAs: cmd.RunAs, Password: cmd.Password, Umask: cmd.Umask, Merge: cmd.Merge,
		Timeout: cmd.Timeout,
	}
	if cmd.Stdin != "" {
		m.Stdin = strings.NewReader(cmd.Stdin)
	}
	if !cmd.KeepLocale && runtime.GOOS != "windows" {
		m.Defaults = Locale(cmd.Env)
	}
	got, err := c.Cmd(ctx, m)
	if err != nil {
		return Result{}, notStarted(ctx, cmd, err)
	}
	res := Result{Stdout: text(got.Stdout, cmd.Raw), Stderr: text(got.Stderr, cmd.Raw), Retcode: got.ExitCode, PID: got.PID}
	if got.TimedOut {
		res.Stdout = fmt.Sprintf("%s : Timed out after %s seconds", cmd.shown(), pytext.Float(cmd.Timeout.Seconds()))
		res.Stderr, res.Retcode = "", 1
		return res, nil
	}
	if slices.Contains(cmd.Success, res.Retcode) {
		res.Retcode = 0
	}
	if cmd.IgnoreRetcode {
		c.SetRetcode(0)
	} else {
		c.SetRetcode(res.Retcode)
	}
	return res, nil
}

// Problem returns a CommandExecutionError with additional data in info. The error's text shows the data in nested
// form, and callers can read it.
func Problem(text string, info any) error {
	if !pytext.Truth(info) {
		return &modules.ExecError{Msg: text}
	}
	brief := text
	if text != "" {
		if !strings.ContainsAny(text[len(text)-1:], ".?!") {
			text += "."
		}
		text += " "
	}
	nested, err := output.Render("nested", info, output.Options{})
	if err != nil {
		nested = pytext.Str(info)
	}
	return &modules.ExecError{Msg: text + "Additional info follows:\n\n" + nested, Info: info, Brief: brief}
}

// WithoutChanges splits a CommandExecutionError into the changes that were made before the error and the error's text
// without them. ok is false if err has no such data.
func WithoutChanges(err error) (changes any, text string, ok bool) {
	var e *modules.ExecError
	if !errors.As(err, &e) || !pytext.Truth(e.Info) {
		return nil, "", false
	}
	info, isMap := e.Info.(map[string]any)
	if !isMap {
		return nil, e.Msg, true
	}
	rest := maps.Clone(info)
	delete(rest, "changes")
	return info["changes"], Problem(e.Brief, rest).Error(), true
}

// Locale returns the settings for messages in English, except those that env sets.
func Locale(env []string) []string {
	var out []string
	for _, name := range [...]string{
		"LC_CTYPE", "LC_NUMERIC", "LC_TIME", "LC_COLLATE", "LC_MONETARY", "LC_MESSAGES", "LC_PAPER", "LC_NAME", "LC_ADDRESS",
		"LC_TELEPHONE", "LC_MEASUREMENT", "LC_IDENTIFICATION", "LANGUAGE",
	} {
		if !slices.ContainsFunc(env, func(s string) bool { return strings.HasPrefix(s, name+"=") }) {
			out = append(out, name+"=C")
		}
	}
	return out
}

// Environment returns the environment for the programs of a module from the configuration and the pillar
// (system-environment:modules:<module>:_), as "name=value".
func Environment(c *modules.Call, names ...string) []string {
	set := map[string]any{}
	for _, source := range []map[string]any{c.Config(), c.PillarData()} {
		for _, name := range names {
			v := any(source)
			for _, key := range []string{"system-environment", "modules", name, "_"} {
				m, _ := v.(map[string]any)
				v = m[key]
			}
			if m, ok := v.(map[string]any); ok {
				for k, x := range m {
					set[k] = x
				}
			}
		}
	}
	var env []string
	for k, v := range set {
		env = append(env, k+"="+pytext.Str(v))
	}
	slices.Sort(env)
	return env
}

func text(b []byte, raw bool) string {
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	if raw {
		return s
	}
	return pytext.StripRight(s)
}

// notStarted returns Salt's error for a program that could not be started. Its text shows the arguments of Python's
// Popen.
func notStarted(ctx context.Context, cmd Command, err error) error {
	reason, _ := modules.OSErrorText(err)
	var missing *modules.MissingCommandError
	if reason == "" && errors.As(err, &missing) {
		reason = "[Errno 2] No such file or directory"
	}
	if reason == "" || ctx.Err() != nil || len(cmd.Args) == 0 {
		return err
	}
	dir, stderr := cmd.Dir, "-1"
	if dir == "" {
		dir = "/root"
	}
	if cmd.Merge {
		stderr = "-2"
	}
	return modules.Errorf("Unable to run command '%s' with the context '{'cwd': %s, 'shell': False, 'stdout': -1, 'stderr': %s, "+
		"'with_communicate': True, 'timeout': None, 'bg': False, 'close_fds': True}', reason: %s: %s",
		cmd.shown(), pytext.Repr(dir), stderr, reason, pytext.Repr(cmd.Args[0]))
}

// shown returns the command for an error text, or REDACTED if it is secret.
func (cmd Command) shown() string {
	if cmd.Secret {
		return "REDACTED"
	}
	return pytext.Repr(nested.Anys(cmd.Args))
}
