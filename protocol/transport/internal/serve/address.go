package serve

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

const (
	// unknownShare is how many connections without a name get what is published, of an address at which no minion is known.
	unknownShare = 16
	// minionTime is how long a minion is known at an address after its last sign of life there.
	minionTime = time.Hour
	// withheldTime is for how long a connection that was withheld gets what it missed, as soon as a minion is known there.
	withheldTime = 10 * time.Second
	// maxAddresses is from how many addresses on those without connections and minions are forgotten.
	maxAddresses = 8192
)

// addresses are where subscribers come from. An address with a minion, one that has signed in and sealed a request or has answered who it is, may
// have thousands of connections without a name that all get what is published: stock minions do not say who they are. Any other has
// unknownShare, so that a peer without a key cannot have each job written a thousand times. The roster's lock guards it.
type addresses struct {
	at map[netip.Prefix]*address
}

// address is one of them.
type address struct {
	minion   time.Time // the last sign of life
	named    int       // connections with a name
	share    int       // connections that count for unknownShare
	withheld int       // connections that get nothing
}

// known reports whether there is a minion.
func (a *address) known(now time.Time) bool {
	return a.named > 0 || !a.minion.IsZero() && now.Sub(a.minion) < minionTime
}

// from returns what is known of an address.
func (s *addresses) from(addr netip.Prefix, now time.Time) *address {
	a := s.at[addr]
	if a != nil {
		return a
	}
	if len(s.at) >= maxAddresses {
		maps.DeleteFunc(s.at, func(_ netip.Prefix, a *address) bool { return a.share+a.withheld == 0 && !a.known(now) })
	}
	if s.at == nil {
		s.at = make(map[netip.Prefix]*address)
	}
	a = new(address)
	s.at[addr] = a
	return a
}

// admit decides whether a new member gets publishes before it has a name. As of all below but the exported methods, callers hold mu.
func (r *Roster) admit(m *Member, now time.Time) {
	a := r.from(m.addr, now)
	// guard: unknown-subscribers TestUnknownSubscribers
	if a.known(now) {
		return
	}
	// guard: unknown-subscribers TestUnknownSubscribers instead: true
	if a.share < unknownShare {
		a.share++
		m.quota = true
		return
	}
	a.withheld++
	m.since = now
	m.withheld.Store(true)
	r.until = now.Add(withheldTime)
}

// left is the end of a member.
func (r *Roster) left(m *Member, now time.Time) {
	r.unshare(m)
	if m.id != "" {
		r.lostName(m, now)
	}
	if *r.from(m.addr, now) == (address{}) {
		delete(r.at, m.addr)
	}
}

// gotName notes that a member has a name now: it gets what was published for that while it was withheld.
func (r *Roster) gotName(m *Member, id string, now time.Time) {
	r.from(m.addr, now).named++
	r.release(m, id, now)
	r.releaseAll(m.addr, now)
}

// lostName notes that a member has no name any more.
func (r *Roster) lostName(m *Member, now time.Time) {
	a := r.from(m.addr, now)
	a.named--
	a.minion = now
}

// unshare ends that a member counts as one without a name.
func (r *Roster) unshare(m *Member) {
	a := r.from(m.addr, time.Now())
	if m.quota {
		a.share--
		m.quota = false
	}
	if m.withheld.Swap(false) {
		a.withheld--
	}
}

// release gives a member what was published for id, or with "" for anyone, while it was withheld.
func (r *Roster) release(m *Member, id string, now time.Time) {
	was := m.withheld.Load()
	r.unshare(m)
	if !was || r.closed || r.strict() || m.silent.Load() {
		return
	}
	for _, x := range r.kept {
		if !x.at.Before(m.since) && now.Sub(x.at) < withheldTime && (id == "" || x.topics == nil || slices.Contains(x.topics, id)) {
			x.put(m, false)
		}
	}
}

// releaseAll releases the members at an address, which has a minion.
func (r *Roster) releaseAll(addr netip.Prefix, now time.Time) {
	if r.from(addr, now).withheld == 0 {
		return
	}
	for m := range r.all {
		if m.addr == addr && m.withheld.Load() {
			r.release(m, "", now)
		}
	}
}

// prove notes that the peer of a connection, on either port, is a minion, and reports whether there are members to be released.
func (r *Roster) prove(addr netip.Prefix) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.from(addr, time.Now())
	a.minion = time.Now()
	return a.withheld > 0
}

// releaseAt releases the members at an address, which has a minion.
func (r *Roster) releaseAt(addr netip.Prefix) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.releaseAll(addr, time.Now())
}

// MinionAt reports whether a minion is known at the address of a connection that has subscribed.
func (r *Roster) MinionAt(peer string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.byPeer[peer]
	return m != nil && r.from(m.addr, time.Now()).known(time.Now())
}
