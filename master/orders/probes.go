package orders

import (
	"context"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/brine-salt/brine/master/internal/probe"
)

const (
	// proofLife is how long an answer proves that a minion hears what is published. The connection may break any time; but then a
	// job is lost to sight only, never run twice.
	proofLife = 30 * time.Second
	// probeFirst and probeLast bound the pause between questions to a minion that does not answer. Of several masters the one that
	// has just heard the minion has probeFirst to send, before the others ask.
	probeFirst, probeLast = 250 * time.Millisecond, 5 * time.Minute
	// probeHere is probeLast for a minion that is connected here. Of several masters each that it is connected to asks it; one that takes
	// seconds for an answer would be kept busy with nothing else if they asked every few seconds, and what it was asked it answers in the end.
	probeHere = 2 * time.Minute
	// probeAgain is how long a minion that was asked may take before a new reason to ask counts; the pauses go on growing meanwhile.
	probeAgain = 30 * time.Second
	// probeWake is how long a minion that nobody knows to be connected, and that was asked, is left alone when somebody connects.
	probeWake = 2 * time.Second
	// probeOther is how long others leave a minion to the master that was given an order for it and has a connection to it.
	probeOther = 5 * time.Second
	// maxProbe is how many minions one question is for.
	maxProbe = 500
	// maxProofs bounds the remembered proofs, at 60 bytes each.
	maxProofs = 100_000
)

// awaited is a minion for which something waits.
type awaited struct {
	next time.Time
	wait time.Duration
	// asked is when it was asked last.
	asked time.Time
	// look says that another master may have sent it meanwhile: look it up before asking.
	look bool
	// near says that the next question is for those who listen to this one of several masters.
	near bool
}

// Expect notes that something waits for minions.
func (d *Deliverer) Expect(ids ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, id := range ids {
		d.expectOne(id, now, false)
	}
	d.signal()
}

// expectOne is expect for one; callers hold mu. looked says that another master that has the minion was given time to send, and has not.
func (d *Deliverer) expectOne(id string, now time.Time, looked bool) {
	switch {
	case !d.several() && d.holds(id, d.proofs[id], now), d.holds(id, d.paths[id], now):
		d.ready[id] = struct{}{}
	case d.slow(id, now):
	case d.several() && d.here(id):
		d.targets[id] = &awaited{next: now, wait: probeFirst}
	case d.several() && !looked && d.elsewhere(id):
		d.targets[id] = &awaited{next: now.Add(PollInterval + mathrand.N(PollInterval)), wait: probeFirst, look: true}
	case d.several():
		d.targets[id] = &awaited{next: now.Add(probeFirst), wait: probeFirst}
	default:
		d.targets[id] = &awaited{next: now, wait: probeFirst}
	}
}

// slow reports whether a minion was asked lately and has not answered. Every question costs it some of what it can do, and stock minions one of the
// hundred job ids that they remember: it is not asked anew for each order, nor because somebody else came. Callers hold mu.
func (d *Deliverer) slow(id string, now time.Time) bool {
	k := d.targets[id]
	return k != nil && now.Sub(k.asked) < probeAgain
}

// ExpectElsewhere notes that another master has an order for minions. The one that they listen to sends it; the others look after a
// while whether somebody has. theirs are those that listen to the other one: if they have connections to several, one asks.
func (d *Deliverer) ExpectElsewhere(ids, theirs []string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, id := range ids {
		_, other := slices.BinarySearch(theirs, id)
		if d.holds(id, d.paths[id], now) || !other && d.here(id) {
			d.expectOne(id, now, true)
		} else if d.targets[id] == nil {
			after := PollInterval
			if other {
				after = probeOther
			}
			d.targets[id] = &awaited{next: now.Add(after + mathrand.N(after)), wait: probeFirst, look: true}
		}
	}
	d.signal()
}

// hears reports whether minions all listen to this one of several masters.
func (d *Deliverer) hears(ids []string) bool {
	if !d.several() {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	return !slices.ContainsFunc(ids, func(id string) bool { return !d.holds(id, d.paths[id], now) })
}

// holds reports whether what a minion proved at a time is true still: no connection has broken since, or its own is there. Callers hold mu.
func (d *Deliverer) holds(id string, at, now time.Time) bool {
	return now.Sub(at) < proofLife && (at.After(d.broken) || d.here(id))
}

// Contact notes a sign of life other than an answer: a sign-in, a start. Whether the minion listens is not known yet.
func (d *Deliverer) Contact(id string) {
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

// Heard notes an answer to something that was published.
func (d *Deliverer) Heard(id string, load map[string]any) {
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
	if d.several() {
		_, here = d.paths[id]
		if probe.IsProbe(load) {
			of := probe.Sender(load)
			here = of == d.opts.Name
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
		d.targets[id] = &awaited{next: now.Add(PollInterval + mathrand.N(PollInterval)), wait: probeFirst, look: true}
	case d.several() && waits && !probe.IsProbe(load) && !here && !d.here(id):
		// It lives, but nobody knows where it listens: it is asked, unless it was just now.
		if k := d.targets[id]; !k.look && now.Sub(k.asked) > PollInterval {
			k.next = now
		}
	case !another && (waits || probe.IsProbe(load)):
		delete(d.targets, id)
		d.ready[id] = struct{}{}
	default:
		return
	}
	d.signal()
}

// PathChanged notes that a subscription began or ended. Whose it is the transport may not know, so proofs hold only of minions whose own
// is known, and whoever is awaited may be there now: it is asked soon, but not with every connection that somebody makes.
func (d *Deliverer) PathChanged(up bool) {
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
	d.wakeTargets(now)
	d.signal()
}

// wakeTargets has those who are awaited asked again; callers hold mu.
func (d *Deliverer) wakeTargets(now time.Time) {
	if now.Sub(d.woken) < time.Second {
		return
	}
	d.woken = now
	for id, k := range d.targets {
		slow := d.slow(id, now)
		if k.look || slow && d.here(id) {
			continue
		}
		next := now.Add(probeFirst)
		if soonest := k.asked.Add(probeWake); slow && next.Before(soonest) {
			next = soonest
		}
		if !slow {
			k.wait = probeFirst
		}
		if next.Before(k.next) {
			k.next = next
		}
	}
}

// AskedElsewhere notes that another one of several masters asks minions, over the connections of all masters: what this one would ask counts as asked.
func (d *Deliverer) AskedElsewhere(ids []string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, id := range ids {
		if k := d.targets[id]; k != nil && !k.look {
			if !k.asked.IsZero() {
				k.wait = min(max(k.wait, now.Sub(k.asked)), probeLast) // the pauses of all grow together
			}
			k.asked, k.next = now, now.Add(k.wait+mathrand.N(k.wait))
		}
	}
}

// HeardElsewhere notes an answer that another master of the same store got. That one looks what waits; here it proves nothing, for
// this master does not see when the connection breaks.
func (d *Deliverer) HeardElsewhere(id string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.targets[id]; k != nil {
		k.next, k.look = time.Now().Add(PollInterval), true
	}
}

// sendProbes asks those for whom something waits whether they listen.
func (d *Deliverer) sendProbes(ctx context.Context, now time.Time) time.Duration {
	near, others, next := d.dueProbes(now)
	for here, ids := range map[bool][]string{true: near, false: others} {
		if len(ids) == 0 {
			continue
		}
		slices.Sort(ids)
		gone, err := d.opts.Wire.Probe(ctx, ids, here)
		d.failed(ctx, "cannot ask minions that are awaited", err)
		d.mu.Lock()
		for _, id := range gone {
			delete(d.targets, id) // it cannot hear; its sign-in brings it back
		}
		d.mu.Unlock()
	}
	return max(next, 10*time.Millisecond)
}

// dueProbes lists those to be asked now, by this one of several masters alone and by all of them, and says when the next are.
func (d *Deliverer) dueProbes(now time.Time) (near, others []string, next time.Duration) {
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
		if len(near)+len(others) == maxProbe {
			next = 0
			continue
		}
		if d.several() && (k.near || d.here(id)) {
			near = append(near, id)
		} else {
			others = append(others, id)
		}
		if d.here(id) {
			k.wait = min(max(k.wait, PollInterval), probeHere) // it will hear, and may be slow, or its answer was lost
		}
		k.near = false
		k.asked, k.next, k.wait = now, now.Add(k.wait), min(2*k.wait, probeLast)
		next = min(next, k.next.Sub(now))
	}
	return near, others, next
}
