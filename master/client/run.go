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

// Status is how a job ended on a minion.
type Status int

// The statuses.
const (
	Returned     Status = iota // there is a result
	NoResponse                 // no result, and the minion does not report the job as running
	NotConnected               // the same, and the minion is not connected to the master
)

// Return is the outcome of a job on one minion.
type Return struct {
	ID     string
	Status Status
	// Unknown means that the master has no key of the minion, which a list target named.
	Unknown bool
	JID     string
	// Value is the function's result, Ordered the same with its maps as payload.OrderedMap.
	Value, Ordered any
	// Out is the outputter that the minion requests. Retcode is a number, or a map or list for several
	// functions. HasRetcode is false for returns without one.
	Out        string
	Retcode    any
	HasRetcode bool
	// Data is the whole return as received.
	Data map[string]any
}

// Code returns the return code; for several functions the highest.
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

// RunOptions are the timeouts of a run.
type RunOptions struct {
	// Timeout is how long a minion may be silent before it returns, or after it last reported the job as
	// running.
	Timeout time.Duration
	// Gather is how long to wait, after Timeout, for answers to the probe whether the job still runs. Stock
	// Salt's gather_job_timeout is 10 s. With 0 the probe is sent early enough to be over a second after
	// Timeout, and only connected minions are waited for as long as in stock, because they or the machine may
	// be slow.
	Gather time.Duration
	// Again is the pause between such probes while the job runs; 0 means the larger of Timeout and 10 s.
	Again time.Duration
	// OnState is called for each finished state, if the job's minions report states (state_events). Returns
	// calls it. It may be nil.
	OnState func(StateDone)
}

// StateDone is a finished state on a minion: number Number of Total. Fun, such as "pkg.installed", is "" for
// stock minions.
type StateDone struct {
	ID            string
	Number, Total int
	Fun, Name     string
	// Ended is how many of the Targeted minions have returned.
	Ended, Targeted int
}

// answerGrace is how long after the timeout answers are accepted if Gather is 0.
const answerGrace = 800 * time.Millisecond

// stockGather is how long connected minions have for an answer if Gather is 0. A stock minion starts a process
// for it, which takes seconds on a busy machine.
const stockGather = 10 * time.Second

// silentProbes is how many probes in a row a connected minion may leave unanswered if it has reported the job
// as running before: a stock minion on a busy machine may need longer than stockGather to start the process
// that answers.
const silentProbes = 1

// Run is a published job whose returns are awaited. Close it after use.
type Run struct {
	Published
	c *Client
	w *watch
	o RunOptions

	expected map[string]*expectation
	seen     map[string]bool // ids already reported
	missing  map[string]bool
	probe    *probe
	unheard  int         // probes repeated in a row
	next     time.Time   // time of the next probe
	looks    []time.Time // reads of the job cache before the first probe
	rereads  []time.Time // reads of the store after missed events
	creds    map[string]any
	err      error
	wg       sync.WaitGroup
}

// expectation is the state of a minion that has not returned.
type expectation struct {
	answered bool      // it answered the last probe
	until    time.Time // silence is accepted until then
	running  bool      // by its answer to the last probe
	worked   bool      // by its answer to an earlier probe
	silent   int       // unanswered probes in a row since then
}

// probe is one query whether the job still runs.
type probe struct {
	prolonged bool   // the connected minions were queried
	jid       string // "" until it is published
	start     time.Time
	end       time.Time // end of the wait for answers
	gap       bool      // events were missed during it
	result    chan Published
}

// maxUnheard is how many probes in a row may be repeated because events were missed.
const maxUnheard = 3

// Run publishes a job and awaits its returns. Range over Returns, then close the run.
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
	// A minion may answer before the master has noticed this listener. The job cache has such a return.
	for d := 50 * time.Millisecond; d < o.Timeout/2; d *= 3 {
		r.looks = append(r.looks, now.Add(d))
	}
	r.next = now.Add(o.Timeout / 2)
	if o.Gather > 0 {
		r.next = now.Add(o.Timeout)
	}
	return r, nil
}

// Close stops waiting. Do not call it while ranging over Returns.
func (r *Run) Close() {
	r.wg.Wait()
	r.w.close()
}

// Err returns why Returns ended early: the context's error, or ErrAuthorization if the master withdrew the job.
func (r *Run) Err() error { return r.err }

// Outstanding returns the minions not reported yet.
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

// Returns yields every targeted minion exactly once: when its return arrives, or when it is given up. It ends
// when all are reported, or with ctx.
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

// wait waits until there is something to do.
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
		// The minions have the probe only now.
		if r.o.Gather > 0 {
			r.probe.end = time.Now().Add(r.o.Gather)
		}
	case <-timer.C:
	}
	return nil
}

// handleEvent handles an event. It reports whether it is a return to yield.
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

// reportProgress handles the event of a finished state.
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
	id := tagPart(e.Tag, 1) // followed by the number of the event
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

// lostReturn returns the outcome of a minion that is given up.
func (r *Run) lostReturn(ctx context.Context, id string) Return {
	r.seen[id] = true
	delete(r.expected, id)
	ret := Return{ID: id, JID: r.JID, Status: NoResponse, Unknown: r.missing[id]}
	if !ret.Unknown && r.c.disconnected(ctx, id) {
		ret.Status = NotConnected
	}
	return ret
}

// probeAnswer handles a minion's answer to a probe.
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

// stepAt does what is due: it sends probes, and gives up minions after one.
func (r *Run) stepAt(ctx context.Context, now time.Time) []Return {
	if p := r.probe; p != nil {
		if now.Before(p.end) {
			return nil
		}
		if out, longer := r.prolongWait(ctx, p, now); longer {
			return out
		}
		if p.result != nil { // the master did not accept the probe
			r.w.bindJob("")
		} else if p.jid != "" {
			r.w.forgetJob(p.jid)
		}
		r.probe = nil
		if p.gap && r.unheard < maxUnheard { // an answer may be among the missed events
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

// readStored reads the store after events were missed: at once, and twice later, because the master takes a
// moment to notice that this client listens again.
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

// prolongWait extends a probe for minions that have not answered and are connected, as far as the master knows.
// The others are given up.
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

// giveUp returns the minions that neither returned nor run the job, except those in keep.
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
			x.silent++ // it worked a moment ago, so it is slow
			continue
		}
		out = append(out, r.lostReturn(ctx, id))
	}
	return out
}

// fromStore finds returns in the master's store whose events were missed.
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

// fromCache finds returns in the files of the job cache whose events were missed.
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

// askRunning publishes a probe whether the job still runs, in the background.
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

// LostText returns Salt's text in place of the return of a minion that was lost.
func LostText(jid string) string {
	return "Minion did not return. [No response]\nThe minions may not have all finished running " +
		"and any remaining minions will " +
		"return upon completion. To look up the return data for this job later, run the " +
		"following command:\n\n" +
		"salt-run jobs.lookup_jid " + jid
}
