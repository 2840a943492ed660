package master

import (
	"context"
	"errors"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

const (
	// proofLife is how long an answer proves that a minion hears what is published. The connection may break any time; but then a
	// job is lost to sight only, never run twice.
	proofLife = 30 * time.Second
	// knockFirst and knockLast bound the pause between questions to a minion that does not answer. Of several masters the one that
	// has just heard the minion has knockFirst to send, before the others ask.
	knockFirst, knockLast = 250 * time.Millisecond, 5 * time.Minute
	// maxKnock is how many minions one question is for.
	maxKnock = 500
	// maxProofs bounds the remembered proofs, at 60 bytes each.
	maxProofs = 100_000
)

// knockMark is the metadata of a question whether somebody listens. Minions send it back, which tells masters that share a store that
// there may be something to deliver.
const knockMark = "knock"

// isKnock says whether a return answers such a question, which may be another master's, or that of a master that died.
func isKnock(load map[string]any) bool {
	meta, _ := payload.Map(load["metadata"])
	return meta["brine"] == knockMark
}

// knockedBy is the job map of such a question as one of several masters sends it, so that the answer, whoever gets it, says which of them
// the minion listens to.
func knockedBy(job map[string]any, name string) map[string]any {
	job = maps.Clone(job)
	job["metadata"] = map[string]any{"brine": knockMark, "of": name}
	return job
}

// knock is a minion for which something waits.
type knock struct {
	next time.Time
	wait time.Duration
	// look says that another master may have sent it meanwhile: look it up before asking.
	look bool
}

// expect notes that something waits for minions.
func (d *dispatcher) expect(ids ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, id := range ids {
		d.expectOne(id, now)
	}
	d.signal()
}

// expectOne is expect for one; callers hold mu.
func (d *dispatcher) expectOne(id string, now time.Time) {
	switch {
	case d.m.shared == nil && now.Sub(d.proofs[id]) < proofLife, now.Sub(d.paths[id]) < proofLife:
		d.ready[id] = struct{}{}
	case d.m.shared != nil:
		d.targets[id] = &knock{next: now.Add(knockFirst), wait: knockFirst}
	default:
		d.targets[id] = &knock{next: now, wait: knockFirst}
	}
}

// expectElsewhere notes that another master has an order for minions. The one that they listen to sends it; the others look after a
// while whether somebody has.
func (d *dispatcher) expectElsewhere(ids []string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, id := range ids {
		if now.Sub(d.paths[id]) < proofLife {
			d.ready[id] = struct{}{}
		} else if d.targets[id] == nil {
			d.targets[id] = &knock{next: now.Add(orderPoll + mathrand.N(orderPoll)), wait: knockFirst, look: true}
		}
	}
	d.signal()
}

// hears says whether minions all listen to this one of several masters.
func (d *dispatcher) hears(ids []string) bool {
	if d.m.shared == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return !slices.ContainsFunc(ids, func(id string) bool { return time.Since(d.paths[id]) >= proofLife })
}

// contact notes a sign of life other than an answer: a sign-in, a start. Whether the minion listens is not known yet.
func (d *dispatcher) contact(id string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.proofs, id)
	delete(d.paths, id)
	d.asked[id] = struct{}{}
	d.came[id] = struct{}{}
	d.signal()
}

// heard notes an answer to something that was published.
func (d *dispatcher) heard(id string, load map[string]any) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.proofs) >= maxProofs {
		clear(d.proofs)
		clear(d.paths)
	}
	now := time.Now()
	d.proofs[id] = now
	if meta, _ := payload.Map(load["metadata"]); d.m.shared != nil {
		_, here := d.paths[id]
		if isKnock(load) {
			here = meta["of"] == d.m.shared.name
		}
		if delete(d.paths, id); here {
			d.paths[id] = now
		}
	}
	if _, was := d.silent[id]; was {
		d.asked[id] = struct{}{}
		d.signal()
	}
	_, waits := d.targets[id]
	if waits || isKnock(load) {
		delete(d.targets, id)
		d.ready[id] = struct{}{}
		d.signal()
	}
}

// pathChanged notes that a subscription began or ended. Whose it is the transport may not know, so no proof holds any longer, and
// whoever is awaited may be there now.
func (d *dispatcher) pathChanged(up bool) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if !up {
		clear(d.proofs)
		clear(d.paths)
		return
	}
	if now.Sub(d.roused) < time.Second {
		return
	}
	d.roused = now
	for _, k := range d.targets {
		if !k.look {
			k.next, k.wait = now.Add(knockFirst), knockFirst
		}
	}
	d.signal()
}

// heardElsewhere notes an answer that another master of the same store got. That one looks what waits; here it proves nothing, for
// this master does not see when the connection breaks.
func (d *dispatcher) heardElsewhere(id string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.targets[id]; k != nil {
		k.next, k.look = time.Now().Add(orderPoll), true
	}
}

// knock asks those for whom something waits whether they listen.
func (d *dispatcher) knock(ctx context.Context, now time.Time) time.Duration {
	ids, next := d.knocks(now)
	ids = slices.DeleteFunc(ids, func(id string) bool {
		if d.m.accepted(id) {
			return false
		}
		d.mu.Lock()
		delete(d.targets, id) // it cannot hear; its sign-in brings it back
		d.mu.Unlock()
		return true
	})
	if len(ids) == 0 {
		return next
	}
	slices.Sort(ids)
	_, err := d.m.publish(ctx, publication{fun: "test.ping", tgt: ids, tgtType: target.TypeList, internal: true,
		extra: map[string]any{"metadata": map[string]any{"brine": knockMark}}})
	if err != nil && !isNoMinions(err) && !errors.Is(err, ErrNotServing) {
		d.failed(ctx, "cannot ask minions that are awaited", err)
	}
	return max(next, 10*time.Millisecond)
}

// knocks lists those to be asked now, and says when the next are.
func (d *dispatcher) knocks(now time.Time) (ids []string, next time.Duration) {
	next = time.Hour
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, k := range d.targets {
		if wait := k.next.Sub(now); wait > 0 {
			next = min(next, wait)
			continue
		}
		if k.look {
			delete(d.targets, id)
			d.asked[id] = struct{}{}
			d.signal()
			continue
		}
		if len(ids) == maxKnock {
			next = 0
			continue
		}
		ids = append(ids, id)
		k.next, k.wait = now.Add(k.wait), min(2*k.wait, knockLast)
		next = min(next, k.next.Sub(now))
	}
	return ids, next
}
