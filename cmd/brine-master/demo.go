package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/brine-salt/brine/internal/output"
	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/internal/saltlog"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol/events"
)

// demoTimeout ends a demonstration that hangs.
const demoTimeout = 3 * time.Minute

// demoIDs returns the ids of the demonstration's minions.
func demoIDs() []string { return []string{"web1", "web2", "db1"} }

// demo is a master and three minions in this process, on loopback, with their files in a temporary directory.
type demo struct {
	*saltcli.Console
	dir    string
	log    *slog.Logger
	master *master.Master
	seen   *events.Subscription // all events, for the listing at the end
	news   *events.Subscription // all events, for functions that wait for one
	wg     sync.WaitGroup
	failed chan error // errors of the master and the minions
}

func demoParser(c *saltcli.Console) *optparse.Parser {
	return &optparse.Parser{
		Prog: "brine-master demo", Usage: "%prog [options]", Width: c.Width(),
		Description: "Starts a master and three minions on loopback, in a temporary directory, " +
			"and shows them at work.",
		Options: []optparse.Option{
			{Names: []string{"--stay"}, Kind: optparse.True,
				Help: "Keep running afterwards, until Ctrl-c, for commands from another terminal."},
			{Names: []string{"-l", "--log-level"}, Default: "",
				Help: "Show the log of master and minions at this level. Without this option the " +
					"log is shown only if something fails."},
			{Names: []string{"-h", "--help"}, Kind: optparse.True,
				Help: "show this help message and exit"},
		},
	}
}

// runDemo runs the demonstration and returns its exit code.
func runDemo(ctx context.Context, c *saltcli.Console, args []string) int {
	parser := demoParser(c)
	v, err := parser.Parse(args)
	if err != nil {
		fmt.Fprint(c.Err, parser.ErrorText(err.Error()))
		return saltcli.ExitUsage
	}
	if v.Bool("help") {
		fmt.Fprint(c.Out, parser.Help())
		return 0
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := showMinions(ctx, c, v.String("log_level"), v.Bool("stay")); err != nil &&
		ctx.Err() == nil {
		fmt.Fprintf(c.Err, "The demonstration failed: %v\n", err)
		return saltcli.ExitGeneric
	}
	return 0
}

// showMinions runs the demonstration and removes its files.
func showMinions(ctx context.Context, c *saltcli.Console, level string, stay bool) (err error) {
	kept := &bytes.Buffer{} // saltlog writes one line at a time
	o := saltlog.Options{Console: c.Err, ConsoleLevel: level, Name: "demo"}
	if level == "" {
		o.Console, o.ConsoleLevel = kept, "warning"
	}
	logger, err := saltlog.New(o)
	if err != nil {
		return err
	}
	defer logger.Close()
	defer func() {
		if err != nil && ctx.Err() == nil {
			_, _ = kept.WriteTo(c.Err)
		}
	}()
	parent := "" // the system's default; on macOS it is too long for sockets
	if runtime.GOOS == "darwin" {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "brine-demo-")
	if err != nil {
		return fmt.Errorf("cannot create a directory for the demonstration: %w", err)
	}
	d := &demo{Console: c, dir: dir, log: logger.Logger(),
		failed: make(chan error, len(demoIDs())+1)}
	run, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		d.wg.Wait()
		if e := os.RemoveAll(dir); err == nil && e != nil {
			err = fmt.Errorf("cannot clean up: %w", e)
		}
	}()
	shown, stop := context.WithTimeoutCause(run, demoTimeout, errors.New("it took too long"))
	defer stop()
	if err := d.start(run); err != nil {
		return err
	}
	defer d.seen.Close()
	defer d.news.Close()
	if err := d.show(shown); err != nil {
		if ctx.Err() == nil && context.Cause(shown) != nil {
			err = context.Cause(shown)
		}
		return err
	}
	if !stay {
		d.whatNext()
		return nil
	}
	d.inviteUser()
	select {
	case <-ctx.Done():
		return nil
	case err := <-d.failed:
		return err
	}
}

// start starts the master and the minions.
func (d *demo) start(ctx context.Context) error {
	if err := d.startMaster(ctx); err != nil {
		return err
	}
	for _, id := range demoIDs() {
		if err := d.startMinion(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// startMaster embeds a master as any program can. It also opens the sockets of the command-line tools.
func (d *demo) startMaster(ctx context.Context) error {
	files, pillar := filepath.Join(d.dir, "srv"), filepath.Join(d.dir, "pillar")
	if err := writeTrees(files, pillar); err != nil {
		return err
	}
	name, _ := userName()
	m, err := master.New(master.Options{
		ID: "demo_master", Network: master.NetworkOptions{Interface: "127.0.0.1",
			PublishPort: master.AnyPort,
			RetPort:     master.AnyPort},
		PKIDir: filepath.Join(d.dir, "pki"), CacheDir: filepath.Join(d.dir, "cache"),
		Files:  master.FileOptions{Roots: map[string][]string{"base": {files}}, Recv: true},
		Pillar: master.PillarOptions{Roots: map[string][]string{"base": {pillar}}},
		Local:  &master.Local{SockDir: filepath.Join(d.dir, "run"), User: name},
		Log:    d.log,
	})
	if err != nil {
		return err
	}
	d.master = m
	d.seen = m.Events().Subscribe(events.SubscribeOptions{})
	d.news = m.Events().Subscribe(events.SubscribeOptions{})
	d.wg.Go(func() {
		if err := m.Serve(ctx); err != nil {
			d.failed <- fmt.Errorf("the master ended: %w", err)
		}
	})
	if err := m.AwaitReady(ctx); err != nil {
		return err
	}
	// The configuration file for the command-line tools is the same as a stand-alone master's.
	return writeConfig(filepath.Join(d.dir, "master"), [][2]string{
		{"interface", "127.0.0.1"}, {"publish_port", portOf(m.PublishAddr())},
		{"ret_port", portOf(m.RequestAddr())}, {"user", name},
		{"root_dir", d.dir}, {"pki_dir", filepath.Join(d.dir, "pki")},
		{"cachedir", filepath.Join(d.dir, "cache")},
		{"sock_dir", filepath.Join(d.dir, "run")}, {"log_file", filepath.Join(d.dir, "log")},
		{"key_logfile", filepath.Join(d.dir, "log")},
	})
}

// show runs the commands of the demonstration.
func (d *demo) show(ctx context.Context) error {
	fmt.Fprintf(d.Out, "A master and %d minions are starting on 127.0.0.1; their files are in %s.\n", len(demoIDs()), d.dir)
	if err := d.awaitEvent(ctx, "salt/auth", func(e events.Event) string {
		if e.Tag == "salt/auth" && e.Data["act"] == "pend" {
			return e.Text("id")
		}
		return ""
	}); err != nil {
		return err
	}
	target := filepath.Join(d.dir, "hello.txt")
	pushed := filepath.Join(d.dir, "cache", "minions", "web1", "files",
		strings.TrimPrefix(target, filepath.VolumeName(target)))
	steps := []func() error{
		func() error { return d.run(ctx, "Each minion has asked to be let in.", "salt-key", "-L") },
		func() error { return d.run(ctx, "Accept their keys.", "salt-key", "-A", "-y") },
		func() error {
			return d.awaitEvent(ctx, "salt/minion/*/start", func(e events.Event) string {
				return strings.TrimSuffix(strings.TrimPrefix(e.Tag, "salt/minion/"), "/start")
			})
		},
		func() error { return d.run(ctx, "Who is there?", "salt", "*", "test.ping") },
		func() error {
			return d.run(ctx, "What are they?", "salt", "*", "grains.item", "os",
				"kernel")
		},
		func() error {
			return d.run(ctx, "Run a command on some of them.", "salt", "web*", "cmd.run",
				"echo one && echo two")
		},
		func() error {
			return d.run(ctx, "Send a file to a minion …", "salt", "web1", "cp.get_file",
				"salt://hello.txt", target)
		},
		func() error { return d.run(ctx, "… and get it back.", "salt", "web1", "cp.push", target) },
		func() error { return d.cat(pushed) },
		func() error {
			return d.run(ctx, "Apply states: a directory, a page from a template, and what "+
				"follows when the page has changed.", "salt", "web1", "state.apply", "site")
		},
		func() error {
			return d.run(ctx, "The same for all. What is right already stays as it is.", "salt",
				"*", "state.apply", "site", "--state-output=terse")
		},
		func() error { return d.events(ctx) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// run prints a command, runs it and prints its output. It runs the real program with the demonstration's
// configuration.
func (d *demo) run(ctx context.Context, why, program string, args ...string) error {
	fmt.Fprintf(d.Out, "\n%s\n$ %s\n", why, shellLine(program, args))
	args = append([]string{"-c", d.dir}, args...)
	code := 0
	if program == "salt" {
		code = runSalt(ctx, d.Console, args)
	} else {
		code = runKey(ctx, d.Console, args)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if code != 0 {
		return fmt.Errorf("%s ended with exit code %d", shellLine(program, args), code)
	}
	return nil
}

// shellLine returns a command line. It quotes words that contain special characters of shells.
func shellLine(program string, args []string) string {
	line := []string{program}
	for _, a := range args {
		if strings.ContainsAny(a, " *?[]$&|;<>(){}'\"\\") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		line = append(line, a)
	}
	return strings.Join(line, " ")
}

func (d *demo) cat(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("the pushed file did not arrive: %w", err)
	}
	fmt.Fprintf(d.Out, "$ cat %s\n%s", path, b)
	return nil
}

// awaitEvent waits until an event has named each minion. It reads the events from the beginning, since a minion may
// be faster than the previous step.
func (d *demo) awaitEvent(ctx context.Context, what string, id func(events.Event) string) error {
	missing := map[string]bool{}
	for _, id := range demoIDs() {
		missing[id] = true
	}
	for len(missing) > 0 {
		select {
		case err := <-d.failed:
			return err
		default:
		}
		e, err := d.news.Next(ctx)
		if err != nil {
			return fmt.Errorf("the minions are late: waited for %s of %v: %w", what,
				slices.Sorted(maps.Keys(missing)), err)
		}
		delete(missing, id(e))
	}
	return nil
}

// events prints one event of each kind so far, in the form of salt-run state.event.
func (d *demo) events(ctx context.Context) error {
	fmt.Fprintln(d.Out, "\nThe master's event bus had all of this. One event of each kind:")
	one, shown := -1, map[string]bool{}
	plain := []string{"0", "", "1", "", "2", "", "3", "", "4", "", "5", "", "6", "", "7", "", "8", "", "9", ""}
	for _, id := range demoIDs() {
		plain = append(plain, id, "")
	}
	kindOf := strings.NewReplacer(plain...)
	soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	for e := range d.seen.All(soon) {
		kind := kindOf.Replace(e.Tag)
		if shown[kind] {
			continue
		}
		shown[kind] = true
		data := maps.Clone(e.Data)
		delete(data, "_stamp") // every event has this long field
		delete(data, "pub")
		text, err := output.Render("json", data, output.Options{Indent: &one})
		if err != nil {
			return err
		}
		fmt.Fprintf(d.Out, "%s\t%s\n", e.Tag, shorten(text, max(d.Width()-len(e.Tag)-8, 40)))
	}
	return ctx.Err()
}

// shorten cuts a text that is longer than n characters.
func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// whatNext prints suggestions for a new user.
func (d *demo) whatNext() {
	fmt.Fprint(d.Out, `
What next:
    brine-master demo --stay   the same, and it stays for commands of your own
    docs/quickstart.md         your first own master and minion, a module, an embedded master
    brine-minion check         on a host that runs Salt: what would not work there
`)
}

// inviteUser prints commands to try from another terminal.
func (d *demo) inviteUser() {
	self, err := os.Executable()
	// the temporary program of go run
	if err != nil || slices.Contains(strings.Split(filepath.ToSlash(self), "/"), "exe") {
		self = "go run ./cmd/brine-master"
	}
	fmt.Fprintf(d.Out, "\nStill running, until Ctrl-c. From another terminal:\n\n    %s salt -c "+
		"%s '*' test.ping\n\nor, with stock Salt installed:\n\n"+
		"    salt -c %s '*' test.ping\n", self, d.dir, d.dir)
}
