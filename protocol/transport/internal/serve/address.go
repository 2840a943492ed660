package serve

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

const (
	// unknownShare is how many connections without a name receive publishes at an address without a known minion.
	unknownShare = 16
	// minionTime is how long a minion counts as known at an address after it was last seen there.
	minionTime = time.Hour
	// withheldTime is how long messages are kept for connections that are withheld. If a minion becomes known at the
	// address in time, they receive them late.
	withheldTime = 10 * time.Second
	// maxAddresses is the number of addresses at which those without connections and minions are removed.
	maxAddresses = 8192
)

// addresses are the networks that subscribers connect from. A stock minion does not identify itself on the publish
// channel, so a connection without a name must receive everything. A peer without a key could open thousands of
// connections and have each job written a thousand times. So only unknownShare of them receive publishes per address,
// unless a minion is known there: one that signed in and sealed a request, or answered a probe. The roster's lock
// guards addresses.
type addresses struct {
	at map[netip.Prefix]*address
}

// address is the state of one network.
type address struct {
	minion   time.Time // when it was last seen
	named    int       // connections of identified minions
	share    int       // connections that count against unknownShare
	withheld int       // connections that receive nothing
}

// hasMinion reports whether a minion is known at the address.
func (a *address) hasMinion(now time.Time) bool {
	return a.named > 0 || !a.minion.IsZero() && now.Sub(a.minion) < minionTime
}

// addressOf returns the state of an address and creates it if it does not exist.
func (s *addresses) addressOf(addr netip.Prefix, now time.Time) *address {
	a := s.at[addr]
	if a != nil {
		return a
	}
	if len(s.at) >= maxAddresses {
		maps.DeleteFunc(s.at, func(_ netip.Prefix, a *address) bool { return a.share+a.withheld == 0 && !a.hasMinion(now) })
	}
	if s.at == nil {
		s.at = make(map[netip.Prefix]*address)
	}
	a = new(address)
	s.at[addr] = a
	return a
}

// admitMember decides whether a new member receives publishes before it has a name. The caller holds mu, as for all
// unexported functions below.
func (r *Roster) admitMember(m *Member, now time.Time) {
	a := r.addressOf(m.addr, now)
	// guard: unknown-subscribers TestUnknownSubscribers
	if a.hasMinion(now) {
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

// memberLeft updates the address of a member that ended.
func (r *Roster) memberLeft(m *Member, now time.Time) {
	r.endShare(m)
	if m.id != "" {
		r.lostName(m, now)
	}
	if *r.addressOf(m.addr, now) == (address{}) {
		delete(r.at, m.addr)
	}
}

// gotName records that a member got a name. It then receives what was published for that name while it was withheld,
// and its address has a known minion.
func (r *Roster) gotName(m *Member, id string, now time.Time) {
	r.addressOf(m.addr, now).named++
	r.releaseMember(m, id, now)
	r.releaseAll(m.addr, now)
}

// lostName records that a member no longer has a name.
func (r *Roster) lostName(m *Member, now time.Time) {
	a := r.addressOf(m.addr, now)
	a.named--
	a.minion = now
}

// endShare removes a member from the count of those without a name.
func (r *Roster) endShare(m *Member) {
	a := r.addressOf(m.addr, time.Now())
	if m.quota {
		a.share--
		m.quota = false
	}
	if m.withheld.Swap(false) {
		a.withheld--
	}
}

// releaseMember sends a member what was published for id while it was withheld; "" means all messages, since it may
// be any minion.
func (r *Roster) releaseMember(m *Member, id string, now time.Time) {
	was := m.withheld.Load()
	r.endShare(m)
	if !was || r.closed || r.strict() || m.silent.Load() {
		return
	}
	for _, x := range r.kept {
		if !x.at.Before(m.since) && now.Sub(x.at) < withheldTime && (id == "" || x.topics == nil || slices.Contains(x.topics, id)) {
			x.put(m, false)
		}
	}
}

// releaseAll releases the members at an address at which a minion became known.
func (r *Roster) releaseAll(addr netip.Prefix, now time.Time) {
	if r.addressOf(addr, now).withheld == 0 {
		return
	}
	for m := range r.all {
		if m.addr == addr && m.withheld.Load() {
			r.releaseMember(m, "", now)
		}
	}
}

// proveAddress records that a minion is known at the address of a connection on either port. It reports whether
// members wait to be released.
func (r *Roster) proveAddress(addr netip.Prefix) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.addressOf(addr, time.Now())
	a.minion = time.Now()
	return a.withheld > 0
}

// releaseAt releases the members at an address at which a minion became known.
func (r *Roster) releaseAt(addr netip.Prefix) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.releaseAll(addr, time.Now())
}

// MinionAt reports whether a minion is known at the address of a subscribed connection.
func (r *Roster) MinionAt(peer string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.byPeer[peer]
	return m != nil && r.addressOf(m.addr, time.Now()).hasMinion(time.Now())
}
