package update

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/brine-salt/brine/cmd/internal/update/layout"
	"github.com/brine-salt/brine/internal/backoff"
	"github.com/brine-salt/brine/internal/daemon"
	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/internal/version"
)

// Exit codes of the program.
const (
	exitDone    = 0
	exitFailed  = 1 // no update, or the old version was restored
	exitRefused = 2 // the administrator's settings do not allow it
)

const description = "Updates the minion of this host from a repository of signed versions. " +
	"Commands: status (what is installed, and what is allowed), now (look for a version and install it), " +
	"pin VERSION (install this version only), unpin, disable, enable, and run (what the timer calls)."

func parser(c *saltcli.Console) *optparse.Parser {
	return &optparse.Parser{Prog: "brine-update", Usage: "%prog [options] COMMAND", Width: c.Width(),
		Description: description, Options: append(saltcli.ConfigOptions(c.ConfigDir()),
			optparse.Option{Names: []string{"-h", "--help"}, Kind: optparse.True, Help: "Show this help."},
			optparse.Option{Names: []string{"--version"}, Kind: optparse.True, Help: "Show the version of this program."},
			optparse.Option{Names: []string{"--to"}, Dest: "to", Metavar: "VERSION",
				Help: "With now: the version to install, in place of the newest one of the channel."},
			optparse.Option{Names: []string{"--json"}, Kind: optparse.True, Help: "Print JSON."},
			optparse.Option{Names: []string{"--jid"}, Dest: "jid", Metavar: "JID",
				Help: "With order, which the minion calls: the job. The minion is restarted when it has returned."})}
}

// Main runs brine-update and returns the exit code. args do not include the program's name.
func Main(ctx context.Context, args []string, c *saltcli.Console) int {
	p := parser(c)
	v, err := p.Parse(args)
	command := ""
	switch {
	case err != nil:
	case v.Bool("help"):
		fmt.Fprint(c.Out, p.Help())
		return exitDone
	case v.Bool("version"):
		fmt.Fprintln(c.Out, "brine-update", version.Brine())
		return exitDone
	default:
		command, err = checkCommand(v.Args)
	}
	if err != nil {
		fmt.Fprint(c.Err, p.ErrorText(err.Error()))
		return saltcli.ExitUsage
	}
	dir, _ := saltcli.ConfigDir(v, c.Place())
	conf, err := LoadConfig(dir)
	if err != nil {
		fmt.Fprintln(c.Err, err)
		return exitFailed
	}
	u := newUpdater(conf, c)
	switch command {
	case "status":
		return u.status(ctx, c, v.Bool("json"))
	case "order":
		return u.order(ctx, c, v.String("to"), v.String("jid"))
	case "finish":
		u.waitForJob(ctx, c.Env)
		return u.report(c, false)(u.Run(ctx, Request{}))
	case "now", "run":
		return u.report(c, v.Bool("json"))(u.Run(ctx, Request{Version: v.String("to"), Again: command == "now"}))
	}
	return u.change(c, command, v.Args[1:])
}

// checkCommand returns the command in the arguments, or an error.
func checkCommand(args []string) (string, error) {
	if len(args) == 0 {
		return "", errors.New("a command is missing: status, now, pin, unpin, disable, enable or run")
	}
	words := 1
	switch args[0] {
	case "pin":
		words = 2
	case "status", "now", "unpin", "disable", "enable", "run", "order", "finish":
	default:
		return "", fmt.Errorf("unknown command %s", args[0])
	}
	if len(args) != words {
		return "", fmt.Errorf("%s takes %d arguments", args[0], words-1)
	}
	if args[0] == "pin" && !layout.ValidVersion(strings.TrimPrefix(args[1], "v")) {
		return "", fmt.Errorf("a version must be like 1.2.3, not %q", shorten(args[1]))
	}
	return args[0], nil
}

func newUpdater(conf *Config, c *saltcli.Console) *Updater {
	u := &Updater{Config: conf, Platform: runtime.GOOS + "-" + runtime.GOARCH, Now: time.Now}
	minion := running{conf.Dir, c.Env}
	u.Health, u.Ping = minion.health, minion.askPing
	u.Log = func(format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		fmt.Fprintln(c.Err, line)
		u.logLine(line)
	}
	return u
}

// logLine appends a line to the log in the state directory. The log keeps at least the last maxLog bytes.
func (u *Updater) logLine(line string) {
	path := u.path(logFile)
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		_ = os.Rename(path, path+".1")
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return // it was printed, too
	}
	defer f.Close()
	fmt.Fprintln(f, u.Now().UTC().Format(time.RFC3339), line)
}

// report returns a function that prints the outcome of a run and returns the exit code.
func (u *Updater) report(c *saltcli.Console, asJSON bool) func(Outcome, error) int {
	return func(out Outcome, err error) int {
		if err != nil {
			out.Comment, out.Result = err.Error(), false
			u.Log("%v", err)
		}
		if asJSON {
			_ = json.NewEncoder(c.Out).Encode(out)
		} else if err == nil {
			fmt.Fprintln(c.Out, out.Comment)
		}
		switch {
		case errors.Is(err, ErrOff):
			return exitRefused
		case err != nil || !out.Result:
			return exitFailed
		}
		return exitDone
	}
}

// order runs an update for the minion's functions. It stages the update, prints the result, and starts a separate
// process for the rest, which waits until the job has returned.
func (u *Updater) order(ctx context.Context, c *saltcli.Console, version, jid string) int {
	release, err := u.lock()
	if err != nil {
		return u.report(c, true)(Outcome{}, err)
	}
	out, err := u.Stage(ctx, Request{Version: version, JID: jid, Ordered: true})
	release()
	if err == nil && out.staged {
		var self string
		if self, err = os.Executable(); err == nil {
			err = daemon.Detach(self, []string{"brine-update", "-c", u.Dir, "finish"}, os.Environ())
		}
	}
	return u.report(c, true)(out, err)
}

// Time limits of the process that finishes an order: for the job that ordered it, and for the job's return.
const (
	jobTime    = time.Minute
	returnTime = 10 * time.Second
	jobPause   = 100 * time.Millisecond
)

// waitForJob waits until the job of a trial has ended and a master has accepted its return, or a time limit is
// reached. A return in the spool is delivered after the restart.
func (u *Updater) waitForJob(ctx context.Context, env func(string) string) {
	s, err := u.readState()
	if err != nil || s.Trial == nil || s.Trial.JID == "" {
		return
	}
	c, err := loadMinion(u.Dir, env)
	if err != nil {
		u.Log("%v", err)
		return
	}
	cache := c.String("cachedir")
	wait := func(most time.Duration, gone func() bool) {
		until := time.Now().Add(most)
		for !gone() && time.Now().Before(until) && backoff.Sleep(ctx, jobPause) {
		}
	}
	wait(jobTime, func() bool {
		_, err := os.Stat(filepath.Join(cache, "proc", filepath.Base(s.Trial.JID)))
		return err != nil
	})
	wait(returnTime, func() bool {
		left, err := filepath.Glob(filepath.Join(cache, "return_spool", "*"))
		return err != nil || len(left) == 0
	})
}

// change runs a command that only changes the stored state.
func (u *Updater) change(c *saltcli.Console, command string, args []string) int {
	say := ""
	err := u.set(func(s *State) {
		switch command {
		case "pin":
			s.Pinned, say = strings.TrimPrefix(args[0], "v"), "pinned to "+strings.TrimPrefix(args[0], "v")
		case "unpin":
			s.Pinned, say = "", "not pinned"
		case "disable":
			s.Disabled, say = true, "updates are off"
		case "enable":
			s.Disabled, say = false, "updates are not disabled here"
			if !u.Enabled {
				say += ", but update_enabled is not true in " + filepath.Join(u.Dir, ConfigFile)
			}
		}
	})
	if err == nil {
		fmt.Fprintln(c.Out, say)
		u.logLine(say)
		return exitDone
	}
	fmt.Fprintln(c.Err, err)
	return exitFailed
}

// Status is the output of "brine-update status".
type Status struct {
	Enabled   bool              `json:"enabled"`
	Why       string            `json:"why,omitempty"` // why it is not enabled
	Version   string            `json:"version"`
	Slot      string            `json:"slot,omitempty"`
	Slots     map[string]string `json:"slots"`
	Channel   string            `json:"channel"`
	Sources   []string          `json:"sources"`
	Pinned    string            `json:"pinned,omitempty"`
	Trial     *Trial            `json:"trial,omitempty"`
	Failed    []string          `json:"failed,omitempty"`
	Latest    string            `json:"latest,omitempty"`
	Checked   int64             `json:"checked,omitempty"`
	Result    string            `json:"result,omitempty"`
	Connected bool              `json:"connected"`
	// Running is the path of the running daemon's program, or "" if no daemon answers.
	Running string `json:"running,omitempty"`
}

func (u *Updater) status(ctx context.Context, c *saltcli.Console, asJSON bool) int {
	st, err := u.readStatus(ctx)
	if err != nil {
		fmt.Fprintln(c.Err, err)
		return exitFailed
	}
	if asJSON {
		_ = json.NewEncoder(c.Out).Encode(st)
		return exitDone
	}
	st.print(c.Out)
	return exitDone
}

func (u *Updater) readStatus(ctx context.Context) (Status, error) {
	s, err := u.readState()
	if err != nil {
		return Status{}, err
	}
	st := Status{Enabled: true, Slots: s.Slots, Channel: u.Channel, Sources: u.Sources, Pinned: s.Pinned, Trial: s.Trial,
		Failed: s.Failed, Latest: s.Latest, Checked: s.Checked, Result: s.Result}
	if err := u.Allowed(s, false); err != nil {
		st.Enabled, st.Why = false, err.Error()
	}
	if st.Slot, err = u.linked(); err != nil {
		return st, err
	}
	if st.Version, err = versionOf(ctx, u.Program); err != nil {
		st.Result = strings.TrimPrefix(st.Result+"; "+err.Error(), "; ")
	}
	if h, err := u.Health(ctx); err == nil {
		st.Connected, st.Running = h.Connected, h.Exe
	}
	return st, nil
}

func (st Status) print(w io.Writer) {
	line := func(title, text string) {
		if text != "" {
			fmt.Fprintf(w, "%-10s %s\n", title+":", text)
		}
	}
	state := "on"
	if !st.Enabled {
		state = "off: " + st.Why
	}
	line("Updates", state)
	line("Version", st.Version)
	line("Slot", st.Slot)
	line("Channel", st.Channel)
	line("Source", strings.Join(st.Sources, " "))
	line("Pinned", st.Pinned)
	if st.Trial != nil {
		line("Trial", fmt.Sprintf("from %s to %s, phase %s", st.Trial.From, st.Trial.To, st.Trial.Phase))
	}
	line("Failed", strings.Join(st.Failed, " "))
	if st.Checked > 0 {
		line("Checked", time.Unix(st.Checked, 0).Format(time.RFC3339))
	}
	line("Latest", st.Latest)
	line("Result", st.Result)
	line("Running", st.Running)
	line("Signed in", map[bool]string{true: "yes", false: "no"}[st.Connected])
}
