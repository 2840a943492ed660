package master

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

const (
	// maxTries is how often a job is sent to one minion.
	maxTries = 5
	// journalLife is how long our minion surely knows a job id again, queueLife a stock one: it remembers the last hundred.
	journalLife, queueLife = 12 * time.Hour, 2 * time.Minute
	// scanBatch is how many overdue deliveries are read at once.
	scanBatch = 500
)

// scan looks at what is due: waited too long, or was sent and not heard of.
func (d *dispatcher) scan(ctx context.Context) {
	for {
		now := time.Now().UTC()
		list, err := d.q.Deliveries(ctx, store.DeliveryFilter{Due: now, Limit: scanBatch})
		d.failed(ctx, "cannot look for orders", err)
		d.review(ctx, list)
		if len(list) < scanBatch || err != nil || ctx.Err() != nil || d.isDraining() {
			return
		}
	}
}

// review takes those of the deliveries that are due and looks after them.
func (d *dispatcher) review(ctx context.Context, list []store.Delivery) {
	now := time.Now().UTC()
	byJob := make(map[string][]store.Delivery)
	for _, x := range list {
		switch {
		case x.Due.After(now) || !x.State.Open():
		case x.State == store.Waiting:
			d.giveUp(ctx, x, now)
		case !d.isDraining():
			// Longer than asking twice takes: nobody else asks meanwhile, unless this master dies.
			x.Owner, x.Due = d.owner, now.Add(3*d.m.opts.GatherTimeout+10*time.Second)
			if err := d.q.SwapDelivery(ctx, &x); err == nil {
				byJob[x.JID] = append(byJob[x.JID], x)
			} else if !errors.Is(err, store.ErrChanged) {
				d.failed(ctx, "cannot take order", err)
			}
		}
	}
	for jid, ds := range byJob {
		d.jobs.Go(func() { d.recover(ctx, jid, ds) })
	}
}

// recover finds out what became of a job on minions that were silent.
func (d *dispatcher) recover(ctx context.Context, jid string, ds []store.Delivery) {
	rec, err := d.q.OrderOf(ctx, jid)
	if err == nil {
		ds, err = d.haveReturned(ctx, jid, ds)
	}
	if err != nil {
		d.failed(ctx, "cannot look after order", err)
		return
	}
	begun := time.Now()
	answers := d.ask(ctx, "saltutil.find_job", jid, ds)
	var idle []store.Delivery
	for _, x := range ds {
		now := time.Now().UTC()
		late := !x.Deadline.IsZero() && !now.Before(x.Deadline)
		job, said := payload.Map(answers[x.Minion])
		running := said && len(job) > 0
		switch {
		case running && late:
			d.settle(ctx, x, store.TimedOut, true, "its deadline passed while it ran")
			d.ask(ctx, "saltutil.term_job", jid, []store.Delivery{x})
		case running && x.Reason == cancelling:
			d.ask(ctx, "saltutil.term_job", jid, []store.Delivery{x})
			d.checkAgain(ctx, x, now, now)
		case running:
			d.checkAgain(ctx, x, x.Sent, now)
		case said:
			idle = append(idle, x)
		case late:
			d.settle(ctx, x, store.TimedOut, false, "its deadline passed, and the minion does not answer")
		case now.Sub(x.Sent) > d.m.opts.LostAfter:
			d.settle(ctx, x, store.Lost, false, "the minion does not answer since it was sent")
		default:
			d.mu.Lock()
			came := d.proofs[x.Minion].After(begun) // just now, after the question
			if !came {
				d.silent[x.Minion] = struct{}{}
			}
			d.mu.Unlock()
			since := x.Sent
			if came {
				since = now
			}
			d.checkAgain(ctx, x, since, now)
		}
	}
	if len(idle) > 0 {
		d.recoverIdle(ctx, rec, idle)
	}
}

// recoverIdle is for minions that say that the job does not run there: they have run it, or never got it.
func (d *dispatcher) recoverIdle(ctx context.Context, rec store.Order, ds []store.Delivery) {
	cached := d.ask(ctx, "saltutil.find_cached_job", rec.JID, ds)
	ds, err := d.haveReturned(ctx, rec.JID, ds) // the return may have been on its way
	if err != nil {
		d.failed(ctx, "cannot look after order", err)
		return
	}
	var again []store.Delivery
	for _, x := range ds {
		now := time.Now().UTC()
		load, found := payload.Map(cached[x.Minion])
		if _, has := load["return"]; found && has && d.adopt(ctx, x, load) {
			continue
		}
		switch {
		case x.Reason == cancelling:
			d.settle(ctx, x, store.Cancelled, false, "cancelled while it ran")
		case !x.Deadline.IsZero() && !now.Before(x.Deadline):
			d.settle(ctx, x, store.TimedOut, false, "its deadline passed")
		case d.mayRepeat(ctx, rec, x, now) && x.Tries < maxTries:
			x.Tries++
			x.Due = d.nextCheck(x, now, now)
			if err := d.q.SwapDelivery(ctx, &x); err == nil {
				again = append(again, x)
			}
		default:
			d.settle(ctx, x, store.Lost, false, "the minion knows nothing of it: it has run there and its return is gone, or it never came")
		}
	}
	if len(again) > 0 {
		d.m.log.Info("order is sent again", "jid", rec.JID, "minions", len(again))
		d.failed(ctx, "cannot send order again", d.publish(ctx, rec.JID, again, true))
	}
}

// haveReturned ends deliveries whose return is in the store and gives the rest.
func (d *dispatcher) haveReturned(ctx context.Context, jid string, ds []store.Delivery) ([]store.Delivery, error) {
	rets, err := d.m.store.Returns(ctx, jid)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(ds, func(x store.Delivery) bool {
		i, found := slices.BinarySearchFunc(rets, x.Minion, func(r store.Return, id string) int {
			switch {
			case r.ID < id:
				return -1
			case r.ID > id:
				return 1
			}
			return 0
		})
		if found {
			d.finishReturned(ctx, x, rets[i].Load)
		}
		return found
	}), nil
}

// adopt takes a return that the minion had kept.
func (d *dispatcher) adopt(ctx context.Context, x store.Delivery, load map[string]any) bool {
	load["jid"], load["id"] = x.JID, x.Minion
	if _, err := protocol.ParseReturn(load); err != nil {
		return false
	}
	first, err := d.m.store.SaveReturn(ctx, store.Return{JID: x.JID, ID: x.Minion, Load: load, Received: time.Now()})
	if err != nil && !first {
		d.failed(ctx, "cannot store return", err)
		return false
	}
	if first {
		d.m.events.Publish("salt/job/"+x.JID+"/ret/"+x.Minion, load)
	}
	d.finishReturned(ctx, x, load)
	return true
}

// mayRepeat says whether sending a job again cannot make it run twice: it may, or the minion surely knows it again.
func (d *dispatcher) mayRepeat(ctx context.Context, rec store.Order, x store.Delivery, now time.Time) bool {
	if ok, _ := rec.Spec["idempotent"].(bool); ok {
		return true
	}
	if d.m.minions == nil {
		return false
	}
	known, err := d.m.minions.Minion(ctx, x.Minion)
	started, ok := payload.Int(known.Spec["started"])
	if err != nil || !ok {
		return false
	}
	age := now.Sub(x.Sent)
	if known.Spec["journal"] == true {
		return age < journalLife
	}
	return age < queueLife && time.UnixMicro(started).Before(x.Sent)
}

// settle ends a delivery that was sent.
func (d *dispatcher) settle(ctx context.Context, x store.Delivery, s store.State, running bool, reason string) {
	d.finish(ctx, x, func(x *store.Delivery) bool {
		x.Running, x.Reason = running, reason
		return end(x, s, true)
	})
}

// checkAgain leaves a delivery for a later time: the later, the longer it has been since a time.
func (d *dispatcher) checkAgain(ctx context.Context, x store.Delivery, since, now time.Time) {
	d.finish(ctx, x, func(x *store.Delivery) bool {
		x.Due = d.nextCheck(*x, since, now)
		return true
	})
}

// ask calls a function with a job id on the minions of deliveries and gives the answers that come in GatherTimeout.
func (d *dispatcher) ask(ctx context.Context, fun, jid string, ds []store.Delivery) map[string]any {
	out := make(map[string]any)
	if len(ds) == 0 {
		return out
	}
	ids := make([]string, len(ds))
	for i, x := range ds {
		ids[i] = x.Minion
	}
	ctx, cancel := context.WithTimeout(ctx, d.m.opts.GatherTimeout)
	defer cancel()
	run := d.m.newRun(d.m.opts.GatherTimeout, d.m.opts.GatherTimeout)
	if _, err := d.m.publish(ctx, publication{fun: fun, arg: []any{jid}, tgt: ids, tgtType: target.TypeList, internal: true, wait: run}); err != nil {
		if !isNoMinions(err) {
			d.failed(ctx, "cannot ask after order", err)
		}
		return out
	}
	defer run.Close()
	for _, res := range run.gather(ctx) {
		out[res.ID] = res.Return
	}
	return out
}

// askUntilIdle asks whether a job runs until it does so nowhere, or GatherTimeout has passed: a job that was told to end takes a moment.
func (d *dispatcher) askUntilIdle(ctx context.Context, jid string, ds []store.Delivery) map[string]any {
	limit := time.NewTimer(d.m.opts.GatherTimeout)
	defer limit.Stop()
	for {
		answers := d.ask(ctx, "saltutil.find_job", jid, ds)
		if !slices.ContainsFunc(ds, func(x store.Delivery) bool { job, _ := payload.Map(answers[x.Minion]); return len(job) > 0 }) {
			return answers
		}
		select {
		case <-time.After(knockFirst):
		case <-limit.C:
			return answers
		case <-ctx.Done():
			return answers
		}
	}
}

// cancelling is the reason of a delivery that was sent and shall end.
const cancelling = "being cancelled"

// cancel ends the deliveries of an order.
func (d *dispatcher) cancel(ctx context.Context, rec store.Order) error {
	list, err := d.q.Deliveries(ctx, store.DeliveryFilter{JID: rec.JID, Open: true, Limit: maxDeliveries})
	if err != nil {
		return err
	}
	var sent []store.Delivery
	for _, x := range list {
		waited := true
		d.finish(ctx, x, func(x *store.Delivery) bool {
			if waited = x.State == store.Waiting; !waited {
				x.Reason = cancelling
				return true
			}
			x.Reason = "cancelled before it was sent"
			return end(x, store.Cancelled, true)
		})
		if !waited {
			sent = append(sent, x)
		}
	}
	if len(sent) == 0 {
		return nil
	}
	d.ask(ctx, "saltutil.term_job", rec.JID, sent)
	answers := d.askUntilIdle(ctx, rec.JID, sent)
	if err := ctx.Err(); err != nil {
		return err
	}
	sent, err = d.q.Deliveries(ctx, store.DeliveryFilter{JID: rec.JID, Open: true, Limit: maxDeliveries})
	for _, x := range sent {
		job, said := payload.Map(answers[x.Minion])
		reason := "cancelled while it ran"
		if !said {
			reason = "cancelled, and the minion did not answer"
		}
		d.settle(ctx, x, store.Cancelled, !said || len(job) > 0, reason)
	}
	return err
}

// drain stops taking deliveries, and gives those that others may look after to them.
func (d *dispatcher) drain(ctx context.Context) error {
	d.mu.Lock()
	d.draining = true
	d.mu.Unlock()
	list, err := d.q.Deliveries(ctx, store.DeliveryFilter{Open: true, Limit: maxDeliveries})
	for _, x := range list {
		if x.State == store.Sent && x.Owner == d.owner {
			d.finish(ctx, x, func(x *store.Delivery) bool {
				x.Owner, x.Due = "", time.Now().UTC()
				return true
			})
		}
	}
	return err
}
