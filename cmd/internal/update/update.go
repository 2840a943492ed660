// Package update implements brine-update. It installs new versions of the minion from a repository with signed roles
// (The Update Framework) into one of two slots, and restores the old version if the new one does not sign in.
// docs/update.md describes it for users. It needs no part of the installed minion, so that it can update a minion
// that does not start.
//
//	fetch, verify → fill the free slot → store the trial → switch the link → restart → watch
//	                                                                                    │ signed in, answers a ping: settled
//	                                                                                    └ not within 60 s: link back, restart
//
// Each arrow is a state on the disk, from which [Updater.Finish] can continue. The link always points to a complete
// program.
package update

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/cmd/internal/update/layout"
	"github.com/brine-salt/brine/internal/backoff"
	"github.com/brine-salt/brine/minion/policy"
)

// Updater is one run of brine-update.
type Updater struct {
	*Config
	Platform string
	Now      func() time.Time
	// Health returns the state of the running minion.
	Health func(ctx context.Context) (Health, error)
	// Ping makes the running minion request a test.ping from its master.
	Ping func(ctx context.Context) error
	// Log receives messages for the administrator.
	Log func(format string, args ...any)
	// Step is called at each step at which a power loss must be survived. Tests set it.
	Step func(name string)
}

func (u *Updater) step(name string) {
	if u.Step != nil {
		u.Step(name)
	}
}

// ErrOff means that updates are switched off on this host.
var ErrOff = errors.New("updates are switched off on this host")

// Allowed returns an error if the host's administrator forbids an update. ordered means that a master requested it.
func (u *Updater) Allowed(s *State, ordered bool) error {
	file := filepath.Join(u.Dir, ConfigFile)
	// guard: update TestOffSwitch
	if !u.Enabled {
		return fmt.Errorf("%w: update_enabled is not true in %s", ErrOff, file)
	}
	// guard: update TestOffSwitch
	if s.Disabled {
		return fmt.Errorf("%w: brine-update disable was called; brine-update enable undoes it", ErrOff)
	}
	if !ordered {
		return nil
	}
	seal, err := policy.LoadSeal(filepath.Join(u.Dir, policy.SealFile))
	if err != nil {
		return err
	}
	// guard: update TestSealSwitch
	if seal != nil && !seal.Update {
		return fmt.Errorf("%w for masters: %s does not say update: true", ErrOff, seal.Name)
	}
	return nil
}

// Request describes the requested update.
type Request struct {
	// Version is the version to install, or "" for the channel's newest.
	Version string
	// JID is the job that ordered the update, or "" if the administrator or the timer did.
	JID string
	// Ordered is set if a master requests it.
	Ordered bool
	// Again also tries a version that failed before.
	Again bool
}

// Outcome is the result of a request to update.
type Outcome struct {
	From   string `json:"from"`
	To     string `json:"to,omitempty"`
	Result bool   `json:"result"`
	// Comment describes what was done, or why nothing was done.
	Comment string `json:"comment"`
	staged  bool
}

// Stage looks for an update and writes it to the free slot. It stores a trial for [Updater.Finish].
func (u *Updater) Stage(ctx context.Context, q Request) (Outcome, error) {
	s, err := u.readState()
	if err != nil {
		return Outcome{}, err
	}
	if err := u.Allowed(s, q.Ordered); err != nil {
		return Outcome{}, err
	}
	if s.Trial != nil {
		return Outcome{}, fmt.Errorf("cannot update: the update to %s is not settled yet", s.Trial.To)
	}
	current, err := u.linked()
	if err != nil {
		return Outcome{}, err
	}
	have, err := versionOf(ctx, u.Program)
	if err != nil {
		u.Log("%v", err) // continue: the update may repair a program that does not start
	}
	out := Outcome{From: have, To: have, Result: true}
	if err := u.mayTake(s, &q, have); err != nil {
		return out, err
	}
	// older: this host's version was removed from the channel. failed: it did not sign in. Neither is fetched again.
	older := func(v string) bool { return q.Version == "" && have != "" && CompareVersions(v, have) < 0 }
	failed := func(v string) bool { return v != have && !q.Again && slices.Contains(s.Failed, v) }
	version, p, err := u.fetch(ctx, q.Version, func(v string) bool { return v != have && !older(v) && !failed(v) })
	s.Checked = u.Now().Unix()
	if err != nil {
		s.Result = err.Error()
		return out, errors.Join(err, u.writeState(s))
	}
	s.Latest = version
	if p == nil {
		out.Comment = fmt.Sprintf("version %s is installed already", have)
		if !older(version) && failed(version) {
			out.Comment = fmt.Sprintf("version %s did not sign in when it was tried; brine-update now tries it again", version)
			out.Result = !q.Ordered
		}
		s.Result = out.Comment
		return out, u.writeState(s)
	}
	if err := u.place(ctx, s, q, p, current, have); err != nil {
		s.Result = err.Error()
		return out, errors.Join(err, u.writeState(s))
	}
	out.To, out.staged = version, true
	out.Comment = fmt.Sprintf("version %s is in place; the minion restarts with it", version)
	return out, nil
}

// mayTake applies the pinned version, and refuses a master's request for an older version.
func (u *Updater) mayTake(s *State, q *Request, have string) error {
	switch {
	case q.Version != "" && !layout.ValidVersion(q.Version):
		return fmt.Errorf("cannot update to version %q: it must be like 1.2.3", shorten(q.Version))
	// guard: update TestPin
	case s.Pinned != "" && q.Version != "" && q.Version != s.Pinned:
		return fmt.Errorf("cannot update to version %s: this host is pinned to %s", q.Version, s.Pinned)
	case s.Pinned != "":
		q.Version = s.Pinned
	// guard: update TestDowngrade
	case q.Ordered && q.Version != "" && have != "" && CompareVersions(q.Version, have) < 0:
		return fmt.Errorf("cannot update to version %s: it is older than %s; the owner of the host may pin it", q.Version, have)
	}
	return nil
}

// fetch tries the sources in order, and returns the first result without an error.
func (u *Updater) fetch(ctx context.Context, version string, takes func(string) bool) (string, *Program, error) {
	r := &Repository{Root: u.Root, StateDir: u.StateDir, Channel: u.Channel, Platform: u.Platform,
		Salt: []string{u.Program, "call", "-c", u.Dir}, Download: u.Download, Now: u.Now}
	var errs []error
	for _, source := range u.Sources {
		found, p, err := r.Fetch(ctx, source, version, takes)
		if err == nil {
			return found, p, nil
		}
		errs = append(errs, err)
	}
	return "", nil, errors.Join(errs...)
}

// place fills the free slot and stores the trial.
func (u *Updater) place(ctx context.Context, s *State, q Request, p *Program, current, have string) error {
	if current == "" {
		var err error
		if current, err = u.keep(s, have); err != nil {
			return err
		}
	}
	free := slotNames[0]
	if current == free {
		free = slotNames[1]
	}
	if err := u.fill(s, free, p.Version, p.Data); err != nil {
		return err
	}
	if v, err := versionOf(ctx, u.slotProgram(free)); err != nil || v != p.Version {
		delete(s.Slots, free)
		return errors.Join(fmt.Errorf("cannot use version %s: its program says that it is %q", p.Version, v), err,
			os.Remove(u.slotProgram(free)))
	}
	connected, pinged := u.before(ctx)
	s.Trial = &Trial{Slot: free, Back: current, To: p.Version, From: have, Phase: phaseSwitch, JID: q.JID,
		Connected: connected, Pinged: pinged}
	s.Result = "the update to " + p.Version + " is not settled yet"
	if err := u.writeState(s); err != nil {
		s.Trial = nil
		return err
	}
	u.step("noted")
	return nil
}

// Finish completes an interrupted trial at any phase. It returns an empty outcome if there is no trial.
func (u *Updater) Finish(ctx context.Context) (Outcome, error) {
	s, err := u.readState()
	if err != nil || s.Trial == nil {
		return Outcome{}, err
	}
	t := s.Trial
	if t.Phase == phaseSwitch {
		// guard: update TestOffInBetween
		if off := u.Allowed(s, false); off != nil {
			if slot, err := u.linked(); err == nil && slot != t.Slot {
				s.Trial, s.Result = nil, off.Error()
				return Outcome{}, errors.Join(off, u.writeState(s))
			}
		}
		if err := u.switchTo(ctx, s); err != nil {
			return u.goBack(ctx, s, err)
		}
	}
	if t.Phase == phaseWatch {
		t.Watched++
		if err := u.writeState(s); err != nil {
			return Outcome{}, err
		}
		err := fmt.Errorf("the watch was interrupted %d times", maxWatches)
		if t.Watched <= maxWatches {
			err = u.watch(ctx, t)
		}
		if ctx.Err() != nil {
			return Outcome{}, ctx.Err() // the next run continues
		}
		if err == nil {
			return u.settle(s)
		}
		return u.goBack(ctx, s, err)
	}
	return u.goBack(ctx, s, nil)
}

// switchTo points the link to the new program and restarts the minion.
func (u *Updater) switchTo(ctx context.Context, s *State) error {
	t := s.Trial
	if err := u.link(t.Slot); err != nil {
		return err
	}
	u.step("linked")
	t.Restarted = u.Now().Unix()
	if err := u.restart(ctx); err != nil {
		return err
	}
	u.step("restarted")
	t.Phase = phaseWatch
	if err := u.writeState(s); err != nil {
		return err
	}
	u.step("watching")
	return nil
}

// settle ends a successful trial.
func (u *Updater) settle(s *State) (Outcome, error) {
	t := s.Trial
	s.Trial = nil
	s.Failed = slices.DeleteFunc(s.Failed, func(v string) bool { return v == t.To })
	out := Outcome{From: t.From, To: t.To, Result: true, Comment: fmt.Sprintf("updated from %s to %s", t.From, t.To)}
	s.Result = out.Comment
	u.step("settling")
	if err := u.writeState(s); err != nil {
		return out, err
	}
	u.step("settled")
	u.Log("%s", out.Comment)
	return out, nil
}

// goBack restores the previous program. why is nil if an earlier run stored the reason.
func (u *Updater) goBack(ctx context.Context, s *State, why error) (Outcome, error) {
	t := s.Trial
	if t.Phase != phaseBack {
		t.Phase = phaseBack
		s.Result = fmt.Sprintf("went back from %s to %s: %v", t.To, t.From, why)
		if err := u.writeState(s); err != nil {
			return Outcome{}, err
		}
	}
	u.step("going-back")
	if err := u.link(t.Back); err != nil {
		return Outcome{}, err
	}
	u.step("linked-back")
	if err := u.restart(ctx); err != nil {
		return Outcome{}, err // the next run restarts it again
	}
	u.step("restarted-back")
	s.Trial = nil
	if !slices.Contains(s.Failed, t.To) {
		s.Failed = append(s.Failed, t.To)
		s.Failed = s.Failed[max(0, len(s.Failed)-maxFailed):]
	}
	if err := u.writeState(s); err != nil {
		return Outcome{}, err
	}
	u.step("back")
	u.Log("%s", s.Result)
	return Outcome{From: t.From, To: t.To, Comment: s.Result}, nil
}

// healthPause is the pause between queries of the minion's health.
const healthPause = 250 * time.Millisecond

// pingPause is how long to wait for a master's ping before requesting another.
const pingPause = 3 * time.Second

// before returns the state before a trial: whether the program is signed in, and whether its master pings it on
// request. Stock masters do not. The new program need not pass a check that the old one fails.
func (u *Updater) before(ctx context.Context) (connected, pinged bool) {
	h, _ := u.Health(ctx)
	if !h.Connected {
		return false, false
	}
	since, asked := u.Now().Unix(), time.Time{}
	for until := time.Now().Add(min(2*pingPause, u.Config.Health)); time.Now().Before(until); {
		if time.Since(asked) > pingPause {
			asked = time.Now()
			if err := u.Ping(ctx); err != nil {
				break
			}
		}
		if h, err := u.Health(ctx); err == nil && h.Pinged >= since {
			return true, true
		}
		if !backoff.Sleep(ctx, u.healthPause()) {
			break
		}
	}
	u.Log("the master sends no test.ping when it is asked for one: the new version has to sign in only")
	return true, false
}

func (u *Updater) healthPause() time.Duration { return min(healthPause, u.Config.Health/10) }

// watch returns nil when the new program runs, a master answers it and, if required, it has answered a master's ping.
// It returns an error if that does not happen in time.
func (u *Updater) watch(ctx context.Context, t *Trial) error {
	until := time.Now().Add(u.Config.Health)
	var why error
	var asked time.Time
	for {
		part, stop := context.WithDeadline(ctx, until)
		h, err := u.Health(part)
		stop()
		switch {
		case err != nil:
			why = fmt.Errorf("it does not answer: %w", err)
		case strings.TrimSuffix(h.Exe, " (deleted)") != u.slotProgram(t.Slot):
			why = fmt.Errorf("another program runs: %s", h.Exe)
		case !t.Connected:
			return nil
		case !h.Connected || h.Answered < t.Restarted:
			why = errors.New("it did not sign in to a master")
		// guard: update TestPingMissing
		case t.Pinged && h.Pinged < t.Restarted:
			why = errors.New("it signed in, and did not answer a ping of its master")
			if time.Since(asked) > pingPause {
				asked = time.Now()
				if err := u.Ping(ctx); err != nil {
					why = fmt.Errorf("it cannot ask its master for a ping: %w", err)
				}
			}
		default:
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("after %s %w", u.Config.Health, why)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(u.healthPause()):
		}
	}
}

// restartTime is the time limit for the program that restarts the minion.
const restartTime = 90 * time.Second

func (u *Updater) restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, restartTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, u.Restart[0], u.Restart[1:]...)
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot restart the minion: %w: %s", err, shorten(strings.TrimSpace(string(out))))
	}
	return nil
}

// versionTime is the time limit for a program to print its version.
const versionTime = 20 * time.Second

var printed = regexp.MustCompile(`\bv((?:0|[1-9][0-9]*)\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?)`)

// versionOf runs a program to get its version.
func versionOf(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot ask %s for its version: %w%s", program, err, exitText(err))
	}
	m := printed.FindStringSubmatch(string(out))
	if m == nil {
		return "", fmt.Errorf("cannot find the version of %s in %q", program, shorten(string(out)))
	}
	return m[1], nil
}
