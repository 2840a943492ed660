package serve

import "time"

const (
	// arrivalTime is how long after it was accepted a connection may begin to subscribe and miss nothing.
	arrivalTime = 5 * time.Second
	// maxKept and maxKeptBytes bound the messages that are kept for connections which are arriving.
	maxKept      = 256
	maxKeptBytes = 4 << 20
)

// Arrival is a connection between its accept and its subscription. Its peer may take itself for connected as soon as the handshake is over,
// and say so on another connection: a job that is published in answer to that is for this one too.
type Arrival struct{ since time.Time }

// arrivals are the connections that arrive, and what was published meanwhile. The roster's lock guards it.
type arrivals struct {
	coming map[*Arrival]struct{}
	until  time.Time // until when messages are kept for connections that are withheld
	kept   []message
	bytes  int
}

// message is what put gives to those who are arriving.
type message struct {
	at     time.Time
	topics []string // nil for all
	size   int
	put    func(m *Member, late bool)
}

// Expect notes that a connection arrives, until Arrived, or for arrivalTime.
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

// Arrived is the end of an arrival; a may be nil.
func (r *Roster) Arrived(a *Arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arrived(a)
}

// Arriving is how many connections arrive.
func (r *Roster) Arriving() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.arriving()
}

// Keep keeps a message of size bytes for connections that arrive, for which put will be called with late, and for those that are withheld.
func (r *Roster) Keep(size int, put func(m *Member, late bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep(nil, size, put)
}

// CatchUp gives a connection what was published since its arrival.
func (r *Roster) CatchUp(m *Member, a *Arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.catchUp(m, a)
}

func (r *arrivals) arrived(a *Arrival) {
	delete(r.coming, a)
	if len(r.coming) == 0 && time.Now().After(r.until) {
		r.kept, r.bytes = nil, 0
	}
}

// arriving is Arriving; as of arrived, keep and catchUp, callers hold mu.
func (r *arrivals) arriving() int {
	for a := range r.coming {
		if time.Since(a.since) > arrivalTime {
			r.arrived(a)
		}
	}
	return len(r.coming)
}

// keep keeps a message for connections that arrive or are withheld.
func (r *arrivals) keep(topics []string, size int, put func(m *Member, late bool)) {
	if r.arriving() == 0 && time.Now().After(r.until) {
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
