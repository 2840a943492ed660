package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/cliargs"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
)

// exitAbsent is stock's exit status for a function that does not exist (sys.exit(-1)).
const exitAbsent = 255

// caller is one run of salt-call.
type caller struct {
	*saltcli.Program
	minion *minion.Minion
	meter  *saltcli.Meter
	local  bool
}

// Call is the program salt-call. args do not include the program's name; the result is its exit code
// (salt/cli/call.py, salt/cli/caller.py). After SIGINT or SIGTERM it returns while the function still runs, and the
// caller must end the process.
func Call(ctx context.Context, args []string, o Options) int {
	c := o.console()
	p, err := saltcli.Setup(c, callParser(c), saltcli.Caller, args)
	if done := new(saltcli.ExitError); p.Values != nil && p.Values.Bool("doctor") &&
		!errors.As(err, &done) {
		return examine(ctx, c, p.Values) // an invalid configuration is one of its lines
	}
	if err == nil {
		err = checkCall(p)
	}
	if err != nil {
		return p.Exit(err)
	}
	if code, called := checkCalled(ctx, p); called {
		return code
	}
	if len(p.Values.Args) > 0 {
		if p.Values.Args, err = p.StateCommand(p.Values.Args[0], p.Values.Args); err != nil {
			return p.Exit(err)
		}
	}
	meter := p.StateMeter(first(p.Values.Args))
	defer meter.Stop()
	if err := p.OpenLog("salt.cli.caller", true); err != nil {
		return p.Exit(err)
	}
	defer p.Close()
	if err := becomeUser(p); err != nil {
		fmt.Fprintln(c.Err, err)
		return saltcli.ExitNoUser
	}
	call := &caller{Program: p, meter: meter}
	call.applyFlags()
	options, err := o.minionOptions(p, slog.LevelInfo)
	if err == nil {
		call.minion, err = minion.New(options)
	}
	if err != nil {
		return exitCode(p.Log, err)
	}
	return p.Interruptible(ctx, func(ctx context.Context) (int, error) {
		code, err := call.run(ctx)
		if exit := new(minion.ExitError); errors.As(err, &exit) {
			return exitCode(p.Log, err), nil
		}
		return code, err
	}, func() string {
		meter.Stop()
		return ""
	})
}

// first returns the first word, or "".
func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// checkCall refuses invalid combinations of arguments.
func checkCall(p *saltcli.Program) error {
	v := p.Values
	switch {
	case len(v.Args) == 0 && !v.Bool("grains_run") && !v.Bool("doc"):
		fmt.Fprint(p.Out, p.Parser.Help())
		return p.Usage("Requires function, --grains or --doc")
	case len(v.Args) > 0 && v.Bool("grains_run"):
		return p.Usage("-g/--grains does not accept any arguments")
	case len(v.Args) > 1 && v.Bool("doc"):
		return p.Usage("You can only get documentation for one method at one time")
	}
	return nil
}

// applyFlags applies the flags that saltcli does not merge into the configuration.
func (c *caller) applyFlags() {
	v, opts := c.Values, c.Conf.Opts
	var ignored []string
	for _, root := range []struct{ dest, flag, opt string }{
		{"file_root", "--file-root", "file_roots"},
		{"pillar_root", "--pillar-root", "pillar_roots"},
		{"states_dir", "--states-dir", "states_dirs"},
	} {
		given, _ := v.Get(root.dest).([]string)
		var dirs []any
		for _, dir := range given {
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(c.At.Dir, dir)
			}
			dirs = append(dirs, dir)
		}
		if len(dirs) == 0 {
			continue
		}
		if root.opt == "states_dirs" {
			opts[root.opt] = dirs
		} else {
			opts[root.opt] = map[string]any{"base": dirs}
		}
		ignored = append(ignored, root.flag)
	}
	if v.Bool("local") {
		opts["file_client"] = "local"
	} else if len(ignored) > 0 {
		verb := "are"
		if len(ignored) == 1 {
			verb = "is"
		}
		fmt.Fprintf(c.Err, "Warning: %s %s ignored because --local was not specified; the remote "+
			"file client retrieves these from "+
			"the master. Re-run with --local to use the local override.\n",
			strings.Join(ignored, ", "), verb)
	}
	if master := v.String("master"); master != "" {
		opts["master"] = master
	}
	if text, ok := opts["module_dirs"].(string); ok { // the flag's text replaces the option
		var dirs []any
		for dir := range strings.SplitSeq(text, ",") {
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(cwd(), dir)
			}
			dirs = append(dirs, dir)
		}
		opts["module_dirs"] = dirs
	}
	if text, ok := opts["module_executors"].(string); ok {
		opts["module_executors"] = cliargs.Value(text)
	}
	for _, o := range []struct{ dest, flag string }{{"proxyid", "--proxyid"},
		{"executor_opts", "--executor-opts"}, {"profiling_enabled", "--enable-profiling"}} {
		if v.IsSet(o.dest) {
			c.Log.Warn("The option " + o.flag + " is accepted and has no effect")
		}
	}
	c.local = v.Bool("local") || opts["file_client"] == "local"
}

// cwd returns the working directory, to which paths on the command line are relative.
func cwd() string {
	dir, err := os.Getwd()
	if err != nil {
		return "/"
	}
	return dir
}

// printer returns the printer for results.
func (c *caller) printer() *saltcli.Printer {
	return &saltcli.Printer{Out: c.Out, Opts: c.Conf.Opts, Terminal: c.Terminal, Log: c.Log,
		KeepOrder: true}
}

func (c *caller) run(ctx context.Context) (int, error) {
	v := c.Values
	switch {
	case v.Bool("doc"):
		return 0, c.printDocs(ctx)
	case v.Bool("grains_run"):
		res, err := c.minion.Call(ctx,
			minion.CallOptions{Fun: "grains.items", Local: c.local, NoReturnEvent: true})
		if err != nil {
			return 0, err
		}
		return 0, c.printer().Print(map[string]any{"local": res.Return}, "", 0)
	}
	args, kwargs := cliargs.ParseOrdered(v.Args[1:], cliargs.NoParse(v.String("no_parse")))
	q := minion.CallOptions{
		Fun: v.Args[0], Args: args, Kwargs: kwargs, Local: c.local,
		NoReturnEvent: v.Bool("no_return_event"),
		SkipGrains:    v.Bool("skip_grains"), ForMaster: v.Bool("for_master"),
		JID: string(protocol.NewJID(time.Now())), FunArgs: nested.Anys(v.Args[1:]),
	}
	if r := v.String("return"); r != "" {
		q.Returners = strings.Split(r, ",")
	}
	if text := v.String("metadata"); text != "" {
		q.Metadata, _ = cliargs.Value(text).(map[string]any)
	}
	if c.meter != nil {
		q.OnState = func(s modules.StateStep) {
			c.meter.Set(saltcli.StateText(s.Number, s.Total,
				s.Fun, s.Name))
		}
	}
	res, err := c.minion.Call(ctx, q)
	c.meter.Stop()
	if err != nil {
		return 0, err
	}
	return c.show(ctx, q, res)
}

// printDocs prints the documentation of every function whose name has the given prefix.
func (c *caller) printDocs(ctx context.Context) error {
	pattern := ""
	if len(c.Values.Args) == 1 {
		pattern = c.Values.Args[0] + "*"
	}
	docs, err := c.docs(ctx, pattern)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(docs))
	for name := range docs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(c.Out, "%s:\n%s\n\n", name, docs[name])
	}
	return nil
}

// docs returns sys.doc's result for a function or pattern.
func (c *caller) docs(ctx context.Context, pattern string) (map[string]any, error) {
	res, err := c.minion.Call(ctx,
		minion.CallOptions{Fun: "sys.doc", Local: true, Direct: true, NoReturnEvent: true,
			Args: []any{pattern}})
	if err != nil {
		return nil, err
	}
	docs, _ := res.Return.(map[string]any)
	return docs, nil
}

// show prints a result, or an error to standard error, and returns the exit code.
func (c *caller) show(ctx context.Context, q minion.CallOptions, res modules.Result) (int, error) {
	if res.Err != nil {
		if code, done := c.showError(ctx, q.Fun, res); done {
			return code, nil
		}
	}
	if views := c.StateViews(c.printer()); views.On() {
		taken, err := views.Add(c.printer(), "local", res.Return, res.Out, res.Retcode)
		if err != nil {
			return 0, err
		}
		code := res.Retcode
		if code != 0 && !c.Values.Bool("retcode_passthrough") {
			code = saltcli.ExitGeneric
		}
		if code = views.End(c.Out, c.printer(), code); taken {
			return code, nil
		}
		if err := c.printer().Print(map[string]any{"local": inOrder(res,
			c.printer().Outputter(res.Out))}, res.Out, res.Retcode); err != nil {
			return 0, err
		}
		return code, nil
	}
	own := res.Out
	shown := inOrder(res, c.printer().Outputter(own))
	if c.Values.Bool("print_metadata") {
		all := map[string]any{
			"return": shown, "retcode": int64(res.Retcode), "fun": q.Fun, "fun_args": q.FunArgs,
			"id": c.minion.ID(), "jid": q.JID,
		}
		if res.Out != "" {
			all["out"] = res.Out
		}
		if q.Metadata != nil {
			all["metadata"] = q.Metadata
		}
		shown, own = all, "nested"
	}
	if err := c.printer().Print(map[string]any{"local": shown}, own, res.Retcode); err != nil {
		return 0, err
	}
	if res.Retcode == 0 || c.Values.Bool("retcode_passthrough") {
		return res.Retcode, nil
	}
	return saltcli.ExitGeneric, nil
}

// showError prints why the function failed, in the texts of salt/cli/caller.py. done is false if the result
// should be printed instead: documentation in place of a missing function.
func (c *caller) showError(ctx context.Context, fun string, res modules.Result) (code int,
	done bool) {
	var (
		exec    *modules.ExecError
		usage   *modules.UsageError
		typ     *modules.TypeError
		missing *modules.MissingCommandError
		absent  *modules.NotAvailableError
	)
	switch {
	case errors.As(res.Err, &absent):
		if _, docs := res.Return.(map[string]any); docs {
			return 0, false
		}
		fmt.Fprintln(c.Err, absent)
		return exitAbsent, true
	case errors.As(res.Err, &missing):
		fmt.Fprintf(c.Err, "Command required for '%s' not found: %s\n", fun, missing)
	case errors.As(res.Err, &exec), modules.IsRefused(res.Err):
		fmt.Fprintf(c.Err, "Error running '%s': %s\n", fun, res.Err)
	case errors.As(res.Err, &usage) && usage.Early:
		fmt.Fprintln(c.Err, res.Err)
	// Salt's SaltInvocationError is a TypeError.
	case errors.As(res.Err, &usage), errors.As(res.Err, &typ):
		fmt.Fprintf(c.Err, "\nPassed invalid arguments: %s.\n\nUsage:\n", res.Err)
		docs, err := c.docs(ctx, fun)
		if err != nil {
			c.Log.Debug("There is no documentation", "fun", fun, "err", err)
		}
		fmt.Fprintln(c.Out, pytext.Str(docs[fun]))
	default:
		fmt.Fprintln(c.Err, res.Return)
	}
	return saltcli.ExitGeneric, true
}
