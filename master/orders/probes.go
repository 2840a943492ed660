package orders

import (
	"context"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/brine-salt/brine/master/internal/probe"
)

const (
	// proofLife is how long an answer proves that a minion hears what is published. If the connection
	// breaks within it, a job may need recovery; it never runs twice.
	proofLife = 30 * time.Second
	// probeFirst and probeLast bound the pause between probes of a minion that does not answer. In a
	// cluster, the master that has just heard the minion has probeFirst to send before the others probe.
	probeFirst, probeLast = 250 * time.Millisecond, 5 * time.Minute
	// probeHere is probeLast for a minion that is connected here. In a cluster, each master that it is
	// connected to probes it. If they did so every few seconds, a minion that needs seconds for an answer
	// would have time for nothing else. It does answer in the end what it was asked.
	probeHere = 2 * time.Minute
	// probeAgain is how long a minion that was probed may take before a new reason to probe it counts. The
	// pauses go on growing meanwhile.
	probeAgain = 30 * time.Second
	// probeWake is how long a minion that was probed, and that no master knows to be connected, is left
	// alone when something connects.
	probeWake = 2 * time.Second
	// probeOther is how long the others leave a minion to the master that was given an order for it and
	// has a connection to it.
	probeOther = 5 * time.Second
	// maxProbe is how many minions one question is for.
	maxProbe = 500
	// maxProofs bounds how many minions' proofs are remembered, with some 120 bytes for each.
	maxProofs = 100_000
)

// Expect notes that something waits for minions.
func (d *Deliverer) Expect(ids ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	for _, id := range ids {
		d.expectOne(d.peers.of(id), now, false)
	}
	d.wakeRun()
}

// expectOne is Expect for one minion; callers hold mu. looked reports that another master that has
// the minion was given time to send, and has not.
func (d *Deliverer) expectOne(p *peer, now moment, looked bool) {
	switch {
	case !d.several() && d.holds(p, p.heard, now), d.holds(p, p.path, now):
		d.peers.markAnswered(p)
	case p.slow(now):
	case d.several() && d.here(p.id):
		d.peers.probe(p, now, probeFirst)
	case d.several() && !looked && d.elsewhere(p.id):
		d.peers.leave(p, now+PollInterval+mathrand.N(PollInterval))
	case d.several():
		d.peers.probe(p, now+probeFirst, probeFirst)
	default:
		d.peers.probe(p, now, probeFirst)
	}
}

// ExpectElsewhere notes that another master has an order for minions. The master that they listen to sends
// it; the others look later whether that was done. theirs, which is sorted, are those that are connected to
// the other master: if they have connections to several, that one probes them.
func (d *Deliverer) ExpectElsewhere(ids, theirs []string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	for _, id := range ids {
		p := d.peers.of(id)
		_, other := slices.BinarySearch(theirs, id)
		if d.holds(p, p.path, now) || !other && d.here(id) {
			d.expectOne(p, now, true)
		} else if p.state == idle {
			after := PollInterval
			if other {
				after = probeOther
			}
			d.peers.leave(p, now+after+mathrand.N(after))
		}
	}
	d.wakeRun()
}

// hears reports whether minions all listen to this one of several masters.
func (d *Deliverer) hears(ids []string) bool {
	if !d.several() {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	return !slices.ContainsFunc(ids, func(id string) bool {
		p := d.peers.byID[id]
		return p == nil || !d.holds(p, p.path, now)
	})
}

// holds reports whether what a minion proved at a moment is true still: no connection has broken
// since, or its own is there. Callers hold mu.
func (d *Deliverer) holds(p *peer, at, now moment) bool {
	return now-at < proofLife && (at > d.broken || d.here(p.id))
}

// Contact notes a sign of life other than an answer: a sign-in, a start. Whether the minion listens is
// not known yet.
func (d *Deliverer) Contact(id string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.peers.of(id)
	d.peers.hear(p, 0)
	p.path = 0
	p.asked = 0 // what it did not answer it may not have heard
	d.peers.markLookUp(p)
	p.signedIn = true
	d.wakeRun()
}

// Ping probes a minion that asks for it, over the connections of all masters.
func (d *Deliverer) Ping(ctx context.Context, id string) {
	if d == nil {
		return
	}
	_, err := d.opts.Wire.Probe(ctx, []string{id}, false)
	d.logFailure(ctx, "Cannot ping a minion that asks for it", err)
}

// Heard notes an answer to something that was published.
func (d *Deliverer) Heard(id string, load map[string]any) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	if d.peers.proven >= maxProofs {
		d.peers.sweep(now, true)
	}
	p := d.peers.of(id)
	d.peers.hear(p, now)
	another, here := false, false
	if d.several() {
		here = p.path != 0
		if probe.IsProbe(load) {
			of := probe.Sender(load)
			here = of == d.opts.Name
			another = !here && of != ""
		}
		p.path = 0
		if here {
			p.path = now
		}
	}
	if p.silent {
		d.peers.markLookUp(p)
		d.wakeRun()
	}
	waits := p.state != idle
	switch {
	case another && waits:
		// It listens to another master, which is told of this answer and sends: over one connection, not
		// over all that the minion may have.
		d.peers.leave(p, now+PollInterval+mathrand.N(PollInterval))
	case d.several() && waits && !probe.IsProbe(load) && !here && !d.here(id):
		// It lives, but nobody knows where it listens: it is asked, unless it was just now.
		if p.state == probing && now-p.asked > PollInterval {
			p.next = now
		}
	case !another && (waits || probe.IsProbe(load)):
		d.peers.enter(p, idle)
		d.peers.markAnswered(p)
	default:
		return
	}
	d.wakeRun()
}

// PathChanged notes that a subscription began or ended. The transport may not know of which minion. So after
// an end, a proof holds only for minions whose own connection is known to be there. After a beginning, any
// minion that is awaited may be there: all are probed soon, but not once more with each connection.
func (d *Deliverer) PathChanged(up bool) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	if !up {
		d.broken = now
		return
	}
	d.wakeAwaited(now)
	d.wakeRun()
}

// wakeAwaited brings forward the probes of those that are awaited; callers hold mu.
func (d *Deliverer) wakeAwaited(now moment) {
	if now-d.woken < time.Second {
		return
	}
	d.woken = now
	for _, p := range d.peers.awaited {
		slow := p.slow(now)
		if p.state == deferred || slow && d.here(p.id) {
			continue
		}
		next := now + probeFirst
		if slow {
			next = max(next, p.asked+probeWake)
		} else {
			p.wait = probeFirst
		}
		p.next = min(p.next, next)
	}
}

// AskedElsewhere notes that another master of the cluster probes minions over the connections of all masters,
// this one's included: what this one would probe counts as probed.
func (d *Deliverer) AskedElsewhere(ids []string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	for _, id := range ids {
		p := d.peers.byID[id]
		if p == nil || p.state != probing {
			continue
		}
		if p.asked != 0 {
			p.wait = min(max(p.wait, now-p.asked), probeLast) // the pauses of all grow together
		}
		p.asked, p.next = now, now+p.wait+mathrand.N(p.wait)
	}
}

// HeardElsewhere notes an answer that another master of the cluster got. That one looks what waits. Here the
// answer proves nothing, for this master does not see when the connection breaks.
func (d *Deliverer) HeardElsewhere(id string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.peers.byID[id]; p != nil && p.state != idle {
		d.peers.enter(p, deferred)
		p.next = d.now() + PollInterval
	}
}

// sendProbes asks those for whom something waits whether they listen.
func (d *Deliverer) sendProbes(ctx context.Context, now time.Time) time.Duration {
	near, others, next := d.dueProbes(d.moment(now))
	for here, ids := range map[bool][]string{true: near, false: others} {
		if len(ids) == 0 {
			continue
		}
		slices.Sort(ids)
		gone, err := d.opts.Wire.Probe(ctx, ids, here)
		d.logFailure(ctx, "Cannot ask minions that are awaited", err)
		d.mu.Lock()
		for _, id := range gone {
			d.peers.enter(d.peers.of(id), idle) // it cannot hear; its sign-in brings it back
		}
		d.mu.Unlock()
	}
	return max(next, 10*time.Millisecond)
}

// dueProbes lists those to be asked now, by this one of several masters alone and by all of them, and
// says when the next are.
func (d *Deliverer) dueProbes(now moment) (near, others []string, next time.Duration) {
	next = time.Hour
	d.mu.Lock()
	defer d.mu.Unlock()
	var over []*peer // deferred, and the other master's time is over
	awaited := d.peers.awaited
	for i, from := 0, mathrand.N(max(1, len(awaited))); i < len(awaited); i++ {
		p := awaited[(from+i)%len(awaited)] // from any of them: if many are due, each has its turn
		if wait := p.next - now; wait > 0 {
			next = min(next, wait)
			continue
		}
		if p.state == deferred {
			over = append(over, p)
			continue
		}
		if len(near)+len(others) == maxProbe {
			next = 0
			continue
		}
		if d.several() && (p.near || d.here(p.id)) {
			near = append(near, p.id)
		} else {
			others = append(others, p.id)
		}
		if d.here(p.id) {
			// It hears the probe. It may be slow, or its answer is lost.
			p.wait = min(max(p.wait, PollInterval), probeHere)
		}
		p.near = false
		p.asked, p.next, p.wait = now, now+p.wait, min(2*p.wait, probeLast)
		next = min(next, p.next-now)
	}
	for _, p := range over {
		d.peers.enter(p, idle)
		d.peers.markLookUp(p)
		d.wakeRun()
	}
	return near, others, next
}
