package orders

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/payload"
)

const (
	// maxTries is how often a job is sent to one minion at most.
	maxTries = 5
	// journalLife is how long a brine minion recognizes a job id for certain, queueLife a stock minion, which
	// remembers the last hundred.
	journalLife, queueLife = 12 * time.Hour, 2 * time.Minute
	// cacheLife is the age in a minion's job cache beyond which saltutil.clear_job_cache removes a job by
	// default.
	cacheLife = 24 * time.Hour
	// scanBatch is how many due deliveries are read at once.
	scanBatch = 2000
	// maxAsking limits the deliveries that are queried at once, askSlots the queries about single jobs. The
	// others wait, and most of them return meanwhile.
	maxAsking, askSlots = 500, 16
	// takeoverAfter is how long the master to which a minion listens has to finish a delivery before its peers
	// query the job's status.
	takeoverAfter = 15 * time.Second
)

// scanDue reads due deliveries from the store: pending for too long, or sent without a return.
func (d *Deliverer) scanDue(ctx context.Context) {
	for {
		now := time.Now().UTC()
		list, err := d.q.Deliveries(ctx, store.DeliveryFilter{Due: now, Limit: scanBatch})
		d.logFailure(ctx, "Cannot read orders", err)
		ended := d.reviewDue(ctx, list)
		if len(list) < scanBatch || ended == 0 || err != nil || ctx.Err() != nil || d.IsDraining() {
			return
		}
	}
}

// reviewDue gives up the deliveries that were pending for too long, and queries those that were sent. It
// returns how many it gave up.
func (d *Deliverer) reviewDue(ctx context.Context, list []store.Delivery) (ended int) {
	now := time.Now().UTC()
	var sent, late []store.Delivery
	for _, x := range list {
		switch {
		case x.Due.After(now) || !x.State.Open():
		case x.State == store.Waiting:
			late = append(late, x)
		case !d.IsDraining() && !d.leftToPeer(x, now):
			sent = append(sent, x)
		}
	}
	// An order may expire for thousands of minions at once. Parallel changes share the store's transactions.
	inParallel(len(late), sendWorkers, func(i int) { d.giveUp(ctx, late[i], now) })
	ended = len(late)
	d.mu.Lock()
	sent = slices.DeleteFunc(sent, func(x store.Delivery) bool {
		p := d.peers.byID[x.Minion]
		return p != nil && p.queries > 0
	})
	sent = sent[:min(len(sent), maxAsking-d.inquired)]
	d.inquired += len(sent)
	for _, x := range sent {
		d.peers.of(x.Minion).queries++
	}
	d.mu.Unlock()
	if len(sent) > 0 {
		d.jobs.Go(func() { d.recoverDeliveries(ctx, sent) })
	}
	return ended
}

// leftToPeer reports whether a peer master, the one to which the minion listens, should query a delivery.
func (d *Deliverer) leftToPeer(x store.Delivery, now time.Time) bool {
	if !d.several() || now.Sub(x.Due) >= takeoverAfter || d.hears([]string{x.Minion}) {
		return false
	}
	return !d.here(x.Minion) && d.elsewhere(x.Minion)
}

// claimDeliveries claims deliveries until due and returns those it got. No peer queries them before that, even
// if this master dies.
func (d *Deliverer) claimDeliveries(ctx context.Context, ds []store.Delivery,
	due time.Time) []store.Delivery {
	errs := make([]error, len(ds))
	inParallel(len(ds), sendWorkers, func(i int) {
		ds[i].Owner, ds[i].Due = d.owner, due
		errs[i] = d.q.SwapDelivery(ctx, &ds[i])
	})
	var mine []store.Delivery
	for i, err := range errs {
		if err == nil {
			mine = append(mine, ds[i])
		} else if !errors.Is(err, store.ErrChanged) {
			d.logFailure(ctx, "Cannot take order", err)
		}
	}
	return mine
}

// minionsOf returns the set of minions of deliveries.
func minionsOf(ds []store.Delivery) map[string]struct{} {
	ids := make(map[string]struct{})
	for _, x := range ds {
		ids[x.Minion] = struct{}{}
	}
	return ids
}

// endQueries records that the deliveries of minions are no longer being queried.
func (d *Deliverer) endQueries(ids map[string]struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range ids {
		p := d.peers.of(id)
		d.inquired -= int(p.queries)
		p.queries = 0
	}
}

// recoverDeliveries determines the outcome of jobs that did not return. Each minion gets one query at a time:
// first for all jobs that it runs, then one for each job that it does not run.
func (d *Deliverer) recoverDeliveries(ctx context.Context, ds []store.Delivery) {
	end := time.Now().UTC().Add(d.opts.GatherTimeout + 10*time.Second) // for queries
	asked := minionsOf(ds)
	byJob := make(map[string][]store.Delivery)
	// A query sent just before end is answered before the claim expires.
	for _, x := range d.claimDeliveries(ctx, ds, end.Add(2*d.opts.GatherTimeout)) {
		byJob[x.JID] = append(byJob[x.JID], x)
	}
	jids := slices.Sorted(maps.Keys(byJob))
	left := make([][]store.Delivery, len(jids))
	inParallel(len(jids), sendWorkers, func(i int) {
		left[i] = d.unreturned(ctx, jids[i], byJob[jids[i]])
	})
	if len(jids) > 1 {
		d.askRunning(ctx, left)
	}
	waits := minionsOf(slices.Concat(left...))
	maps.DeleteFunc(asked, func(id string, _ struct{}) bool { return fields.Has(waits, id) })
	d.endQueries(asked)
	d.askByJob(ctx, jids, left, end)
}

// askByJob queries each job that does not run. A minion has one query at a time, and there are at most askSlots
// in all. After a minion has not answered, it gets no further queries. Jobs for which there is no time are left
// to the next check.
func (d *Deliverer) askByJob(ctx context.Context, jids []string, left [][]store.Delivery,
	end time.Time) {
	waits := make(map[string]int) // unanswered queries by minion
	for _, x := range slices.Concat(left...) {
		waits[x.Minion]++
	}
	type question struct {
		ds     []store.Delivery
		begun  time.Time
		silent map[string]struct{}
	}
	busy := make(map[string]struct{})
	ended := make(chan question)
	fresh := true // the store was searched for the return just now
	for under := 0; ; under-- {
		for i := 0; i < len(left) && under < askSlots; i++ {
			if !time.Now().Before(end) || d.IsDraining() {
				break
			}
			q := question{begun: time.Now()}
			left[i] = slices.DeleteFunc(left[i], func(x store.Delivery) bool {
				if fields.Has(busy, x.Minion) {
					return false
				}
				busy[x.Minion] = struct{}{}
				q.ds = append(q.ds, x)
				return true
			})
			if len(q.ds) == 0 {
				continue
			}
			under++
			go func(fresh bool) {
				ds := slices.Clone(q.ds)
				if !fresh {
					ds = d.unreturned(ctx, jids[i], ds)
				}
				if len(ds) > 0 {
					q.silent = d.recoverJob(ctx, jids[i], ds)
				}
				ended <- q
			}(fresh)
		}
		if under == 0 {
			break
		}
		q := <-ended
		fresh = false
		for _, x := range q.ds {
			delete(busy, x.Minion)
			waits[x.Minion]--
		}
		for i := range left {
			left[i] = slices.DeleteFunc(left[i], func(x store.Delivery) bool {
				if !fields.Has(q.silent, x.Minion) {
					return false
				}
				waits[x.Minion]--
				d.noAnswer(ctx, x, q.begun)
				return true
			})
		}
		done := minionsOf(q.ds)
		maps.DeleteFunc(done, func(id string, _ struct{}) bool { return waits[id] > 0 })
		d.endQueries(done)
	}
	now := time.Now()
	rest := slices.Concat(left...)
	for _, x := range rest {
		d.checkAgain(ctx, x, now, now)
	}
	d.endQueries(minionsOf(rest))
}

// askRunning queries minions for all jobs that they run. It leaves in byJob the deliveries whose outcome is
// still unknown.
func (d *Deliverer) askRunning(ctx context.Context, byJob [][]store.Delivery) {
	all := slices.Concat(byJob...)
	begun := time.Now()
	answers := d.askMinions(ctx, "saltutil.running", nil, all)
	running := make(map[string]map[string]any, len(all)) // by minion and job id
	for id, answer := range answers {
		list, _ := payload.List(answer.Value)
		for _, v := range list {
			if job, ok := payload.Map(v); ok {
				running[id+" "+fields.Text(job, "jid")] = job
			}
		}
	}
	for i, ds := range byJob {
		byJob[i] = slices.DeleteFunc(ds, func(x store.Delivery) bool {
			_, said := answers[x.Minion]
			job := running[x.Minion+" "+x.JID]
			switch {
			case job != nil:
				d.stillRuns(ctx, x)
			case !said:
				d.noAnswer(ctx, x, begun)
			default:
				return false
			}
			return true
		})
	}
}

// stillRuns handles a delivery whose minion is running the job.
func (d *Deliverer) stillRuns(ctx context.Context, x store.Delivery) {
	now := time.Now().UTC()
	switch {
	case !x.Deadline.IsZero() && !now.Before(x.Deadline):
		d.settleDelivery(ctx, x, store.TimedOut, true, "its deadline passed while it ran")
		d.askMinions(ctx, "saltutil.term_job", []any{x.JID}, []store.Delivery{x})
	case x.Reason == cancelling:
		d.askMinions(ctx, "saltutil.term_job", []any{x.JID}, []store.Delivery{x})
		d.checkAgain(ctx, x, now, now)
	default:
		d.checkAgain(ctx, x, x.Sent, now)
	}
}

// noAnswer handles a delivery whose minion did not answer the query sent at asked: it times out, is lost, or is
// queried again.
func (d *Deliverer) noAnswer(ctx context.Context, x store.Delivery, asked time.Time) {
	now := time.Now().UTC()
	switch {
	case !x.Deadline.IsZero() && !now.Before(x.Deadline):
		d.settleDelivery(ctx, x, store.TimedOut, false,
			"its deadline passed, and the minion does not answer")
	case now.Sub(x.Sent) > d.opts.LostAfter:
		d.settleDelivery(ctx, x, store.Lost, false, "the minion has not answered since it was sent")
	default:
		d.mu.Lock()
		p := d.peers.of(x.Minion)
		came := p.heard > d.moment(asked) // an answer after the query
		if !came {
			p.silent = true
		}
		d.mu.Unlock()
		since := x.Sent
		if came {
			since = now
		}
		d.checkAgain(ctx, x, since, now)
	}
}

// recoverJob queries minions for one job: whether it runs or is queued, and its cached return. It returns the
// minions that did not answer.
func (d *Deliverer) recoverJob(ctx context.Context, jid string,
	ds []store.Delivery) (silent map[string]struct{}) {
	rec, err := d.q.OrderOf(ctx, jid)
	if err != nil {
		d.logFailure(ctx, "Cannot recover order", err)
		return nil
	}
	begun := time.Now()
	answers := d.askMinions(ctx, []any{findJob, findCachedJob}, []any{[]any{jid}, []any{jid}}, ds)
	ds = d.unreturned(ctx, jid, ds) // it may have been on its way
	silent = make(map[string]struct{})
	var again []store.Delivery
	via := make(map[string]string)
	for _, x := range ds {
		a, said := answers[x.Minion]
		job, cached := readFound(a.Value)
		switch {
		case !said:
			silent[x.Minion] = struct{}{}
			d.noAnswer(ctx, x, begun)
		case len(job) > 0:
			d.stillRuns(ctx, x)
		case d.isOver(ctx, rec, &x, cached):
			again = append(again, x)
			via[x.Minion] = a.Via
		}
	}
	if len(again) > 0 {
		d.opts.Log.Info("Order is sent again", "jid", jid, "minions", len(again))
		others, err := d.publishJob(ctx, rec, again, via)
		d.logFailure(ctx, "Cannot send order again", errors.Join(err, d.sendAll(ctx, others)))
	}
	return silent
}

// The functions of a status query.
const findJob, findCachedJob = "saltutil.find_job", "saltutil.find_cached_job"

// readFound reads the answer to both functions: by name, or in order if the minion has multifunc_ordered. job
// is empty if the job does not run.
func readFound(answer any) (job map[string]any, cached any) {
	both, _ := payload.Map(answer)
	running, cached := both[findJob], both[findCachedJob]
	if ordered, ok := payload.List(answer); ok && len(ordered) == 2 {
		running, cached = ordered[0], ordered[1]
	}
	job, _ = payload.Map(running)
	return job, cached
}

// ReturnedLate adopts a cached return from an answer that came after the query's time. Otherwise a slow minion
// would be queried again and again in vain. A nil Deliverer does nothing.
func (d *Deliverer) ReturnedLate(ctx context.Context, id string, load map[string]any) {
	_, cached := readFound(load["return"])
	ret, _ := payload.Map(cached)
	if _, has := ret["return"]; d == nil || !has {
		return
	}
	list, err := d.q.Deliveries(ctx, store.DeliveryFilter{JID: fields.Text(ret, "jid"), Minion: id})
	d.logFailure(ctx, "Cannot recover order", err)
	for _, x := range list {
		if x.State == store.Sent {
			d.adoptReturn(ctx, x, ret)
		}
	}
}

// isOver handles a job that its minion does not run: it has run, or never arrived. cached is the minion's
// cached return. It reports whether to send the job again.
func (d *Deliverer) isOver(ctx context.Context, rec store.Order, x *store.Delivery,
	cached any) (again bool) {
	now := time.Now().UTC()
	load, found := payload.Map(cached)
	if _, has := load["return"]; found && has && d.adoptReturn(ctx, *x, load) {
		return false
	}
	switch {
	case x.Reason == cancelling:
		d.settleDelivery(ctx, *x, store.Cancelled, false, "cancelled while it ran")
	case !x.Deadline.IsZero() && !now.Before(x.Deadline):
		d.settleDelivery(ctx, *x, store.TimedOut, false, "its deadline passed")
	case x.Tries < maxTries && d.mayRepeat(ctx, rec, *x, cached, now):
		x.Tries++
		x.Due = d.nextCheck(*x, now, now)
		return d.q.SwapDelivery(ctx, x) == nil
	default:
		d.settleDelivery(ctx, *x, store.Lost, false, "the minion knows nothing of it: "+
			"it ran there and its return is gone, or it never arrived")
	}
	return false
}

// unreturned ends deliveries whose return is in the store, and returns the rest. It returns nil if the store
// fails; they are due again when the claim expires.
func (d *Deliverer) unreturned(ctx context.Context, jid string,
	ds []store.Delivery) []store.Delivery {
	if len(ds) == 0 {
		return ds
	}
	rets, err := d.returnsOf(ctx, jid, ds)
	if err != nil {
		d.logFailure(ctx, "Cannot recover order", err)
		return nil
	}
	return slices.DeleteFunc(ds, func(x store.Delivery) bool {
		load, found := rets[x.Minion]
		if found {
			d.finishReturned(ctx, x, load)
		}
		return found
	})
}

// returnsOf reads the returns of these deliveries' minions for a job, by minion. Reading all returns of a job to ten
// thousand minions would cost more than the query.
func (d *Deliverer) returnsOf(ctx context.Context, jid string,
	ds []store.Delivery) (map[string]map[string]any, error) {
	ids := minionsOf(ds)
	var list []store.Return
	var err error
	if db, ok := store.PagedOf(d.opts.Store); ok {
		list, err = db.ReturnsOf(ctx, jid, slices.Sorted(maps.Keys(ids)))
	} else {
		list, err = d.opts.Store.Returns(ctx, jid)
	}
	out := make(map[string]map[string]any)
	for _, r := range list {
		if fields.Has(ids, r.ID) {
			out[r.ID] = r.Load
		}
	}
	return out, err
}

// adoptReturn handles a minion's cached return as if it had just arrived.
func (d *Deliverer) adoptReturn(ctx context.Context, x store.Delivery, load map[string]any) bool {
	if !d.opts.Wire.Adopt(ctx, x.JID, x.Minion, load) {
		return false
	}
	d.finishReturned(ctx, x, load)
	return true
}

// mayRepeat reports whether a job may be sent again: it may run twice (idempotent), or the minion surely
// recognizes its id and does not run it again, or the minion caches returns (cache_jobs) and has none for it.
func (d *Deliverer) mayRepeat(ctx context.Context, rec store.Order, x store.Delivery, cached any,
	now time.Time) bool {
	if ok, _ := rec.Spec["idempotent"].(bool); ok {
		return true
	}
	if d.minions == nil {
		return false
	}
	known, err := d.minions.Minion(ctx, x.Minion)
	started, ok := payload.Int(known.Spec["started"])
	if err != nil || !ok {
		return false
	}
	age := now.Sub(x.Sent)
	if known.Spec["journal"] == true {
		// If a journal was lost with its disk or damaged, the new one does not know the job.
		since, _ := payload.Int(known.Spec["journal_since"])
		return age < journalLife && time.UnixMicro(since).Before(x.Sent)
	}
	if !time.UnixMicro(started).Before(x.Sent) {
		return false
	}
	if age < queueLife {
		return true
	}
	said, _ := payload.Text(cached)
	never := strings.HasPrefix(said, "Local jobs cache directory ") &&
		strings.HasSuffix(said, x.JID+" not found")
	return never && age < cacheLife && !d.mayHaveCleared(ctx, x)
}

// mayHaveCleared reports whether a minion may have been told to clear its job cache since a delivery.
func (d *Deliverer) mayHaveCleared(ctx context.Context, x store.Delivery) bool {
	jobs, err := d.opts.Store.Jobs(ctx, store.Filter{Since: x.Sent, Minion: x.Minion})
	if err != nil || len(jobs) >= store.DefaultLimit {
		return true
	}
	return slices.ContainsFunc(jobs, func(j store.Job) bool {
		return slices.Contains(fields.Functions(j.Fun), "saltutil.clear_job_cache")
	})
}

// settleDelivery ends a delivery that was sent.
func (d *Deliverer) settleDelivery(ctx context.Context, x store.Delivery, s store.State,
	running bool, reason string) {
	d.finishDelivery(ctx, x, func(x *store.Delivery) bool {
		x.Running, x.Reason = running, reason
		return endAs(x, s, true)
	})
}

// checkAgain schedules the next check of a delivery. The interval grows with the time since since.
func (d *Deliverer) checkAgain(ctx context.Context, x store.Delivery, since, now time.Time) {
	d.finishDelivery(ctx, x, func(x *store.Delivery) bool {
		x.Due = d.nextCheck(*x, since, now)
		return true
	})
}

// askMinions calls a function on the minions of deliveries and returns the answers received within
// GatherTimeout. In a cluster this master asks the minions connected to it, and all masters ask the others.
func (d *Deliverer) askMinions(ctx context.Context, fun any, arg []any,
	ds []store.Delivery) map[string]Answer {
	var here, others []string
	for _, x := range ds {
		if d.several() && d.here(x.Minion) {
			here = append(here, x.Minion)
		} else {
			others = append(others, x.Minion)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, d.opts.GatherTimeout)
	defer cancel()
	return d.opts.Wire.Ask(ctx, Question{Fun: fun, Arg: arg, Here: here, Others: others})
}

// askUntilIdle queries a job until no minion runs it, or GatherTimeout has passed, because a job takes a moment
// to stop.
func (d *Deliverer) askUntilIdle(ctx context.Context, jid string,
	ds []store.Delivery) map[string]Answer {
	limit := time.NewTimer(d.opts.GatherTimeout)
	defer limit.Stop()
	for wait := probeFirst; ; wait *= 2 {
		answers := d.askMinions(ctx, findJob, []any{jid}, ds)
		runs := slices.ContainsFunc(ds, func(x store.Delivery) bool {
			job, _ := payload.Map(answers[x.Minion].Value)
			return len(job) > 0
		})
		if !runs {
			return answers
		}
		select {
		case <-time.After(wait):
		case <-limit.C:
			return answers
		case <-ctx.Done():
			return answers
		}
	}
}

// cancelling is the reason of a sent delivery that is being cancelled.
const cancelling = "being cancelled"

// Cancel ends the deliveries of an order.
func (d *Deliverer) Cancel(ctx context.Context, rec store.Order) error {
	open := store.DeliveryFilter{JID: rec.JID, Open: true, Limit: MaxDeliveries}
	list, err := d.q.Deliveries(ctx, open)
	if err != nil {
		return err
	}
	waited := make([]bool, len(list))
	inParallel(len(list), sendWorkers, func(i int) {
		d.finishDelivery(ctx, list[i], func(x *store.Delivery) bool {
			if waited[i] = x.State == store.Waiting; !waited[i] {
				x.Reason = cancelling
				return true
			}
			x.Reason = "cancelled before it was sent"
			return endAs(x, store.Cancelled, true)
		})
	})
	var sent []store.Delivery
	for i, x := range list {
		if !waited[i] {
			sent = append(sent, x)
		}
	}
	if len(sent) == 0 {
		return nil
	}
	d.askMinions(ctx, "saltutil.term_job", []any{rec.JID}, sent)
	answers := d.askUntilIdle(ctx, rec.JID, sent)
	if err := ctx.Err(); err != nil {
		return err
	}
	sent, err = d.q.Deliveries(ctx, open)
	inParallel(len(sent), sendWorkers, func(i int) {
		job, said := payload.Map(answers[sent[i].Minion].Value)
		reason := "cancelled while it ran"
		if !said {
			reason = "cancelled, and the minion did not answer"
		}
		d.settleDelivery(ctx, sent[i], store.Cancelled, !said || len(job) > 0, reason)
	})
	return err
}

// Drain accepts no more deliveries, and releases those that peer masters can handle.
func (d *Deliverer) Drain(ctx context.Context) error {
	d.mu.Lock()
	d.draining = true
	d.mu.Unlock()
	soon := time.Now().UTC().Add(d.opts.Timeout)
	list, err := d.q.Deliveries(ctx, store.DeliveryFilter{Open: true, Limit: MaxDeliveries})
	list = slices.DeleteFunc(list, func(x store.Delivery) bool {
		return x.State != store.Sent || x.Owner != d.owner || x.Due.Before(soon)
	})
	inParallel(len(list), sendWorkers, func(i int) {
		d.finishDelivery(ctx, list[i], func(x *store.Delivery) bool {
			x.Owner, x.Due = "", soon
			return true
		})
	})
	return err
}
