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
	// knockHere is knockLast for a minion that is connected here. Of several masters each that it is connected to asks it; one that takes
	// seconds for an answer would be kept busy with nothing else if they asked every few seconds, and what it was asked it answers in the end.
	knockHere = 2 * time.Minute
	// knockAgain is how long a minion that was asked may take before a new reason to ask counts; the pauses go on growing meanwhile.
	knockAgain = 30 * time.Second
	// knockRouse is how long a minion that nobody knows to be connected, and that was asked, is left alone when somebody connects.
	knockRouse = 2 * time.Second
	// knockOther is how long others leave a minion to the master that was given an order for it and has a connection to it.
	knockOther = 5 * time.Second
	// maxKnock is how many minions one question is for.
	maxKnock = 500
	// maxProofs bounds the remembered proofs, at 60 bytes each.
	maxProofs = 100_000
)

// knockMark is the metadata of a question whether somebody listens, askMark of one after jobs. Minions send it back, which tells masters
// that share a store that there may be something to deliver, and over which of their connections the minion was asked.
const knockMark, askMark = "knock", "ask"

// marked is the metadata of a question. near says that it is for the connections of this one of several masters, and so may be of interest
// to no other.
func marked(mark string, near bool) map[string]any {
	meta := map[string]any{"brine": mark}
	if near {
		meta["near"] = true
	}
	return map[string]any{"metadata": meta}
}

// onlyHere says whether an answer is of interest to nobody but this one of several masters: it asked, over its own connection.
func (s *shared) onlyHere(load map[string]any) bool {
	meta, _ := payload.Map(load["metadata"])
	return meta["near"] == true && knockOf(load) == s.name
}

// isQuestion says whether a job asks whether somebody listens, or after jobs.
func isQuestion(job map[string]any) bool {
	meta, _ := payload.Map(job["metadata"])
	return meta["brine"] == knockMark || meta["brine"] == askMark
}

// isKnock says whether a job asks whether somebody listens, or a return answers that; it may be another master's, or that of a master that died.
func isKnock(load map[string]any) bool {
	meta, _ := payload.Map(load["metadata"])
	return meta["brine"] == knockMark
}

// knockOf is which of several masters sent a question that was answered, over its own connection.
func knockOf(load map[string]any) string {
	meta, _ := payload.Map(load["metadata"])
	return text(meta, "of")
}

// knockedBy is the job map of such a question as one of several masters sends it, so that the answer, whoever gets it, says which of them
// the minion listens to.
func knockedBy(job map[string]any, name string) map[string]any {
	job = maps.Clone(job)
	meta, _ := payload.Map(job["metadata"])
	meta = maps.Clone(meta)
	meta["of"] = name
	job["metadata"] = meta
	return job
}

// knock is a minion for which something waits.
type knock struct {
	next time.Time
	wait time.Duration
	// asked is when it was asked last.
	asked time.Time
	// look says that another master may have sent it meanwhile: look it up before asking.
	look bool
	// near says that the next question is for those who listen to this one of several masters.
	near bool
}

// expect notes that something waits for minions.
func (d *dispatcher) expect(ids ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, id := range ids {
		d.expectOne(id, now, false)
	}
	d.signal()
}

// expectOne is expect for one; callers hold mu. looked says that another master that has the minion was given time to send, and has not.
func (d *dispatcher) expectOne(id string, now time.Time, looked bool) {
	switch {
	case d.m.shared == nil && d.holds(id, d.proofs[id], now), d.holds(id, d.paths[id], now):
		d.ready[id] = struct{}{}
	case d.slow(id, now):
	case d.m.shared != nil && d.m.here(id):
		d.targets[id] = &knock{next: now, wait: knockFirst}
	case d.m.shared != nil && !looked && d.m.presence.elsewhere(id):
		d.targets[id] = &knock{next: now.Add(orderPoll + mathrand.N(orderPoll)), wait: knockFirst, look: true}
	case d.m.shared != nil:
		d.targets[id] = &knock{next: now.Add(knockFirst), wait: knockFirst}
	default:
		d.targets[id] = &knock{next: now, wait: knockFirst}
	}
}

// slow says whether a minion was asked lately and has not answered. Every question costs it some of what it can do, and stock minions one of the
// hundred job ids that they remember: it is not asked anew for each order, nor because somebody else came. Callers hold mu.
func (d *dispatcher) slow(id string, now time.Time) bool {
	k := d.targets[id]
	return k != nil && now.Sub(k.asked) < knockAgain
}

// expectElsewhere notes that another master has an order for minions. The one that they listen to sends it; the others look after a
// while whether somebody has. theirs are those that listen to the other one: if they have connections to several, one asks.
func (d *dispatcher) expectElsewhere(ids, theirs []string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, id := range ids {
		_, other := slices.BinarySearch(theirs, id)
		if d.holds(id, d.paths[id], now) || !other && d.m.here(id) {
			d.expectOne(id, now, true)
		} else if d.targets[id] == nil {
			after := orderPoll
			if other {
				after = knockOther
			}
			d.targets[id] = &knock{next: now.Add(after + mathrand.N(after)), wait: knockFirst, look: true}
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
	now := time.Now()
	return !slices.ContainsFunc(ids, func(id string) bool { return !d.holds(id, d.paths[id], now) })
}

// holds says whether what a minion proved at a time is true still: no connection has broken since, or its own is there. Callers hold mu.
func (d *dispatcher) holds(id string, at, now time.Time) bool {
	return now.Sub(at) < proofLife && (at.After(d.broken) || d.m.here(id))
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
	if k := d.targets[id]; k != nil {
		k.asked = time.Time{} // what it did not answer it may not have heard
	}
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
	another, here := false, false
	if d.m.shared != nil {
		_, here = d.paths[id]
		if isKnock(load) {
			of := knockOf(load)
			here = of == d.m.shared.name
			another = !here && of != ""
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
	switch {
	case another && waits:
		// It listens to another one, which is told of this answer and sends: over one connection, not over all that the minion may have.
		d.targets[id] = &knock{next: now.Add(orderPoll + mathrand.N(orderPoll)), wait: knockFirst, look: true}
	case d.m.shared != nil && waits && !isKnock(load) && !here && !d.m.here(id):
		// It lives, but nobody knows where it listens: it is asked, unless it was just now.
		if k := d.targets[id]; !k.look && now.Sub(k.asked) > orderPoll {
			k.next = now
		}
	case !another && (waits || isKnock(load)):
		delete(d.targets, id)
		d.ready[id] = struct{}{}
	default:
		return
	}
	d.signal()
}

// pathChanged notes that a subscription began or ended. Whose it is the transport may not know, so proofs hold only of minions whose own
// is known, and whoever is awaited may be there now: it is asked soon, but not with every connection that somebody makes.
func (d *dispatcher) pathChanged(up bool) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if !up {
		d.broken = now
		return
	}
	d.rouse(now)
	d.signal()
}

// rouse has those who are awaited asked again; callers hold mu.
func (d *dispatcher) rouse(now time.Time) {
	if now.Sub(d.roused) < time.Second {
		return
	}
	d.roused = now
	for id, k := range d.targets {
		slow := d.slow(id, now)
		if k.look || slow && d.m.here(id) {
			continue
		}
		next := now.Add(knockFirst)
		if soonest := k.asked.Add(knockRouse); slow && next.Before(soonest) {
			next = soonest
		}
		if !slow {
			k.wait = knockFirst
		}
		if next.Before(k.next) {
			k.next = next
		}
	}
}

// askedElsewhere notes that another one of several masters asks minions, over the connections of all masters: what this one would ask counts as asked.
func (d *dispatcher) askedElsewhere(ids []string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, id := range ids {
		if k := d.targets[id]; k != nil && !k.look {
			if !k.asked.IsZero() {
				k.wait = min(max(k.wait, now.Sub(k.asked)), knockLast) // the pauses of all grow together
			}
			k.asked, k.next = now, now.Add(k.wait+mathrand.N(k.wait))
		}
	}
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
	near, others, next := d.knocks(now)
	for here, ids := range map[bool][]string{true: near, false: others} {
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
			continue
		}
		slices.Sort(ids)
		_, err := d.m.publish(ctx, publication{fun: "test.ping", tgt: ids, tgtType: target.TypeList, internal: true, here: here, extra: marked(knockMark, here)})
		if err != nil && !isNoMinions(err) && !errors.Is(err, ErrNotServing) {
			d.failed(ctx, "cannot ask minions that are awaited", err)
		}
	}
	return max(next, 10*time.Millisecond)
}

// knocks lists those to be asked now, by this one of several masters alone and by all of them, and says when the next are.
func (d *dispatcher) knocks(now time.Time) (near, others []string, next time.Duration) {
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
		if len(near)+len(others) == maxKnock {
			next = 0
			continue
		}
		if d.m.shared != nil && (k.near || d.m.here(id)) {
			near = append(near, id)
		} else {
			others = append(others, id)
		}
		if d.m.here(id) {
			k.wait = min(max(k.wait, orderPoll), knockHere) // it will hear, and may be slow, or its answer was lost
		}
		k.near = false
		k.asked, k.next, k.wait = now, now.Add(k.wait), min(2*k.wait, knockLast)
		next = min(next, k.next.Sub(now))
	}
	return near, others, next
}
