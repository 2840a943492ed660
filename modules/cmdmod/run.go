package cmdmod

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules"
)

// run implements Salt's _run: the checks in its order, the command, and the handling of its output.
func (o *options) run(ctx context.Context) (*result, error) {
	cmd, err := o.command(ctx)
	if err != nil {
		return nil, err
	}
	good, err := o.success()
	if err != nil {
		return nil, err
	}
	limit, limitText, err := o.timeout()
	if err != nil {
		return nil, err
	}
	cmd.Timeout = limit
	done := o.showLive(&cmd)
	kept := o.boundOutput(&cmd)
	got, err := o.c.Cmd(ctx, cmd)
	kept(&got)
	done()
	if err != nil {
		return nil, o.notStarted(ctx, cmd, err)
	}
	res, err := o.finish(got, good, o.shown(cmd)+" : Timed out after "+limitText+" seconds")
	if err != nil {
		return nil, err
	}
	o.report(res)
	return res, nil
}

// command prepares the command. The order of the checks is Salt's, since users see the first one that fails.
func (o *options) command(ctx context.Context) (modules.Command, error) {
	var cmd modules.Command
	cwd, sh := o.dir(), o.shellPath()
	if runtime.GOOS != "windows" && sh != "" {
		info, err := os.Stat(o.c.Path(sh))
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			return cmd, modules.Errorf("The shell %s is not available", sh)
		}
	}
	cwd, err := o.render(ctx, cwd)
	if err != nil {
		return cmd, err
	}
	if o.calledByJob && !o.permitted(ctx) {
		return cmd, modules.Errorf(`The shell command "%s" is not permitted`, pytext.Str(o.cmd))
	}
	if err := o.announce(cwd); err != nil {
		return cmd, err
	}
	cmd = modules.Command{
		Dir: cwd, CleanEnv: o.truth("clean_env", false), RunAs: o.inherited("runas"), Group: o.text("group"), Password: o.inherited("password"),
		Merge: o.merge, Limit: o.limit(), Detach: o.bg, Defaults: o.defaults(),
	}
	if o.outside {
		cmd.RunAs, cmd.Group = "", ""
	}
	if err := userExists(o.c, cmd.RunAs, cmd.Group); err != nil {
		return cmd, err
	}
	if cmd.Env, err = o.environ(); err != nil {
		return cmd, err
	}
	if cmd.Umask, err = umaskOf(o.value("umask")); err != nil {
		return cmd, err
	}
	if info, err := os.Stat(cwd); !filepath.IsAbs(cwd) || err != nil || !info.IsDir() {
		return cmd, modules.Errorf("Specified cwd '%s' either not absolute or does not exist", cwd)
	}
	if v := o.value("stdin"); v != nil && !o.bg {
		text := pytext.Str(v)
		if !o.truth("stdin_raw_newlines", false) {
			text = strings.ReplaceAll(text, `\n`, "\n")
		}
		cmd.Stdin = strings.NewReader(text)
	}
	return cmd, o.fill(&cmd, sh)
}

// fill puts the program and its arguments into the command: through the shell, as a list, or a text that is split.
func (o *options) fill(cmd *modules.Command, sh string) error {
	list, isList := o.cmd.([]any)
	words := make([]string, len(list))
	for i, x := range list {
		words[i] = pytext.Str(x)
	}
	switch {
	case o.pythonShell && isList && runtime.GOOS != "windows":
		for _, x := range list {
			if _, ok := x.(string); !ok {
				return &modules.TypeError{Msg: "expected str, bytes or os.PathLike object, not " + modules.TypeName(x)}
			}
		}
		cmd.Args = append([]string{sh, "-c"}, words...) // what Python makes of a list and a shell
	case o.pythonShell && isList:
		cmd.Args = words
	case o.pythonShell:
		cmd.Shell, cmd.Script = sh, pytext.Str(o.cmd)
	case isList:
		cmd.Args = words
	case sh == "": // Salt does not split if there is to be no shell
		cmd.Args = []string{pytext.Str(o.cmd)}
	default:
		words, err := shlex.Split(pytext.Str(o.cmd))
		if err != nil {
			return &modules.PythonError{Type: "ValueError", Msg: err.Error()}
		}
		cmd.Args = words
	}
	if cmd.Shell == "" && len(cmd.Args) == 0 {
		return index("list")
	}
	return nil
}

// shown returns the command in the form that Salt's messages show: the list that it was split into, or the caller's
// text.
func (o *options) shown(cmd modules.Command) string {
	if _, ok := o.cmd.(string); ok && !o.pythonShell && o.shellPath() != "" {
		return pytext.Repr(cmd.Args)
	}
	return pytext.Str(o.cmd)
}

// announce logs that the command runs, without its arguments, which may hold secrets.
func (o *options) announce(cwd string) error {
	if !o.level.on {
		return nil
	}
	program := ""
	if list, ok := o.cmd.([]any); ok {
		if len(list) == 0 {
			return index("list")
		}
		first, ok := list[0].(string)
		if !ok {
			return modules.NoAttribute(list[0], "strip")
		}
		program = strings.TrimSpace(first)
	} else {
		words := strings.Fields(pytext.Str(o.cmd))
		if len(words) == 0 {
			return index("list")
		}
		program = words[0]
	}
	o.c.Logger().Info("Executing command", "program", program, "dir", cwd, "user", o.inherited("runas"), "background", o.bg)
	return nil
}

// notStarted gives a program that could not be started Salt's text, which shows the arguments of Python's Popen.
func (o *options) notStarted(ctx context.Context, cmd modules.Command, err error) error {
	reason, _ := modules.OSErrorText(err)
	var missing *modules.MissingCommandError
	if reason == "" && errors.As(err, &missing) {
		reason = "[Errno 2] No such file or directory"
	}
	if reason == "" || ctx.Err() != nil {
		return err
	}
	program := o.shellPath()
	if len(cmd.Args) > 0 {
		program = cmd.Args[0]
	}
	shown := o.shown(cmd)
	if !o.level.on {
		shown = "REDACTED"
	}
	return modules.Errorf("Unable to run command '%s' with the context '%s', reason: %s: %s", shown, o.popen(cmd), reason, pytext.Repr(program))
}

// popen writes the arguments of Popen as Python shows a dict of them.
func (o *options) popen(cmd modules.Command) string {
	stdout, stderr := "-1", "-1"
	if o.merge {
		stderr = "-2"
	}
	communicate := true
	if o.bg && o.c.Value("bg") == nil { // only cmd.run_bg passes these
		stdout, stderr, communicate = "None", "None", false
	}
	text := fmt.Sprintf("{'cwd': %s, 'shell': %s, 'stdout': %s, 'stderr': %s, 'with_communicate': %s, 'timeout': %s, 'bg': %s",
		pytext.Repr(cmd.Dir), pythonBool(o.pythonShell), stdout, stderr, pythonBool(communicate), pytext.Repr(o.value("timeout")), pythonBool(o.bg))
	if o.pythonShell {
		text += ", 'executable': " + pytext.Repr(o.shellPath())
	}
	return text + ", 'close_fds': True}"
}

// finish converts the outcome of the program to Salt's result.
func (o *options) finish(got modules.CommandResult, good success, timedOut string) (*result, error) {
	res := &result{pid: int64(got.PID), retcode: int64(got.ExitCode), truncated: got.Truncated}
	ignore := o.bg || o.truth("ignore_retcode", false)
	switch {
	case got.TimedOut:
		// Salt returns at once here, so that neither success_* nor the return code of the job are looked at.
		res.stdout, res.retcode = timedOut, int64(1)
		return res, nil
	case o.bg:
		res.retcode = nil
		o.c.SetRetcode(0)
		return res, nil
	}
	var err1, err2 error
	res.stdout, err1 = decode(got.Stdout, o.text("output_encoding"))
	res.stderr, err2 = decode(got.Stderr, o.text("output_encoding"))
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if o.truth("encoded_cmd", false) && strings.Contains(res.stderr, "CLIXML") {
		res.stderr = ""
	}
	if o.truth("rstrip", true) {
		res.stdout, res.stderr = rstrip(res.stdout), rstrip(res.stderr)
	}
	has := func(text string) func(string) bool {
		return func(part string) bool { return strings.Contains(text, part) }
	}
	if slices.Contains(good.codes, int64(got.ExitCode)) ||
		slices.ContainsFunc(good.stdout, has(res.stdout)) || slices.ContainsFunc(good.stderr, has(res.stderr)) {
		res.retcode = int64(0)
	}
	code := 0
	if n, ok := res.retcode.(int64); ok && !ignore {
		code = int(n)
	}
	o.c.SetRetcode(code)
	return res, nil
}

// report logs the output.
func (o *options) report(res *result) {
	log := o.c.Logger()
	if res.truncated {
		log.Warn("Output beyond the limit was dropped", "fun", o.c.Fun)
	}
	ctx, level := context.Background(), o.level.level
	code, _ := res.retcode.(int64)
	failed := code != 0 && !o.truth("ignore_retcode", false)
	if failed {
		level = max(level, slog.LevelError)
	}
	if !o.level.on || !log.Enabled(ctx, level) {
		return
	}
	if failed {
		log.Error(fmt.Sprintf("Command '%s' failed with return code: %d", o.program(), code))
	}
	for _, out := range [...]struct{ name, text string }{{"stdout", res.stdout}, {"stderr", res.stderr}} {
		if out.text != "" {
			log.Log(ctx, level, out.name+": "+out.text)
		}
	}
	if code != 0 {
		log.Log(ctx, level, fmt.Sprintf("retcode: %d", code))
	}
}

// program returns the command without its arguments, which may hold secrets.
func (o *options) program() string {
	text := pytext.Str(o.cmd)
	if list, ok := o.cmd.([]any); ok && len(list) > 0 {
		return strings.TrimSpace(pytext.Str(list[0]))
	}
	if words := strings.Fields(text); len(words) > 0 {
		return words[0]
	}
	return text
}
