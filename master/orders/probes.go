package orders

import (
	"context"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/brine-salt/brine/master/internal/probe"
)

const (
	// proofLife is how long an answer proves that a minion receives publishes. If the connection breaks within
	// it, a job may need recovery; it never runs twice.
	proofLife = 30 * time.Second
	// probeFirst and probeLast limit the pause between probes of a minion that does not answer. In a cluster,
	// the master that has just heard the minion has probeFirst to send before the others probe.
	probeFirst, probeLast = 250 * time.Millisecond, 5 * time.Minute
	// probeHere replaces probeLast for a minion that is connected here. In a cluster, each master that it is
	// connected to probes it. If they did so every few seconds, a minion that takes seconds to answer could do
	// nothing else.
	probeHere = 2 * time.Minute
	// probeAgain is how long after a probe further reasons to probe are ignored. The pauses grow meanwhile.
	probeAgain = 30 * time.Second
	// probeWake is how long after a probe a minion without a known connection is not probed again because
	// something connects.
	probeWake = 2 * time.Second
	// probeOther is how long the others leave a minion to the master that accepted an order for it and is
	// connected to it.
	probeOther = 5 * time.Second
	// maxProbe is the maximum number of minions in one probe.
	maxProbe = 500
	// maxProofs limits the minions whose answers are recorded, at some 120 bytes each.
	maxProofs = 100_000
)

// Expect records that deliveries are pending for minions.
func (d *Deliverer) Expect(ids ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	for _, id := range ids {
		d.expectOne(d.peers.of(id), now, false)
	}
	d.wakeRun()
}

// expectOne is Expect for one minion. looked means that a peer master which has the minion was given time to
// send, and has not. The caller holds mu.
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

// ExpectElsewhere records that a peer master has an order for minions. The master to which a minion listens
// sends it; the others check later. theirs, which must be sorted, are those connected to the peer: if they have
// several connections, the peer probes them.
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

// hears reports whether all minions listen to this master of the cluster.
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

// holds reports whether a minion's answer at a moment is still a proof: no connection has broken since, or its
// own is known to exist. The caller holds mu.
func (d *Deliverer) holds(p *peer, at, now moment) bool {
	return now-at < proofLife && (at > d.broken || d.here(p.id))
}

// Contact records a sign of life other than an answer: a sign-in or a start. It does not prove that the minion
// listens.
func (d *Deliverer) Contact(id string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.peers.of(id)
	d.peers.hear(p, 0)
	p.path = 0
	p.asked = 0 // it may not have received the unanswered probe
	d.peers.markLookUp(p)
	p.signedIn = true
	d.wakeRun()
}

// Ping probes a minion at its own request, over the connections of all masters.
func (d *Deliverer) Ping(ctx context.Context, id string) {
	if d == nil {
		return
	}
	_, err := d.opts.Wire.Probe(ctx, []string{id}, false)
	d.logFailure(ctx, "Cannot ping a minion that requested it", err)
}

// Heard records an answer to something published.
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
		// It listens to a peer master, which sees this answer and sends over one connection, not over all that
		// the minion may have.
		d.peers.leave(p, now+PollInterval+mathrand.N(PollInterval))
	case d.several() && waits && !probe.IsProbe(load) && !here && !d.here(id):
		// It is alive, but its connection is unknown: probe it, unless that was just done.
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

// PathChanged records that a subscription began or ended. The transport may not know whose. So after an end, an
// answer remains a proof only for minions whose own connection is known to exist. After a beginning, any
// awaited minion may be the one: all are probed soon, but not again for each connection.
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

// wakeAwaited brings forward the probes of awaited minions. The caller holds mu.
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

// AskedElsewhere records that a peer master probes minions over the connections of all masters. They count as
// probed here too.
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
			p.wait = min(max(p.wait, now-p.asked), probeLast) // pauses grow on all masters
		}
		p.asked, p.next = now, now+p.wait+mathrand.N(p.wait)
	}
}

// HeardElsewhere records an answer that a peer master received. The peer sends what is pending. The answer
// proves nothing here, because this master does not see when the connection breaks.
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

// sendProbes probes the minions that are due. It returns how long until the next.
func (d *Deliverer) sendProbes(ctx context.Context, now time.Time) time.Duration {
	near, others, next := d.dueProbes(d.moment(now))
	for here, ids := range map[bool][]string{true: near, false: others} {
		if len(ids) == 0 {
			continue
		}
		slices.Sort(ids)
		d.pace.published()
		gone, err := d.opts.Wire.Probe(ctx, ids, here)
		d.logFailure(ctx, "Cannot query the awaited minions", err)
		d.mu.Lock()
		for _, id := range gone {
			d.peers.enter(d.peers.of(id), idle) // it cannot listen; sign-in revives it
		}
		d.mu.Unlock()
	}
	return max(next, 10*time.Millisecond)
}

// dueProbes returns the minions to probe now, over this master's connections alone (near) and over those of the
// whole cluster (others), and how long until the next.
func (d *Deliverer) dueProbes(now moment) (near, others []string, next time.Duration) {
	next = time.Hour
	d.mu.Lock()
	defer d.mu.Unlock()
	var over []*peer // deferred, and the peer's time is over
	awaited := d.peers.awaited
	for i, from := 0, mathrand.N(max(1, len(awaited))); i < len(awaited); i++ {
		p := awaited[(from+i)%len(awaited)] // from a random one, for fairness
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
			// It receives probes. It may be slow, or its answer was lost.
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
