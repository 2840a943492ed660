package serve

import "time"

const (
	// arrivalTime is how long a connection may take to subscribe after its accept without missing messages.
	arrivalTime = 5 * time.Second
	// maxKept and maxKeptBytes limit the messages that are kept for arriving connections.
	maxKept      = 256
	maxKeptBytes = 4 << 20
)

// An Arrival is a connection between its accept and its subscription. The peer may consider itself connected as soon
// as the handshake is over, and send its start event on another connection. A job published in reply to that event
// must reach this connection too.
type Arrival struct{ since time.Time }

// arrivals are the arriving connections and the messages that were published meanwhile. The roster's lock guards it.
type arrivals struct {
	coming map[*Arrival]struct{}
	until  time.Time // keep messages for withheld connections until then
	kept   []message
	bytes  int
}

// A message is a kept message; put sends it to a member.
type message struct {
	at     time.Time
	topics []string // nil for all minions
	size   int
	put    func(m *Member, late bool)
}

// Expect records an arriving connection. It counts until Arrived is called, or for arrivalTime.
func (r *Roster) Expect() *Arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &Arrival{time.Now()}
	if r.coming == nil {
		r.coming = make(map[*Arrival]struct{})
	}
	r.coming[a] = struct{}{}
	return a
}

// Arrived ends an arrival; a may be nil.
func (r *Roster) Arrived(a *Arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endArrival(a)
}

// Arriving returns how many connections are arriving.
func (r *Roster) Arriving() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.countArriving()
}

// Keep keeps a message of size bytes for arriving and withheld connections. put is called with late for arriving
// ones.
func (r *Roster) Keep(size int, put func(m *Member, late bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keepMessage(nil, size, put)
}

// CatchUp sends a member the messages since its arrival.
func (r *Roster) CatchUp(m *Member, a *Arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.catchUp(m, a)
}

// endArrival removes an arrival. With the last one the kept messages are dropped.
func (r *arrivals) endArrival(a *Arrival) {
	delete(r.coming, a)
	if len(r.coming) == 0 && time.Now().After(r.until) {
		r.kept, r.bytes = nil, 0
	}
}

// countArriving counts the arriving connections and drops those that took too long. The caller holds mu, as for
// endArrival, keepMessage and catchUp.
func (r *arrivals) countArriving() int {
	for a := range r.coming {
		if time.Since(a.since) > arrivalTime {
			r.endArrival(a)
		}
	}
	return len(r.coming)
}

// keepMessage keeps a message for arriving and withheld connections and drops the oldest ones if needed. Without such
// connections, which is nearly always, it keeps nothing.
func (r *arrivals) keepMessage(topics []string, size int, put func(m *Member, late bool)) {
	if r.countArriving() == 0 && time.Now().After(r.until) {
		r.kept, r.bytes = nil, 0
		return
	}
	if size > maxKeptBytes {
		return
	}
	for len(r.kept) == maxKept || r.bytes+size > maxKeptBytes {
		r.bytes -= r.kept[0].size
		r.kept = r.kept[1:]
	}
	r.kept = append(r.kept, message{time.Now(), topics, size, put})
	r.bytes += size
}

// catchUp is the body of CatchUp.
func (r *Roster) catchUp(m *Member, a *Arrival) {
	if _, ok := r.coming[a]; !ok || r.closed || r.strict() || m.withheld.Load() {
		return
	}
	for _, x := range r.kept {
		if !x.at.Before(a.since) {
			x.put(m, true)
		}
	}
}
