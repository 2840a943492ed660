package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/cmd/internal/localmaster"
	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/master/client"
)

// exitNothing is the exit code if no minion answered.
const exitNothing = 2

// saltCmd is the program salt: its command line, the job and the returns (salt/cli/salt.py: SaltCMD).
type saltCmd struct {
	*saltcli.Program
	client *client.Client
	cmd    client.Command
	print  *saltcli.Printer
	views  saltcli.StateViews

	mu    sync.Mutex     // held to write jid and meter, and by lookUpLater
	jid   string         // of the job whose returns it awaits
	meter *saltcli.Meter // of the states that run
}

// runSalt runs salt and returns its exit code.
func runSalt(ctx context.Context, c *saltcli.Console, args []string) int {
	p, err := saltcli.Setup(c, saltParser(c), saltcli.Master, args)
	if err == nil {
		err = p.OpenLog("salt.client", false)
	}
	if err != nil {
		return p.Exit(err)
	}
	defer p.Close()
	s := &saltCmd{Program: p,
		print: &saltcli.Printer{Out: c.Out, Opts: p.Conf.Opts, Terminal: c.Terminal, Log: p.Log}}
	return p.Interruptible(ctx, func(ctx context.Context) (int, error) {
		err := s.run(ctx)
		s.meter.Stop()
		return 0, err
	}, s.lookUpLater)
}

// lookUpLater removes the meter, and returns how to look up the job that was sent.
func (s *saltCmd) lookUpLater() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meter.Stop()
	if s.jid == "" {
		return ""
	}
	return "This job's jid is: " + s.jid +
		"\nThe minions may not have all finished running and any remaining minions will " +
		"return upon completion. To look up the return data for this job later, run the " +
		"following command:\n\n" +
		"salt-run jobs.lookup_jid " + s.jid + "\n"
}

func (s *saltCmd) run(ctx context.Context) error {
	v := s.Values
	if len(v.Args) <= 1 && !v.Bool("doc") && !v.Bool("preview_target") {
		fmt.Fprint(s.Out, s.Parser.Help())
	}
	if v.Bool("config_dump") {
		text, err := yaml.Marshal(s.Conf.Opts)
		fmt.Fprint(s.Out, text)
		return err
	}
	if err := s.readCommand(); err != nil {
		return err
	}
	var err error
	if s.client, err = newClient(s.Program); err != nil {
		return err
	}
	defer s.client.Close()
	creds, err := login(ctx, s.Program, s.client)
	if err == nil {
		if creds == nil {
			if token := storedToken(s.Program); token != "" {
				creds = map[string]any{"token": token}
			}
		}
		maps.Copy(s.cmd.Kwargs, creds)
		err = s.work(ctx)
	}
	if text, ok := s.explainError(err); ok {
		var refused *client.PublishError
		if errors.As(err, &refused) {
			// stock ends with an exception
			return &saltcli.ExitError{Code: saltcli.ExitGeneric, Text: text + "\n"}
		}
		// stock ends with an exception in these modes
		if v.Bool("static") || v.Bool("async") || fmt.Sprint(v.Get("batch")) != "" {
			return &saltcli.ExitError{Code: saltcli.ExitGeneric, Text: text + "\n"}
		}
		return s.show(text, "", 1)
	}
	return err
}

// readCommand creates the job from the command line.
func (s *saltCmd) readCommand() error {
	tgtType, err := targetType(s.Program)
	if err != nil {
		return err
	}
	args, err := commandWords(s.Program)
	if err != nil {
		return err
	}
	s.cmd.TgtType, s.cmd.Tgt = tgtType, args[0]
	if tgtType == "list" {
		s.cmd.Tgt = splitList(args[0])
	}
	rest, err := s.StateCommand(args[1], args[1:], "async", "static", "batch", "progress")
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.meter = s.StateMeter(args[1])
	s.mu.Unlock()
	if s.meter != nil && saltcli.HasStateEvents(args[1]) &&
		!slices.ContainsFunc(rest,
			func(w string) bool { return strings.HasPrefix(w, "state_events=") }) {
		rest = append(slices.Clone(rest), "state_events=True")
	}
	if s.cmd.Fun, s.cmd.Arg, err = parseCommand(s.Program, rest); err != nil {
		return err
	}
	s.cmd.Ret = s.Values.String("return")
	if ext := s.Conf.String("ext_job_cache"); ext != "" {
		s.cmd.Ret = strings.TrimPrefix(s.cmd.Ret+","+ext, ",")
	}
	return s.kwargs()
}

// kwargs sets the further fields that stock sends.
func (s *saltCmd) kwargs() error {
	v := s.Values
	s.cmd.Kwargs = map[string]any{"delimiter": v.String("delimiter"),
		"show_timeout": v.Bool("show_timeout"), "show_jid": v.Bool("show_jid")}
	if text := v.String("return_config"); text != "" {
		s.cmd.Kwargs["ret_config"] = text
	}
	for dest, field := range map[string]string{"return_kwargs": "ret_kwargs",
		"module_executors": "module_executors",
		"executor_opts":    "executor_opts", "metadata": "metadata"} {
		if text := v.String(dest); text != "" {
			s.cmd.Kwargs[field] = yaml.ParseValue(text)
		}
	}
	_, err := tokenOrLogin(s.Program) // check the log-in before any request
	return err
}

// explainError returns the text that stock prints for an error of the master, as if it were a result. As in stock,
// the exit code is 0 then, unless the job is a batch, static or asynchronous.
func (s *saltCmd) explainError(err error) (string, bool) {
	var refused *client.PublishError
	var group *groupError
	switch {
	case errors.Is(err, client.ErrNotRunning):
		s.Log.Error("Unable to connect to the salt master publisher at " +
			s.Conf.String("sock_dir"))
		s.Log.Debug("The reason", "err", err)
		return "The salt master could not be contacted. Is master running?", true
	case errors.Is(err, client.ErrTimeout):
		s.Log.Error("Message timed out")
		return "Salt request timed out. The master is not responding. You may need to run your " +
			"command with `--async` in " +
			"order to bypass the congested event bus. With `--async`, the CLI tool will print " +
			"the job id (jid) and exit " +
			"immediately without listening for responses. You can then use `salt-run " +
			"jobs.lookup_jid` to look up the results " +
			"of the job in the job cache later.", true
	case errors.Is(err, client.ErrAuthentication):
		if s.Values.String("eauth") != "" || s.cmd.Kwargs["token"] != nil {
			s.Log.Error(loginFailed)
		} else {
			s.Log.Error(s.client.WhyNot())
		}
		return client.ErrAuthentication.Error(), true
	case errors.Is(err, client.ErrAuthorization):
		return client.ErrAuthorization.Error(), true
	case errors.As(err, &refused), errors.As(err, &group):
		return err.Error(), true
	}
	return "", false
}

// work runs the command.
func (s *saltCmd) work(ctx context.Context) error {
	v := s.Values
	delim := v.String("delimiter")
	if v.Bool("preview_target") {
		ids, err := s.client.Preview(s.cmd.TgtType, s.cmd.Tgt, delim, s.Conf.Map("nodegroups"))
		if err != nil {
			return err
		}
		return s.show(nested.Anys(ids), "", 0)
	}
	if err := s.resolve(); err != nil {
		return err
	}
	size := fmt.Sprint(v.Get("batch"))
	if limit := v.Int("batch_safe_limit"); limit > 1 && size == "" && !v.Bool("static") {
		ids, err := s.client.Preview(s.cmd.TgtType, s.cmd.Tgt, delim, nil)
		if err != nil {
			return err
		}
		if int64(len(ids)) >= limit {
			fmt.Fprint(s.Out, "\nNOTICE: Too many minions targeted, switching to batch execution.\n")
			size = fmt.Sprint(v.Get("batch_safe_size"))
		}
	}
	switch {
	case v.Bool("static"):
		return s.runStatic(ctx, size)
	case size != "":
		return s.runBatch(ctx, size)
	case v.Bool("async"):
		return s.publishOnly(ctx)
	}
	return s.wait(ctx)
}

func (s *saltCmd) publishOnly(ctx context.Context) error {
	p, err := s.client.Publish(ctx, s.cmd)
	jid := p.JID
	if errors.Is(err, client.ErrNoMatch) {
		s.noMatch()
		jid, err = "0", nil
	}
	if err == nil {
		fmt.Fprintf(s.Out, "Executed command with job ID: %s\n", jid)
	}
	return err
}

func (s *saltCmd) noMatch() {
	fmt.Fprintln(s.Out, "No minions matched the target. No command was sent, no jid was assigned.")
}

// noMinions returns the error that ends the program if no minion answered.
func noMinions() error {
	return &saltcli.ExitError{Code: exitNothing, Text: "ERROR: No return received\n"}
}

// runOptions returns how long to wait. Stock waits gather_job_timeout (10 s) longer for silent minions. Here, only
// connected minions get that time, unless the option is changed or -g is set.
func (s *saltCmd) runOptions() client.RunOptions {
	o := client.RunOptions{Timeout: s.Conf.Duration("timeout", time.Second)}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	gather := s.Conf.Duration("gather_job_timeout", time.Second)
	if s.Values.IsSet("gather_job_timeout") || localmaster.Gather(gather) != 0 {
		o.Gather = max(gather, time.Second)
	}
	return o
}

// wait publishes the job and prints returns as they arrive.
func (s *saltCmd) wait(ctx context.Context) error {
	v := s.Values
	if v.Int("subset") > 0 {
		if err := s.subset(ctx, int(v.Int("subset"))); err != nil {
			return err
		}
	}
	s.views = s.StateViews(s.print)
	o := s.runOptions()
	s.showProgress(&o)
	r, err := s.client.Run(ctx, s.cmd, o)
	if errors.Is(err, client.ErrNoMatch) {
		s.noMatch()
		return s.show(map[string]any{}, "", 0)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	s.mu.Lock()
	s.jid = r.JID
	s.mu.Unlock()
	if v.Bool("verbose") {
		text := "Executing job with jid " + r.JID
		fmt.Fprintf(s.Out, "%s\n%s\n\n", text, strings.Repeat("-", len(text)))
	} else if v.Bool("show_jid") {
		fmt.Fprintf(s.Out, "jid: %s\n", r.JID)
	}
	sum := &summary{verbose: v.Bool("verbose")}
	switch {
	case v.Bool("progress"):
		s.progress(ctx, r, sum)
		fmt.Fprint(s.Out, sum.text())
	case s.cmd.Fun == "sys.doc":
		if err := s.showDocs(ctx, r); err != nil {
			return err
		}
	default:
		for ret := range r.Returns(ctx) {
			if err := s.printReturn(ret, sum); err != nil {
				return err
			}
		}
		if v.Bool("cli_summary") && s.Conf.String("output") == "" {
			fmt.Fprint(s.Out, sum.text())
		}
	}
	if r.Err() != nil {
		return r.Err()
	}
	if s.views.On() {
		return s.endViews(sum)
	}
	if sum.failed {
		return &saltcli.ExitError{Code: saltcli.ExitGeneric,
			Text: "ERROR: Minions returned with non-zero exit code\n"}
	}
	return nil
}

// printReturn prints one minion's return.
func (s *saltCmd) printReturn(ret client.Return, sum *summary) error {
	if ret.Status != client.Returned && s.isHidden(ret) {
		return nil
	}
	text, out, code := s.shownValue(ret), ret.Out, ret.Code()
	taken := false
	if ret.Status != client.Returned {
		text, out, code = lostText(ret), "no_return", saltcli.ExitGeneric
		taken = s.views.Lost(s.print, ret.ID)
	} else {
		var err error
		if taken, err = s.views.Add(s.print, ret.ID, ret.Value, out, code); err != nil {
			return err
		}
	}
	sum.add(ret, code)
	if taken {
		return nil
	}
	return s.print.Print(map[string]any{ret.ID: text}, out, code)
}

// shownValue returns a minion's return in the form for its outputter.
func (s *saltCmd) shownValue(ret client.Return) any {
	if s.print.InOrder(ret.Out) {
		return ret.Ordered
	}
	return ret.Value
}

// isHidden reports whether a lost minion is not printed: a syndic, or a known minion with --hide-timeout and without
// --verbose.
func (s *saltCmd) isHidden(ret client.Return) bool {
	if isFile(filepath.Join(s.Conf.String("syndic_dir"), ret.ID)) {
		return true
	}
	return !ret.Unknown && !s.Values.Bool("show_timeout") && !s.Values.Bool("verbose")
}

// lostText returns the text for a minion that did not return.
func lostText(ret client.Return) string {
	if ret.Status == client.NotConnected {
		return "Minion did not return. [Not connected]"
	}
	return client.LostText(ret.JID)
}

// showDocs prints the documentation from all minions, once for each function.
func (s *saltCmd) showDocs(ctx context.Context, r *client.Run) error {
	docs := map[string]any{}
	answered := false
	for ret := range r.Returns(ctx) {
		answered = answered || ret.Status == client.Returned
		m, _ := ret.Value.(map[string]any)
		for fun, doc := range m {
			if _, ok := docs[fun]; !ok && conf.Truth(doc) {
				docs[fun] = doc
			}
		}
	}
	if !answered {
		return &saltcli.ExitError{Code: exitNothing, Text: "No minions found to gather docs from\n"}
	}
	funs := make([]string, 0, len(docs))
	for fun := range docs {
		funs = append(funs, fun)
	}
	slices.Sort(funs)
	for _, fun := range funs {
		if s.Conf.String("output") != "" {
			if err := s.print.Print(map[string]any{fun: docs[fun]}, "nested", 0); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(s.Out, "%s:\n%v\n\n", fun, docs[fun])
	}
	return nil
}

// subset replaces the target by n minions that have the function.
func (s *saltCmd) subset(ctx context.Context, n int) error {
	r, err := s.client.Run(ctx,
		client.Command{Fun: "sys.list_functions", Tgt: s.cmd.Tgt, TgtType: s.cmd.TgtType,
			Kwargs: s.cmd.Kwargs}, s.runOptions())
	if errors.Is(err, client.ErrNoMatch) {
		return nil // the job will not match a minion either
	}
	if err != nil {
		return err
	}
	defer r.Close()
	var ids []string
	for ret := range r.Returns(ctx) {
		if funs, ok := ret.Value.([]any); ok && slices.Contains(funs, s.cmd.Fun) {
			ids = append(ids, ret.ID)
		}
	}
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	s.cmd.Tgt, s.cmd.TgtType = ids[:min(n, len(ids))], "list"
	if len(ids) == 0 {
		s.cmd.Tgt = []string{}
	}
	return r.Err()
}

// show prints a value that is not a minion's return. An empty value ends the program with exit code 2.
func (s *saltCmd) show(v any, out string, code int) error {
	if err := s.print.Print(v, out, code); err != nil {
		return err
	}
	if l, ok := v.([]any); !conf.Truth(v) || ok && len(l) == 0 {
		return noMinions()
	}
	return nil
}
