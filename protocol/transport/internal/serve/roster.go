package serve

import (
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Roster holds the subscribers. A connection without a name may belong to any minion and receives everything,
// unless there are too many at an address without a known minion (see addresses). A connection with a name receives
// messages for all and for that name. A connection whose path is dead receives nothing and does not count until it
// works again.
type Roster struct {
	strict func() bool    // while it returns true, connections without a name receive nothing
	named  func(net.Conn) // called with a connection that got a name; may be nil

	mu      sync.Mutex // guards the fields below, and the ids of members
	all     map[*Member]struct{}
	unnamed map[*Member]struct{}
	byID    map[string][]*Member // nearly always one
	byPeer  map[string]*Member
	silent  int
	closed  bool
	arrivals
	addresses
}

// A Member is one subscribed connection.
type Member struct {
	Box    *Outbox
	conn   net.Conn
	peer   string // remote address
	addr   netip.Prefix
	id     string // "" while unknown; guarded by Roster.mu
	silent atomic.Bool
	quota  bool // counts against unknownShare; guarded by Roster.mu
	// withheld is set while the connection receives no publishes, because its address had no known minion and no free
	// share when it joined.
	withheld atomic.Bool
	since    time.Time // when withholding began
}

// Receives reports whether a member receives publishes: its path is alive and it is not withheld.
func (m *Member) Receives() bool { return !m.silent.Load() && !m.withheld.Load() }

// Silent reports whether the path to a member is dead.
func (m *Member) Silent() bool { return m.silent.Load() }

// NewRoster returns an empty roster. While strict returns true, connections without a name receive only messages of
// One. A nil strict means never.
func NewRoster(strict func() bool) *Roster {
	if strict == nil {
		strict = func() bool { return false }
	}
	return &Roster{strict: strict, all: make(map[*Member]struct{}), unnamed: make(map[*Member]struct{}), byID: make(map[string][]*Member),
		byPeer: make(map[string]*Member)}
}

// Add adds a connection, sends it the messages since its arrival a, and ends the arrival. A nil a means that it
// arrived just now.
func (r *Roster) Add(peer string, box *Outbox, c net.Conn, a *Arrival) *Member {
	m := &Member{Box: box, conn: c, peer: peer, addr: prefixOf(peer)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[m], r.unnamed[m], r.byPeer[peer] = struct{}{}, struct{}{}, m
	r.admitMember(m, time.Now())
	r.catchUp(m, a)
	r.endArrival(a)
	return m
}

// Remove removes a connection and reports whether it counted until now.
func (r *Roster) Remove(m *Member) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	counted := !m.silent.Load()
	if counted {
		r.unfileMember(m)
	} else {
		r.silent--
	}
	delete(r.all, m)
	r.memberLeft(m, time.Now())
	if r.byPeer[m.peer] == m {
		delete(r.byPeer, m.peer)
	}
	return counted
}

// Silence records that the path of a connection is dead, or works again. It reports whether that changed.
func (r *Roster) Silence(m *Member, silent bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.all[m]; !ok || m.silent.Load() == silent {
		return false
	}
	m.silent.Store(silent)
	if silent {
		r.silent++
		r.unfileMember(m)
	} else {
		r.silent--
		r.fileMember(m)
	}
	return true
}

// Silent returns how many connections are silent.
func (r *Roster) Silent() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.silent
}

// allMembers returns all members, including silent ones.
func (r *Roster) allMembers() []*Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.all))
}

// Name sets the minion id of a connection; "" means unknown.
func (r *Roster) Name(m *Member, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.all[m]; ok {
		r.setName(m, id)
	}
}

// NamePeer is like Name for the connection from a remote address. It reports whether there is such a connection.
func (r *Roster) NamePeer(peer, id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.byPeer[peer]
	if m != nil {
		r.setName(m, id)
	}
	return m != nil
}

// setName is the body of Name. Callers hold mu.
func (r *Roster) setName(m *Member, id string) {
	switch {
	case id != "" && m.id == "":
		if r.named != nil {
			r.named(m.conn)
		}
		r.gotName(m, id, time.Now())
	case id == "" && m.id != "":
		r.lostName(m, time.Now())
	}
	if m.silent.Load() {
		m.id = id
		return
	}
	r.unfileMember(m)
	m.id = id
	r.fileMember(m)
}

// fileMember adds a member to the index by its name. Callers hold mu.
func (r *Roster) fileMember(m *Member) {
	if m.id == "" {
		r.unnamed[m] = struct{}{}
		return
	}
	r.byID[m.id] = append(r.byID[m.id], m)
}

// unfileMember removes a member from the index. Callers hold mu.
func (r *Roster) unfileMember(m *Member) {
	delete(r.unnamed, m)
	of := slices.DeleteFunc(r.byID[m.id], func(other *Member) bool { return other == m })
	if len(of) > 0 {
		r.byID[m.id] = of
	} else {
		delete(r.byID, m.id)
	}
}

// Count returns the number of connections that are not silent.
func (r *Roster) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all) - r.silent
}

// Reach returns how many of the ids are names of connections, and how many connections have no name, arriving ones
// included.
func (r *Roster) Reach(ids ...string) (named, nameless int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if len(r.byID[id]) > 0 {
			named++
		}
	}
	return named, len(r.unnamed) + r.countArriving()
}

// Named returns the number of names.
func (r *Roster) Named() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byID)
}

// Present returns the names, sorted.
func (r *Roster) Present() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.byID))
}

// Close stops Each and One from sending.
func (r *Roster) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// Closed reports whether the roster is closed.
func (r *Roster) Closed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// Each calls put for every connection that may belong to one of topics, and reports whether the roster is open.
// topics must not contain an id twice; nil means all. put must not wait, because it runs under the lock that keeps
// messages in one order. For arriving connections the message, of size bytes, is kept; put is called for them later,
// with late.
func (r *Roster) Each(topics []string, size int, put func(m *Member, late bool)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	if !r.strict() {
		for m := range r.unnamed {
			if !m.withheld.Load() {
				put(m, false)
			}
		}
		r.keepMessage(topics, size, put)
	}
	if topics == nil {
		for _, of := range r.byID {
			for _, m := range of {
				put(m, false)
			}
		}
		return true
	}
	for _, id := range topics {
		for _, m := range r.byID[id] {
			put(m, false)
		}
	}
	return true
}

// Unnamed reports whether a connection from this remote address exists and has no name.
func (r *Roster) Unnamed(peer string) bool { return r.One(peer, func(*Member) {}) }

// One calls put for the connection from a remote address if it has no name. It reports whether it did.
func (r *Roster) One(peer string, put func(m *Member)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.byPeer[peer]
	if r.closed || m == nil || m.id != "" || m.silent.Load() {
		return false
	}
	put(m)
	return true
}
