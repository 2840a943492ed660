package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// sides are the two programs.
var sides = [2]string{"old", "new"}

// A result is the samples of one command, by side.
type result struct {
	name    string
	samples [2][]sample
}

// A sample is what one run of a command costs.
type sample struct{ cpu, wall time.Duration }

// wholePairs returns the result without the first half of a pair that was interrupted.
func (r result) wholePairs() result {
	n := min(len(r.samples[0]), len(r.samples[1]))
	r.samples[0], r.samples[1] = r.samples[0][:n], r.samples[1][:n]
	return r
}

// measure measures a command. After an error the result has the samples so far. Two runs of each side come first: they
// create keys, files and caches.
func measure(ctx context.Context, c command, dir string, pairs int) (r result, err error) {
	r.name = c.name
	var runs [2]run
	var daemons []*daemon
	for i, side := range sides {
		s := newSite(dir, c.name, side)
		defer s.stop()
		if runs[i], err = c.setUp(ctx, s); err != nil {
			return r, fmt.Errorf("cannot prepare %s with the %s program: %w", c.name, side, err)
		}
		for n := range 2 {
			if _, err := runs[i].once(ctx, n > 0); err != nil {
				return r, fmt.Errorf("cannot run %s with the %s program: %w", c.name, side, err)
			}
		}
		daemons = append(daemons, s.daemons...)
	}
	if err := awaitIdle(ctx, daemons); err != nil {
		return r, fmt.Errorf("cannot measure %s: %w", c.name, err)
	}
	for n := range pairs {
		for _, i := range order(n) {
			s, err := runs[i].once(ctx, true)
			if err != nil {
				return r, fmt.Errorf("cannot measure %s with the %s program: %w",
					c.name, sides[i], err)
			}
			r.samples[i] = append(r.samples[i], s)
		}
	}
	return r, nil
}

// order returns which sides run first and second in a pair.
func order(pair int) [2]int {
	return [2]int{pair % 2, 1 - pair%2}
}

// A run is a command of one side that is ready to be measured.
type run struct {
	args    []string
	home    string
	before  func() error // what comes before each run and is not measured; may be nil
	daemons []*daemon    // whose processor time counts
	want    string       // what the output contains
	times   int          // how often
}

// once runs the command. It is an error if check is set and the output is not what it should be.
func (r run) once(ctx context.Context, check bool) (sample, error) {
	if r.before != nil {
		if err := r.before(); err != nil {
			return sample{}, err
		}
	}
	before, err := r.daemonTime()
	if err != nil {
		return sample{}, err
	}
	cmd := exec.CommandContext(ctx, r.args[0], r.args[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+r.home)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	begin := time.Now()
	err = cmd.Run()
	wall := time.Since(begin)
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w\n%s", r, err, tail(errs.String()+out.String()))
	}
	after, err := r.daemonTime()
	if err != nil {
		return sample{}, err
	}
	if n := strings.Count(out.String(), r.want); check && n != r.times {
		return sample{}, fmt.Errorf("%s printed %q %d times, not %d\n%s", r, r.want, n, r.times,
			tail(errs.String()+out.String()))
	}
	own := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return sample{own + after - before, wall}, nil
}

// String returns the command line.
func (r run) String() string {
	return filepath.Base(r.args[0]) + " " + strings.Join(r.args[1:], " ")
}

func (r run) daemonTime() (time.Duration, error) { return timeOf(r.daemons) }

// timeOf returns the processor time of daemons.
func timeOf(daemons []*daemon) (sum time.Duration, err error) {
	for _, d := range daemons {
		t, err := processorTime(d.cmd.Process.Pid)
		if err != nil {
			return 0, fmt.Errorf("%w\n%s", err, d.said())
		}
		sum += t
	}
	return sum, nil
}

const (
	// idleShare is the share of a processor below which daemons are idle. Those of 1,000 minions use less.
	idleShare = 0.02
	idleTime  = time.Second
	// idlePatience is how long daemons may work after their start.
	idlePatience = 2 * time.Minute
)

// awaitIdle waits until daemons have done what follows their start. A master identifies 1,000 new minions for some
// seconds; that would count for the program that was started last.
func awaitIdle(ctx context.Context, daemons []*daemon) error {
	before, err := timeOf(daemons)
	for end := time.Now().Add(idlePatience); err == nil && len(daemons) > 0; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(idleTime):
		}
		var now time.Duration
		if now, err = timeOf(daemons); err != nil {
			break
		}
		if (now - before).Seconds() < idleShare*idleTime.Seconds() {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the daemons work for more than %s without a command", idlePatience)
		}
		before = now
	}
	return err
}
