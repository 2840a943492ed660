package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
)

// Status is how a minion's part of a job ended.
type Status int

// The ways.
const (
	Returned     Status = iota // there is a result
	NoResponse                 // neither a result nor a sign of the job running
	NotConnected               // the same, and the minion has no connection to the master
)

// Return is one minion's part of a job.
type Return struct {
	ID     string
	Status Status
	// Unknown is set with a lost minion when the master has no key of it: a list named it.
	Unknown bool
	JID     string
	// Value is what the function returned, Ordered the same with its maps as payload.OrderedMap.
	Value, Ordered any
	// Out is the outputter that the minion asks for; Retcode is a number, or a map or list for several functions.
	// HasRetcode is false for returns without one.
	Out        string
	Retcode    any
	HasRetcode bool
	// Data is the whole return as it travelled.
	Data map[string]any
}

// Code is the return code; the highest one of several functions.
func (r Return) Code() int {
	var codes []any
	switch v := r.Retcode.(type) {
	case map[string]any:
		for _, x := range v {
			codes = append(codes, x)
		}
	case []any:
		codes = v
	default:
		codes = []any{v}
	}
	highest := 0
	for i, x := range codes {
		n, ok := payload.Int(x)
		if b, is := x.(bool); is && b {
			n, ok = 1, true
		}
		if ok && (i == 0 || int(n) > highest) {
			highest = int(n)
		}
	}
	return highest
}

// RunOptions say how long to wait.
type RunOptions struct {
	// Timeout is how long a minion may keep silent: until it returns, or until it last said that the job is running.
	Timeout time.Duration
	// Gather is how long to wait, after Timeout, for answers to the question whether the job is running; as
	// gather_job_timeout in stock Salt, where it is 10 s. 0 asks early enough to be done a second after Timeout; only
	// minions that are connected are then waited for as long as stock does: they, or the machine, may be slow.
	Gather time.Duration
	// Again is how long to wait between two such questions while the job runs; 0 means the larger of Timeout and 10 s.
	Again time.Duration
	// OnState is told of each state that ended, where the job's minions say so (state_events); may be nil. Returns
	// calls it.
	OnState func(StateDone)
}

// StateDone is a state that ended on a minion: the Number-th of Total. Fun, such as "pkg.installed", is "" for stock
// minions.
type StateDone struct {
	ID            string
	Number, Total int
	Fun, Name     string
	// Ended is how many of the Targeted minions have returned.
	Ended, Targeted int
}

// answerGrace is how long after the timeout answers may come in when no Gather is given.
const answerGrace = 800 * time.Millisecond

// stockGather is how long connected minions have for an answer when no Gather is given. A stock minion starts a process
// for it, which takes seconds on a busy machine.
const stockGather = 10 * time.Second

// silentProbes is how many probes in a row a connected minion may leave without an answer that has said before that it
// works: a stock minion on a busy machine may need longer than stockGather to start the process that answers.
const silentProbes = 1

// Run is a published job whose returns are awaited. Close it.
type Run struct {
	Published
	c *Client
	w *watch
	o RunOptions

	expected map[string]*expectation
	seen     map[string]bool // ids that were reported
	missing  map[string]bool
	probe    *probe
	unheard  int         // probes in a row that were repeated
	next     time.Time   // of the next probe
	looks    []time.Time // at the job cache before the first probe
	rereads  []time.Time // of the store, because events were missed
	creds    map[string]any
	err      error
	wg       sync.WaitGroup
}

// expectation is what is known of a minion that has not returned.
type expectation struct {
	answered bool      // the last probe, whatever it said
	until    time.Time // silence is forgiven until then
	running  bool      // it said so to the last probe
	worked   bool      // it said so to an earlier probe
	silent   int       // probes in a row without an answer since then
}

// probe is one question whether the job is running.
type probe struct {
	prolonged bool   // it was asked already who is connected
	jid       string // "" until it is published
	start     time.Time
	end       time.Time // of the wait for answers
	gap       bool      // events were missed meanwhile
	result    chan Published
}

// maxUnheard is how many probes in a row may be repeated because events were missed meanwhile.
const maxUnheard = 3

// Run publishes a job and awaits its returns. The caller ranges over Returns, then closes the run.
func (c *Client) Run(ctx context.Context, cmd Command, o RunOptions) (*Run, error) {
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.Again <= 0 {
		o.Again = max(o.Timeout, 10*time.Second)
	}
	w, err := c.bus.watchEvents(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	w.holdEvents()
	p, err := c.Publish(ctx, cmd)
	w.bindJob(p.JID)
	if err != nil {
		w.close()
		return nil, err
	}
	r := &Run{Published: p, c: c, w: w, o: o, expected: make(map[string]*expectation),
		seen:    make(map[string]bool),
		missing: make(map[string]bool), creds: takeCredentials(cmd.Kwargs)}
	now := time.Now()
	r.expectMinions(p.Minions, now)
	for _, id := range p.Missing {
		r.missing[id] = true
	}
	// A minion may answer before the master has noticed that this client listens; the job cache knows.
	for d := 50 * time.Millisecond; d < o.Timeout/2; d *= 3 {
		r.looks = append(r.looks, now.Add(d))
	}
	r.next = now.Add(o.Timeout / 2)
	if o.Gather > 0 {
		r.next = now.Add(o.Timeout)
	}
	return r, nil
}

// Close stops waiting. A range over Returns must have ended.
func (r *Run) Close() {
	r.wg.Wait()
	r.w.close()
}

// Err is why Returns ended early: the context's error, or ErrAuthorization when the master withdrew the job.
func (r *Run) Err() error { return r.err }

// Outstanding lists the minions that have not been reported yet.
func (r *Run) Outstanding() []string {
	var ids []string
	for id := range r.expected {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (r *Run) expectMinions(ids []string, now time.Time) {
	for _, id := range ids {
		if !r.seen[id] && r.expected[id] == nil {
			r.expected[id] = &expectation{until: now.Add(r.o.Timeout)}
		}
	}
}

// Returns yields every targeted minion exactly once: when its return arrives, or when it is given up. It ends when all
// are reported, or with ctx.
func (r *Run) Returns(ctx context.Context) iter.Seq[Return] {
	return func(yield func(Return) bool) {
		probing, stop := context.WithCancel(ctx)
		defer stop()
		for {
			for _, e := range r.w.takeEvents() {
				ret, ok := r.handleEvent(e)
				if r.err != nil || ok && !yield(ret) {
					return
				}
			}
			if len(r.expected) == 0 {
				break
			}
			now := time.Now()
			steps := r.readStored(ctx, now)
			steps = append(steps, r.stepAt(probing, now)...)
			if r.err = ctx.Err(); r.err != nil {
				return
			}
			for _, ret := range steps {
				if !yield(ret) {
					return
				}
			}
			if len(r.expected) == 0 {
				break
			}
			if r.err = r.wait(ctx); r.err != nil {
				return
			}
		}
		for _, id := range sortedKeys(r.missing) {
			if !r.seen[id] && !yield(r.lostReturn(ctx, id)) {
				return
			}
		}
	}
}

func sortedKeys(set map[string]bool) []string {
	var ids []string
	for id := range set {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// wait sleeps until something may be done.
func (r *Run) wait(ctx context.Context) error {
	until := r.next
	var published chan Published
	if p := r.probe; p != nil {
		until, published = p.end, p.result
	}
	for _, times := range [][]time.Time{r.looks, r.rereads} {
		if len(times) > 0 && times[0].Before(until) {
			until = times[0]
		}
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.w.ready:
	case p := <-published:
		r.probe.result = nil
		r.probe.jid = p.JID
		r.w.bindJob(p.JID)
		// Only now the minions have the question.
		if r.o.Gather > 0 {
			r.probe.end = time.Now().Add(r.o.Gather)
		}
	case <-timer.C:
	}
	return nil
}

// handleEvent takes one event in and reports whether it is a return to report.
func (r *Run) handleEvent(e events.Event) (Return, bool) {
	jid := tagPart(e.Tag, -1)
	if r.probe != nil && jid == r.probe.jid {
		r.probeAnswer(e)
		return Return{}, false
	}
	if jid != r.JID {
		return Return{}, false
	}
	now := time.Now()
	if ids, ok := e.Data["minions"]; ok {
		r.expectMinions(fields.Texts(ids), now)
		for _, id := range fields.Texts(e.Data["missing"]) {
			r.missing[id] = true
		}
		return Return{}, false
	}
	switch tagPart(e.Tag, 0) {
	case "error":
		r.err = ErrAuthorization
	case "prog":
		r.reportProgress(e)
	case "ret":
		id, ok := payload.Text(e.Data["id"])
		if _, has := e.Data["return"]; ok && has && !r.seen[id] {
			return r.returnOf(id, e.Ordered()), true
		}
	}
	return Return{}, false
}

// reportProgress takes the event of a state that ended.
func (r *Run) reportProgress(e events.Event) {
	data, ok := payload.Map(e.Data["data"])
	if !ok {
		data = e.Data
	}
	ret, ok := payload.Map(data["ret"])
	if r.o.OnState == nil || !ok {
		return
	}
	number, _ := payload.Int(ret["__run_num__"])
	total, _ := payload.Int(data["len"])
	id := tagPart(e.Tag, 1) // with the number of the event
	if i := strings.LastIndexByte(id, '/'); i >= 0 {
		id = id[:i]
	}
	s := StateDone{ID: id, Number: int(number) + 1, Total: int(total), Ended: len(r.seen),
		Targeted: len(r.seen) + len(r.expected)}
	s.Fun, _ = payload.Text(data["fun"])
	s.Name, _ = payload.Text(ret["name"])
	r.o.OnState(s)
}

func (r *Run) returnOf(id string, data map[string]any) Return {
	r.seen[id] = true
	delete(r.expected, id)
	plain := payload.PlainMap(data)
	ret := Return{ID: id, JID: r.JID, Value: plain["return"], Ordered: data["return"], Data: plain}
	ret.Out, _ = payload.Text(data["out"])
	ret.Retcode, ret.HasRetcode = data["retcode"]
	return ret
}

// lostReturn gives a minion up.
func (r *Run) lostReturn(ctx context.Context, id string) Return {
	r.seen[id] = true
	delete(r.expected, id)
	ret := Return{ID: id, JID: r.JID, Status: NoResponse, Unknown: r.missing[id]}
	if !ret.Unknown && r.c.disconnected(ctx, id) {
		ret.Status = NotConnected
	}
	return ret
}

// probeAnswer takes one minion's answer to the question whether the job is running.
func (r *Run) probeAnswer(e events.Event) {
	if tagPart(e.Tag, 0) != "ret" {
		return
	}
	id, ok := payload.Text(e.Data["id"])
	if !ok || r.seen[id] {
		return
	}
	if x := r.expected[id]; x != nil {
		x.answered = true
	}
	if code, ok := payload.Int(e.Data["retcode"]); ok && code > 0 {
		r.c.log.Error("saltutil returning errors on minion " + id)
		return
	}
	job, ok := payload.Map(e.Data["return"])
	if inner, is := payload.Map(job["return"]); is && len(inner) == 0 {
		return
	}
	if !ok || len(job) == 0 {
		return
	}
	now := time.Now()
	r.expectMinions([]string{id}, now)
	x := r.expected[id]
	x.running, x.worked, x.silent = true, true, 0
	x.until = now.Add(r.o.Timeout)
}

// stepAt does what the time asks for: probes, and gives up minions after one.
func (r *Run) stepAt(ctx context.Context, now time.Time) []Return {
	if p := r.probe; p != nil {
		if now.Before(p.end) {
			return nil
		}
		if out, longer := r.prolongWait(ctx, p, now); longer {
			return out
		}
		if p.result != nil { // the master did not even take the question
			r.w.bindJob("")
		} else if p.jid != "" {
			r.w.forgetJob(p.jid)
		}
		r.probe = nil
		if p.gap && r.unheard < maxUnheard { // an answer may be among the events that were missed
			r.unheard++
			r.next = now
			return r.fromStore(ctx)
		}
		r.unheard = 0
		out := r.giveUp(ctx, now, nil)
		r.next = p.start.Add(r.o.Again)
		if r.next.Before(now) {
			r.next = now
		}
		return out
	}
	look := len(r.looks) > 0 && !now.Before(r.looks[0])
	if look {
		r.looks = r.looks[1:]
	}
	if now.Before(r.next) {
		if look {
			return r.fromCache()
		}
		return nil
	}
	out := r.fromStore(ctx)
	if len(r.expected) > 0 {
		r.askRunning(ctx, now)
	}
	return out
}

// readStored reads the store after events were missed: at once, and twice later, for the master takes a moment to
// notice that this client listens again.
func (r *Run) readStored(ctx context.Context, now time.Time) []Return {
	if r.w.gapped() {
		r.rereads = []time.Time{now, now.Add(300 * time.Millisecond), now.Add(time.Second)}
		if r.probe != nil {
			r.probe.gap = true
		}
	}
	if len(r.rereads) == 0 || now.Before(r.rereads[0]) {
		return nil
	}
	r.rereads = r.rereads[1:]
	return r.fromStore(ctx)
}

// prolongWait keeps a probe open for minions that have not answered and are connected, as far as the master knows. The
// others are given up.
func (r *Run) prolongWait(ctx context.Context, p *probe, now time.Time) (out []Return,
	longer bool) {
	if r.o.Gather > 0 || p.prolonged || p.gap {
		return nil, false
	}
	p.prolonged = true
	silent := func(id string) bool {
		x := r.expected[id]
		return !x.running && !x.answered &&
			!now.Before(x.until)
	}
	if !slices.ContainsFunc(r.Outstanding(), silent) {
		return nil, false
	}
	there, err := r.c.askPresent(ctx)
	if err != nil {
		r.c.log.Debug("The master does not say who is connected", "err", err)
		there = r.Outstanding()
	}
	keep := make(map[string]bool, len(there))
	for _, id := range there {
		keep[id] = true
	}
	if !slices.ContainsFunc(r.Outstanding(),
		func(id string) bool { return keep[id] && silent(id) }) {
		return nil, false
	}
	p.end = p.start.Add(stockGather)
	return r.giveUp(ctx, now, keep), true
}

// giveUp reports the minions that neither returned nor are running the job, but for those to keep.
func (r *Run) giveUp(ctx context.Context, now time.Time, keep map[string]bool) []Return {
	out := r.fromStore(ctx)
	if ctx.Err() != nil {
		return nil
	}
	for _, id := range r.Outstanding() {
		x := r.expected[id]
		if keep[id] || x.running || now.Before(x.until) {
			continue
		}
		if keep == nil && x.worked && !x.answered && x.silent < silentProbes {
			x.silent++ // it worked a moment ago, and is slow
			continue
		}
		out = append(out, r.lostReturn(ctx, id))
	}
	return out
}

// fromStore finds returns whose events did not arrive here, in the master's store.
func (r *Run) fromStore(ctx context.Context) []Return {
	var out []Return
	err := r.c.storedReturns(ctx, r.JID, r.Outstanding(), r.creds,
		func(id string, data map[string]any) {
			if _, has := data["return"]; has && r.expected[id] != nil {
				out = append(out, r.returnOf(id, data))
			}
		})
	if err != nil && !errors.Is(err, errNoReturns) && ctx.Err() == nil {
		r.c.log.Warn("Cannot ask the master for returns that were missed", "jid", r.JID, "err", err)
	}
	return append(out, r.fromCache()...)
}

// fromCache finds returns whose events did not arrive here, in the files of the job cache.
func (r *Run) fromCache() []Return {
	var out []Return
	for _, id := range r.c.cachedIDs(r.JID) {
		if r.expected[id] == nil {
			continue
		}
		if data, ok := r.c.cachedReturn(r.JID, id); ok {
			out = append(out, r.returnOf(id, data))
		}
	}
	return out
}

// askRunning publishes the question whether the job is running, in the background.
func (r *Run) askRunning(ctx context.Context, now time.Time) {
	ids := r.Outstanding()
	for _, x := range r.expected {
		x.running, x.answered = false, false
	}
	p := &probe{start: now, result: make(chan Published, 1)}
	if r.o.Gather > 0 {
		p.end = now.Add(r.o.Gather + r.c.o.PublishTimeout)
	} else {
		p.end = now.Add(r.o.Timeout - r.o.Timeout/2 + answerGrace)
	}
	r.probe = p
	r.w.holdEvents()
	r.wg.Go(func() {
		pub, err := r.c.Publish(ctx,
			Command{Fun: "saltutil.find_job", Arg: []any{r.JID}, Tgt: ids, TgtType: "list"})
		if err != nil {
			r.c.log.Debug("Cannot ask for a running job", "jid", r.JID, "err", err)
			pub = Published{}
		}
		p.result <- pub
	})
}

// LostText is what Salt shows in place of the return of a minion that nobody has heard of.
func LostText(jid string) string {
	return "Minion did not return. [No response]\nThe minions may not have all finished running " +
		"and any remaining minions will " +
		"return upon completion. To look up the return data for this job later, run the " +
		"following command:\n\n" +
		"salt-run jobs.lookup_jid " + jid
}
