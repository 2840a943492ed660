package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/brine-salt/brine/master/runner/host"

	"github.com/brine-salt/brine/cmd/internal/localmaster"
	"github.com/brine-salt/brine/internal/cliargs"
	"github.com/brine-salt/brine/internal/daemon"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/master/fileserver"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/master/runner"
	"github.com/brine-salt/brine/master/store/jobcache"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/payload"
)

// saltRun is the program salt-run. It runs a function in its own process, with the directories of the master on this
// host, and sends commands to minions through that master (salt/cli/run.py).
type saltRun struct {
	*saltcli.Program
	print *saltcli.Printer
}

// runRun runs salt-run and returns its exit code.
func runRun(ctx context.Context, c *saltcli.Console, args []string) int {
	p, err := saltcli.Setup(c, runParser(c), saltcli.Master, args)
	if err == nil {
		err = p.OpenLog("salt.runner", false)
	}
	if err != nil {
		return p.Exit(err)
	}
	defer p.Close()
	s := &saltRun{Program: p,
		print: &saltcli.Printer{Out: c.Out, Opts: p.Conf.Opts, Terminal: c.Terminal, Log: p.Log}}
	interrupted := false
	code := p.Interruptible(ctx, s.run, func() string {
		interrupted = true
		return ""
	})
	if interrupted {
		return saltcli.ExitGeneric // as stock, whose runner client makes a failure of the handler's exit
	}
	return code
}

func (s *saltRun) run(ctx context.Context) (int, error) {
	v := s.Values
	if v.Bool("doc") && len(v.Args) > 1 {
		return 0, s.Usage("You can only get documentation for one method at one time")
	}
	if v.String("eauth") != "" && !v.Bool("doc") {
		return s.asUser(ctx)
	}
	if err := becomeMasterUser(s.Program); err != nil {
		return 0, err
	}
	host, err := s.host()
	if err != nil {
		return 0, err
	}
	defer host.close()
	c := runner.NewClient(&host.Host)
	if v.Bool("doc") {
		s.docs(c)
		return 0, nil
	}
	q := runner.Request{JID: v.String("jid")}
	if len(v.Args) > 0 {
		q.Fun = v.Args[0]
		q.Args, q.Kwargs = cliargs.ParseOrdered(v.Args[1:], cliargs.NoParse(v.String("no_parse")))
	}
	if q.JID == "" {
		q.JID = string(protocol.NewJID(time.Now()))
	} else if !protocol.ValidJID(q.JID) {
		return 0, s.Usage(fmt.Sprintf("%q is not a jid", q.JID))
	}
	if slices.Contains([]string{"state.orchestrate", "state.orch", "state.sls"}, q.Fun) {
		if q.Kwargs == nil {
			q.Kwargs = map[string]any{}
		}
		q.Kwargs["orchestration_jid"] = q.JID
	}
	q.User, _ = localmaster.UserNames(s.Conf, s.Env)
	if v.Bool("async") {
		return 0, s.runAsync(q)
	}
	return s.show(c, c.Call(ctx, q), q.Fun)
}

// asUser makes the master run the function for a user who logs in.
func (s *saltRun) asUser(ctx context.Context) (int, error) {
	v := s.Values
	if len(v.Args) == 0 {
		return 0, s.Usage("no runner function given")
	}
	cl, err := newClient(s.Program)
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	f := client.FunctionCall{Kind: "runner", Fun: v.Args[0]}
	f.Args, f.Kwargs = cliargs.ParseOrdered(v.Args[1:], cliargs.NoParse(v.String("no_parse")))
	if f.Login, err = login(ctx, s.Program, cl); err != nil {
		return 0, s.refusedRun(err)
	}
	if v.Bool("async") {
		_, tag, err := cl.Start(ctx, f)
		if err != nil {
			return 0, s.refusedRun(err)
		}
		s.Log.Warn(asyncText + tag)
		return 0, nil
	}
	data, err := cl.Call(ctx, f)
	res := runner.Result{Return: payload.Plain(data["return"]), Ordered: data["return"],
		Success: data["success"] == true}
	switch code, failed := data["retcode"].(int64); {
	case errors.Is(err, client.ErrNoFunction):
		res.Return = "'" + f.Fun + "' is not available."
		res.Ordered = res.Return
	case err != nil:
		return 0, s.refusedRun(err)
	case failed:
		res.Retcode = int(code)
	}
	return s.show(nil, res, f.Fun)
}

// refusedRun logs a failed log-in, and returns the error that ends the command.
func (s *saltRun) refusedRun(err error) error {
	if refusedLogin(err) {
		s.Log.Error(loginFailed)
		return &saltcli.ExitError{Code: saltcli.ExitGeneric, Text: err.Error() + "\n"}
	}
	return err
}

// asyncText precedes the tag of a run in the background.
const asyncText = "Running in asynchronous mode. Results of this execution may be collected by " +
	"attaching to the master event bus or by " +
	"examining the master job cache, if configured. This execution is running under tag "

// show prints the result of a call and returns the exit code.
func (s *saltRun) show(c *runner.Client, res runner.Result, fun string) (int, error) {
	value, out := res.Return, ""
	if s.print.InOrder("") {
		value = res.Ordered
	}
	if res.Missing {
		if docs := c.Docs(fun); len(docs) > 0 { // the name of a runner, without a function
			all := make(map[string]any, len(docs))
			for k, d := range docs {
				all[k] = d
			}
			value = all
		}
	}
	if m, ok := payload.Map(value); ok {
		if o, has := m["outputter"].(string); has {
			out = o
			if data, has := m["data"]; has && len(m) == 2 {
				value = data
			}
		}
	}
	if !s.Values.Bool("quiet") {
		if err := s.print.Print(value, out, res.Retcode); err != nil {
			return 0, err
		}
	}
	if res.Retcode != 0 {
		return res.Retcode, nil
	}
	// The return code in a function's result counts too (state.orchestrate).
	if m, ok := res.Return.(map[string]any); ok {
		for _, at := range []any{m, m["data"]} {
			if in, ok := at.(map[string]any); ok {
				if n, ok := in["retcode"].(int64); ok {
					return int(n), nil
				}
			}
		}
	}
	return 0, nil
}

// progress prints what a function reports while it runs.
func (s *saltRun) progress(item map[string]any) {
	if s.Values.Bool("quiet") {
		return
	}
	out, _ := item["outputter"].(string)
	if err := s.print.Print(payload.OrderedMap{{Key: "suffix", Value: "progress"},
		{Key: "event", Value: item}}, out, 0); err != nil {
		s.Log.Error("Cannot print progress", "err", err)
	}
}

// docs prints documentation as stock does: a line with the name, and the text.
func (s *saltRun) docs(c *runner.Client) {
	name := ""
	if len(s.Values.Args) > 0 {
		name = s.Values.Args[0]
	}
	docs := c.Docs(name)
	for _, fun := range slices.Sorted(maps.Keys(docs)) {
		fmt.Fprintf(s.Out, "%s:\n%s\n", fun, docs[fun])
	}
}

// runAsync starts the same run in the background.
func (s *saltRun) runAsync(q runner.Request) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot start the runner: %w", err)
	}
	args := []string{"salt-run", "--config-dir", s.Conf.String("config_dir"), "--jid", q.JID,
		"--quiet"}
	if list := s.Values.String("no_parse"); list != "" {
		args = append(args, "--no-parse", list)
	}
	args = append(append(args, "--"), s.Values.Args...)
	if err := daemon.Detach(program, args, os.Environ()); err != nil {
		return fmt.Errorf("cannot start the runner: %w", err)
	}
	s.Log.Warn(asyncText + "salt/run/" + q.JID)
	return nil
}

// runnerHost provides the master on this host to runners.
type runnerHost struct {
	host.Host
	client  *client.Client
	out     io.Writer
	closers []func() error
}

func (h *runnerHost) close() {
	for _, f := range slices.Backward(h.closers) {
		_ = f() // they were only read
	}
}

// host opens the directories of the master with this configuration.
func (s *saltRun) host() (*runnerHost, error) {
	c := s.Conf
	h := &runnerHost{out: s.Out}
	minions, err := s.openMinions(h)
	if err != nil {
		return nil, err
	}
	cl, err := newClientOf(s.Program, minions)
	if err != nil {
		h.close()
		return nil, err
	}
	h.client, h.closers = cl, append(h.closers, cl.Close)
	h.ID, h.Opts, h.Log = c.String("id"), c.Opts, s.Log
	h.Timeout, h.Gather = c.Duration("timeout", time.Second),
		c.Duration("gather_job_timeout", time.Second)
	h.Run = h.run
	if key, err := os.ReadFile(filepath.Join(h.CacheDir, "."+localmaster.User(c)+
		"_key")); err == nil {
		h.Key = string(key)
	}
	h.Match = func(tgtType string, tgt any) ([]string, error) {
		return cl.Preview(tgtType, tgt, ":", c.Map("nodegroups"))
	}
	h.Connected, h.Addresses = cl.Present, cl.Addresses
	h.Clones = cl.Clones
	h.Fire = func(ctx context.Context, tag string, data map[string]any) error {
		return ipc.Fire(ctx, localmaster.EventSockets(c, ""), tag, data)
	}
	if err := s.open(h); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// openMinions opens the keys and the data about minions and jobs: in directories, or in a database that masters
// share. It returns the source of minions for a client, or nil for directories.
func (s *saltRun) openMinions(h *runnerHost) (client.Minions, error) {
	h.CacheDir = s.Conf.String("cachedir")
	k, db, closer, err := openKeys(s.Conf, "salt-run")
	if err != nil {
		return nil, err
	}
	h.Keys, h.closers = k, append(h.closers, closer)
	if db != nil {
		h.Cache, h.Jobs = cache.OpenShared(db), db
		return openedMinions(h.Keys, h.Cache), nil
	}
	if err := s.openDirs(h); err != nil {
		h.close()
		return nil, err
	}
	return nil, nil
}

// open opens the other parts of the host.
func (s *saltRun) open(h *runnerHost) (err error) {
	c := s.Conf
	o := fileserver.Options{HashType: c.String("hash_type"), ListCache: listCache(c)}
	if o.Ignore, err = fileserver.NewIgnore(c.Strings("file_ignore_regex"),
		c.Strings("file_ignore_glob")); err != nil {
		return err
	}
	if o.Backends, _, err = fileBackends(c, s.Log, nil); err != nil {
		return err
	}
	if h.Files, err = fileserver.New(o); err != nil {
		return err
	}
	pillars := pillarFiles(c, s.Log)
	h.Pillar, h.PillarTop = pillars.Pillar, pillars.Top
	if ttl, inMemory, err := pillarCache(c); err != nil {
		return err
	} else if ttl > 0 {
		dir := ""
		if !inMemory {
			dir = filepath.Join(h.CacheDir, "pillar_cache")
		}
		if h.KeptPillars, err = pillar.OpenCache(dir, ttl, s.Log); err != nil {
			return err
		}
		h.closers = append(h.closers, h.KeptPillars.Close)
	}
	h.Print = func(line string) { fmt.Fprintln(s.Out, line) }
	h.Progress = s.progress
	newMasterMinion(&h.Host, c, pillars, s.Log)
	return nil
}

// openDirs opens what a master without a shared database stores in directories.
func (s *saltRun) openDirs(h *runnerHost) error {
	var err error
	if h.Cache, err = cache.Open(h.CacheDir); err != nil {
		return err
	}
	h.closers = append(h.closers, h.Cache.Close)
	jobs, err := jobcache.Open(filepath.Join(h.CacheDir, "jobs"), s.Conf.String("hash_type"))
	if err != nil {
		return err
	}
	h.Jobs = jobs
	h.closers = append(h.closers, jobs.Close)
	return nil
}

// run publishes a job through the master and collects its returns.
func (h *runnerHost) run(ctx context.Context, j host.Job) (map[string]host.Answer, error) {
	cmd := client.Command{Fun: j.Fun, Arg: slices.Clone(j.Args), Tgt: j.Tgt, TgtType: j.TgtType,
		Ret: j.Ret, JID: j.JID, Kwargs: j.Extra}
	if len(j.Kwargs) > 0 {
		cmd.Arg = append(cmd.Arg, protocol.Kwargs(j.Kwargs))
	}
	out := map[string]host.Answer{}
	r, err := h.client.Run(ctx, cmd,
		client.RunOptions{Timeout: j.Timeout, Gather: localmaster.Gather(j.Gather)})
	if errors.Is(err, client.ErrNoMatch) {
		fmt.Fprintln(h.out, "No minions matched the target. No command was sent, no jid was "+
			"assigned.")
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for ret := range r.Returns(ctx) {
		switch {
		case ret.Status == client.Returned:
			out[ret.ID] = host.Answer{Value: ret.Value, Ordered: ret.Ordered, Retcode: ret.Code(),
				Out: ret.Out, JID: ret.JID, Data: ret.Data}
		case j.Expect:
			out[ret.ID] = host.Answer{Failed: true}
		}
	}
	return out, r.Err()
}
