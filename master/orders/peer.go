package orders

import "time"

// state is what this master expects of a minion. doc.go shows the states and transitions.
type state uint8

const (
	// idle means that nothing known to this master is pending for the minion.
	idle state = iota
	// probing means that something is pending. The minion is probed at next, and then at growing intervals.
	probing
	// deferred means that something is pending and a peer master is expected to send it. Anything left is
	// looked up at next.
	deferred
)

// moment is a time in the form that peers store: the duration since an hour before the Deliverer was created,
// so that 0 means never. There may be a peer for each minion, and a time.Time is three times as large.
type moment = time.Duration

// peer is what this master knows of one minion. A minion has no peer if nothing is pending for it, no delivery
// of it is being queried, and it has not answered lately.
type peer struct {
	id    string
	state state

	// answered, lookUp and signedIn are marks for the next turn. answered: the minion listens, send what is
	// pending. lookUp: read its deliveries from the store. signedIn, with lookUp: it has subscribed again, and
	// what it was sent before may be lost.
	answered, lookUp, signedIn bool
	// silent means that it did not answer a status query, or signed in while it had something to run. Its next
	// answer triggers a query of what it was sent.
	silent bool
	// near, while probing, sends the next probe over this master's own connections only.
	near bool
	// slot is the index in peers.awaited, unless it is idle.
	slot int32
	// queries is how many of its deliveries are being queried. Further ones wait until that is 0.
	queries int32

	// heard is when it last answered anything published. In a cluster, path is the same for a minion that has
	// proved to listen to this master, else 0. path does not expire: each answer renews it, until a peer hears
	// the minion or the minion signs in.
	heard, path moment
	// next is when it is probed or, if deferred, looked up. asked is when it was last probed since it was last
	// idle, or 0. Both are unused while it is idle.
	next, asked moment
	// wait, while probing, is the pause after the next probe.
	wait time.Duration
}

// slow reports whether a minion was probed lately and has not answered. A probe costs the minion time, and a
// stock minion one of the hundred job ids that it remembers. So a slow minion is not probed again for each
// order, nor when another minion connects.
func (p *peer) slow(now moment) bool { return p.state != idle && now-p.asked < probeAgain }

// atRest reports whether a minion needs nothing, now or when it answers.
func (p *peer) atRest() bool {
	return p.state == idle && !p.answered && !p.lookUp && !p.silent && p.queries == 0
}

// peers holds the peers of a Deliverer, guarded by its lock.
type peers struct {
	byID    map[string]*peer
	awaited []*peer // those that are not idle, in any order
	// lookUps and answers are the ids of peers with these marks.
	lookUps, answers []string
	// proven is the number of peers with a recorded answer.
	proven int
}

// of returns the peer of a minion, and creates it if it is missing.
func (s *peers) of(id string) *peer {
	p := s.byID[id]
	if p == nil {
		p = &peer{id: id}
		s.byID[id] = p
	}
	return p
}

// enter changes a peer's state and updates awaited.
func (s *peers) enter(p *peer, to state) {
	switch {
	case p.state == idle && to != idle:
		p.slot = int32(len(s.awaited))
		s.awaited = append(s.awaited, p)
	case p.state != idle && to == idle:
		last := len(s.awaited) - 1
		s.awaited[p.slot] = s.awaited[last]
		s.awaited[p.slot].slot = p.slot
		s.awaited[last] = nil
		s.awaited = s.awaited[:last]
	}
	p.state = to
}

// probe schedules probes of a minion from a moment on, starting with the pause wait.
func (s *peers) probe(p *peer, at moment, wait time.Duration) {
	s.enter(p, probing)
	p.next, p.wait, p.asked, p.near = at, wait, 0, false
}

// leave defers a minion to another master until a moment.
func (s *peers) leave(p *peer, until moment) {
	s.enter(p, deferred)
	p.next, p.asked = until, 0
}

// markAnswered makes the next turn send what is pending for a minion.
func (s *peers) markAnswered(p *peer) {
	if !p.answered {
		p.answered = true
		s.answers = append(s.answers, p.id)
	}
}

// markLookUp makes the next turn read a minion's deliveries from the store.
func (s *peers) markLookUp(p *peer) {
	if !p.lookUp {
		p.lookUp = true
		s.lookUps = append(s.lookUps, p.id)
	}
}

// marked is a minion that had the mark lookUp, and whether it also had signedIn.
type marked struct {
	id       string
	signedIn bool
}

// takeLookUps removes the marks lookUp and signedIn, and returns the minions that had them.
func (s *peers) takeLookUps() []marked {
	list := make([]marked, len(s.lookUps))
	for i, id := range s.lookUps {
		p := s.byID[id]
		list[i] = marked{id, p.signedIn}
		p.lookUp, p.signedIn = false, false
	}
	s.lookUps = nil
	return list
}

// takeAnswers removes the mark answered and returns the minions that had it. They become idle, except silent
// ones, which signed in after they answered and are probed again.
func (s *peers) takeAnswers() []string {
	list := s.answers
	s.answers = nil
	for _, id := range list {
		p := s.byID[id]
		p.answered = false
		if !p.silent {
			s.enter(p, idle)
		}
	}
	return list
}

// hear records when a minion answered; 0 removes the record.
func (s *peers) hear(p *peer, at moment) {
	switch {
	case p.heard == 0 && at != 0:
		s.proven++
	case p.heard != 0 && at == 0:
		s.proven--
	}
	p.heard = at
}

// sweep removes peers that have nothing to remember, because an old answer proves nothing. With all it discards
// every recorded answer.
func (s *peers) sweep(now moment, all bool) {
	for id, p := range s.byID {
		if all || p.atRest() && p.path == 0 && now-p.heard >= proofLife {
			s.hear(p, 0)
			p.path = 0
		}
		if p.atRest() && p.heard == 0 {
			delete(s.byID, id)
		}
	}
}
