package client

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// BatchOptions configure a batch.
type BatchOptions struct {
	RunOptions
	// Size is how many minions run the job at once: a number, or a percentage of the answering minions ("10%"
	// or "%10").
	Size string
	// Wait is how long a slot stays empty after its minion is done.
	Wait time.Duration
	// Stop, if set, is called after every return and reports whether to end the batch (--failhard).
	Stop func(Return) bool
	// Down is called, before anything runs, with the targeted minions that do not answer; they get no job.
	Down func(ids []string)
	// Started is called with each group of minions that gets the job.
	Started func(ids []string)
}

// SizeError is the error for an invalid batch size.
type SizeError struct{ Size string }

func (e *SizeError) Error() string {
	return fmt.Sprintf("Invalid batch data sent: %s\nData must be in the form of %%10, 10%% or 3",
		e.Size)
}

// BatchSize returns how many of total minions a size stands for, at least one.
func BatchSize(size string, total int) (int, error) {
	text := strings.TrimSpace(size)
	if strings.Contains(text, "%") {
		f, err := strconv.ParseFloat(strings.Trim(text, "%"), 64)
		if err != nil || math.IsNaN(f) || f <= 0 {
			return 0, &SizeError{size}
		}
		n := f / 100 * float64(total)
		return max(1, int(min(n, float64(total)))), nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, &SizeError{size}
	}
	return n, nil
}

// Batch runs a command on the minions that answer a ping, some at a time. It calls each, from one goroutine,
// with the return or loss of every minion. It returns ErrNoMatch if the target matches no minion, and
// ErrNoAnswer if none answers.
func (c *Client) Batch(ctx context.Context, cmd Command, o BatchOptions, each func(Return)) error {
	if _, err := BatchSize(o.Size, 1); err != nil {
		return err
	}
	up, down, err := c.pingTargets(ctx, cmd, o.RunOptions)
	if err != nil {
		return err
	}
	if o.Down != nil && len(down) > 0 {
		o.Down(down)
	}
	if len(up) == 0 {
		return ErrNoAnswer
	}
	size, err := BatchSize(o.Size, len(up))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	b := &batch{c: c, cmd: cmd, o: o, todo: up, size: size, ret: make(chan Return),
		done: make(chan error)}
	err = b.runBatch(ctx, each)
	cancel()
	b.drain()
	return err
}

// pingTargets returns which targeted minions answer a ping.
func (c *Client) pingTargets(ctx context.Context, cmd Command, o RunOptions) (up, down []string,
	err error) {
	r, err := c.Run(ctx,
		Command{Fun: "test.ping", Tgt: cmd.Tgt, TgtType: cmd.TgtType, Kwargs: cmd.Kwargs}, o)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	for ret := range r.Returns(ctx) {
		if ret.Status == Returned {
			up = append(up, ret.ID)
		} else {
			down = append(down, ret.ID)
		}
	}
	slices.Sort(up)
	slices.Sort(down)
	return up, down, r.Err()
}

// batch is a batch in progress.
type batch struct {
	c    *Client
	cmd  Command
	o    BatchOptions
	todo []string
	size int

	ret     chan Return // of running jobs
	done    chan error  // one for each ended job
	jobs    int         // running
	active  int         // minions running the job
	resting []time.Time // when slots become free again
	free    time.Time   // when the first free slot became free; zero if there is none
}

// gatherSlots is how long a free slot of a batch waits for others.
const gatherSlots = 50 * time.Millisecond

func (b *batch) runBatch(ctx context.Context, each func(Return)) error {
	for {
		b.wakeAt(time.Now())
		gathering := b.startNext(ctx, time.Now())
		if b.jobs == 0 && len(b.todo) == 0 {
			return ctx.Err()
		}
		var rested <-chan time.Time
		if len(b.resting) > 0 {
			rested = time.After(time.Until(b.resting[0]))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-rested:
		case <-gathering:
		case r := <-b.ret:
			b.active--
			if b.o.Wait > 0 {
				b.resting = append(b.resting, time.Now().Add(b.o.Wait))
			}
			each(r)
			if b.o.Stop != nil && b.o.Stop(r) {
				return nil
			}
		case err := <-b.done:
			b.jobs--
			if err != nil {
				return err
			}
		}
	}
}

// startNext gives the job to as many minions as there are free slots. It does so at once or, while other
// minions are working, if half of the slots are free or the first has been free for gatherSlots. Each part is a
// job of its own, so a batch of a hundred would otherwise become hundreds of jobs. If it did not start all that
// it may, it returns a channel to wait for.
func (b *batch) startNext(ctx context.Context, now time.Time) (gathering <-chan time.Time) {
	n := min(b.size-b.active-len(b.resting), len(b.todo))
	if n <= 0 {
		b.free = time.Time{}
		return nil
	}
	if b.free.IsZero() {
		b.free = now
	}
	few := b.active > 0 && n < min(b.size/2, len(b.todo))
	if wait := b.free.Add(gatherSlots).Sub(now); few && wait > 0 {
		return time.After(wait)
	}
	b.free = time.Time{}
	ids := b.todo[:n]
	b.todo = b.todo[n:]
	b.startJob(ctx, ids)
	return nil
}

// wakeAt frees the slots whose pause is over.
func (b *batch) wakeAt(now time.Time) {
	for len(b.resting) > 0 && !b.resting[0].After(now) {
		b.resting = b.resting[1:]
	}
}

// startJob gives the job to some minions.
func (b *batch) startJob(ctx context.Context, ids []string) {
	b.jobs++
	b.active += len(ids)
	if b.o.Started != nil {
		b.o.Started(ids)
	}
	cmd := b.cmd
	cmd.Tgt, cmd.TgtType = ids, "list"
	go func() { b.done <- b.followJob(ctx, cmd, ids) }()
}

// followJob runs the command on one group and passes on exactly one return for each of its minions.
func (b *batch) followJob(ctx context.Context, cmd Command, ids []string) error {
	r, err := b.c.Run(ctx, cmd, b.o.RunOptions)
	if err != nil {
		return err
	}
	defer r.Close()
	left := make(map[string]bool, len(ids))
	for _, id := range ids {
		left[id] = true
	}
	pass := func(ret Return) {
		if !left[ret.ID] {
			return // a minion outside of the group
		}
		delete(left, ret.ID)
		select {
		case b.ret <- ret:
		case <-ctx.Done():
		}
	}
	for ret := range r.Returns(ctx) {
		pass(ret)
	}
	if r.Err() == nil {
		for _, id := range ids {
			pass(Return{ID: id, JID: r.JID, Status: NoResponse})
		}
	}
	return r.Err()
}

// drain waits for jobs that are still running when the batch ends.
func (b *batch) drain() {
	for b.jobs > 0 {
		select {
		case <-b.ret:
		case <-b.done:
			b.jobs--
		}
	}
}
