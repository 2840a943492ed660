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

// Roster is who is subscribed, and under which name. A connection without one may belong to anybody and gets everything, unless too many come from
// an address that no minion is known at; one with a name gets what is for everybody or for that name. One whose path is dead gets nothing and is
// not counted until there is a sign of life.
type Roster struct {
	strict func() bool    // while it is true, a connection without a name gets nothing
	named  func(net.Conn) // told of a connection that has got a name; nil tells nobody

	mu      sync.Mutex // guards the fields below, and the ids of members
	all     map[*Member]struct{}
	unnamed map[*Member]struct{}
	byID    map[string]map[*Member]struct{}
	byPeer  map[string]*Member
	silent  int
	closed  bool
	arrivals
	addresses
}

// Member is one subscribed connection.
type Member struct {
	Box    *Outbox
	conn   net.Conn
	peer   string // remote address
	addr   netip.Prefix
	id     string // "" while nobody knows; guarded by Roster.mu
	silent atomic.Bool
	quota  bool // it is one of unknownShare; guarded by Roster.mu
	// withheld is set while the connection gets no publishes: it came when its address had no minion and no share left.
	withheld atomic.Bool
	since    time.Time // when it began to be withheld
}

// Receives reports whether publishes are for a member at all: its path is alive, and it has a name or is one of those that need none.
func (m *Member) Receives() bool { return !m.silent.Load() && !m.withheld.Load() }

// Silent says whether the path to a member is dead, as far as is known.
func (m *Member) Silent() bool { return m.silent.Load() }

// NewRoster makes an empty one. While it is strict, connections without a name get nothing but what One puts; nil is never.
func NewRoster(strict func() bool) *Roster {
	if strict == nil {
		strict = func() bool { return false }
	}
	return &Roster{strict: strict, all: make(map[*Member]struct{}), unnamed: make(map[*Member]struct{}), byID: make(map[string]map[*Member]struct{}),
		byPeer: make(map[string]*Member)}
}

// Add takes in a connection from a remote address and gives it what was published since its arrival, which has ended; nil is just now.
func (r *Roster) Add(peer string, box *Outbox, c net.Conn, a *Arrival) *Member {
	m := &Member{Box: box, conn: c, peer: peer, addr: prefixOf(peer)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[m], r.unnamed[m], r.byPeer[peer] = struct{}{}, struct{}{}, m
	r.admit(m, time.Now())
	r.catchUp(m, a)
	r.arrived(a)
	return m
}

// Remove forgets a connection, and says whether it counted until now.
func (r *Roster) Remove(m *Member) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	counted := !m.silent.Load()
	if counted {
		r.unfile(m)
	} else {
		r.silent--
	}
	delete(r.all, m)
	r.left(m, time.Now())
	if r.byPeer[m.peer] == m {
		delete(r.byPeer, m.peer)
	}
	return counted
}

// Silence says that the path of a connection is dead, or alive again, and reports whether that is news.
func (r *Roster) Silence(m *Member, silent bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.all[m]; !ok || m.silent.Load() == silent {
		return false
	}
	m.silent.Store(silent)
	if silent {
		r.silent++
		r.unfile(m)
	} else {
		r.silent--
		r.file(m)
	}
	return true
}

// Silent is how many connections do not count.
func (r *Roster) Silent() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.silent
}

// members lists all, also those that do not count.
func (r *Roster) members() []*Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.all))
}

// Name says whose connection it is; "" says that nobody knows.
func (r *Roster) Name(m *Member, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.all[m]; ok {
		r.rename(m, id)
	}
}

// NamePeer is Name for the connection from an address, and says whether there is one.
func (r *Roster) NamePeer(peer, id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.byPeer[peer]
	if m != nil {
		r.rename(m, id)
	}
	return m != nil
}

// rename is Name; callers hold mu.
func (r *Roster) rename(m *Member, id string) {
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
	r.unfile(m)
	m.id = id
	r.file(m)
}

// file puts a member where its name says; callers hold mu.
func (r *Roster) file(m *Member) {
	if m.id == "" {
		r.unnamed[m] = struct{}{}
		return
	}
	if r.byID[m.id] == nil {
		r.byID[m.id] = make(map[*Member]struct{})
	}
	r.byID[m.id][m] = struct{}{}
}

// unfile takes a member away from there; callers hold mu.
func (r *Roster) unfile(m *Member) {
	delete(r.unnamed, m)
	delete(r.byID[m.id], m)
	if len(r.byID[m.id]) == 0 {
		delete(r.byID, m.id)
	}
}

// Count is the number of connections that count.
func (r *Roster) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all) - r.silent
}

// Reach says how many of some ids are names of connections, and how many connections have none, those that arrive included.
func (r *Roster) Reach(ids ...string) (named, nameless int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if len(r.byID[id]) > 0 {
			named++
		}
	}
	return named, len(r.unnamed) + r.arriving()
}

// Present lists the names, sorted.
func (r *Roster) Present() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.byID))
}

// Close keeps Each and One from putting anything more.
func (r *Roster) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// Closed says whether it is closed.
func (r *Roster) Closed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// Each calls put for every connection that may belong to one of topics, which name each id once, all of them if topics is nil, and says
// whether the roster is open. put must not wait: messages stay in one order for all. It is called again, with late, for connections that
// are arriving, and until then size bytes are kept for them.
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
		r.keep(topics, size, put)
	}
	if topics == nil {
		for _, of := range r.byID {
			for m := range of {
				put(m, false)
			}
		}
		return true
	}
	for _, id := range topics {
		for m := range r.byID[id] {
			put(m, false)
		}
	}
	return true
}

// Unnamed says whether there is a connection from an address and nobody knows whose it is.
func (r *Roster) Unnamed(peer string) bool { return r.One(peer, func(*Member) {}) }

// One calls put for the connection from an address while nobody knows whose it is, and says whether it did.
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
