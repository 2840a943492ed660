package orders

import "time"

// state is what this master awaits of a minion. doc.go draws the states and the arrows between them.
type state uint8

const (
	// idle: nothing that this master knows of waits for the minion.
	idle state = iota
	// probing: something waits. The minion is probed at next, and then with growing pauses.
	probing
	// deferred: something waits, and another master of the cluster is expected to send it. What is
	// left of it is looked up at next.
	deferred
)

// moment is a time as peers keep it: since an hour before the Deliverer was created, so that 0 is
// long ago and means never. There may be a peer for each minion, and a time.Time has three times
// the size.
type moment = time.Duration

// peer is what this master knows of one minion. A minion has none if nothing waits for it, nothing
// of it is queried, and it has not answered anything lately.
type peer struct {
	id    string
	state state

	// answered, lookUp and signedIn are marks that the next turn takes off. answered: it listens,
	// send what waits for it. lookUp: find out in the store whether something waits. signedIn, with
	// lookUp: it began to listen anew, and what it was sent before may be lost.
	answered, lookUp, signedIn bool
	// silent: it did not answer a status query, or signed in while it had something to run. When it
	// answers anything, the status of what it was sent is queried at once.
	silent bool
	// near, while probing: the next probe goes over this master's own connections only.
	near bool
	// slot is its place in peers.awaited unless it is idle.
	slot int32
	// queries is how many of its deliveries are being queried. Further ones wait until there are none.
	queries int32

	// heard is when it last answered anything that was published. path is the same for one that has
	// shown to listen to this master of a cluster, and 0 for others: it does not grow old, since each
	// answer renews it until another master hears the minion or the minion signs in.
	heard, path moment
	// next is when it is probed or, if deferred, looked up. asked is when it was last probed since it
	// is awaited, 0 if it was not. Both mean nothing of one that is idle.
	next, asked moment
	// wait, while probing, is the pause after the next probe.
	wait time.Duration
}

// slow reports whether a minion was probed lately and has not answered. Every probe costs it some of
// what it can do, and stock minions one of the hundred job ids that they remember: it is not probed
// again for each order, nor because somebody else connects.
func (p *peer) slow(now moment) bool { return p.state != idle && now-p.asked < probeAgain }

// atRest reports whether there is nothing to do for a minion, now or when it answers.
func (p *peer) atRest() bool {
	return p.state == idle && !p.answered && !p.lookUp && !p.silent && p.queries == 0
}

// peers are all peers of a Deliverer, whose lock guards them.
type peers struct {
	byID    map[string]*peer
	awaited []*peer // those that are not idle, in any order
	// lookUps and answers are the ids of those that have the marks of these names.
	lookUps, answers []string
	// proven is how many have answered something.
	proven int
}

// of returns the peer of a minion, a new one if there was none.
func (s *peers) of(id string) *peer {
	p := s.byID[id]
	if p == nil {
		p = &peer{id: id}
		s.byID[id] = p
	}
	return p
}

// enter changes the state of a peer and keeps the list of those that are awaited.
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

// probe has a minion probed from a moment on, as if it never was before. wait is the first pause.
func (s *peers) probe(p *peer, at moment, wait time.Duration) {
	s.enter(p, probing)
	p.next, p.wait, p.asked, p.near = at, wait, 0, false
}

// leave leaves a minion to another master until a moment, as if it never was probed before.
func (s *peers) leave(p *peer, until moment) {
	s.enter(p, deferred)
	p.next, p.asked = until, 0
}

// markAnswered has the next turn send what waits for a minion.
func (s *peers) markAnswered(p *peer) {
	if !p.answered {
		p.answered = true
		s.answers = append(s.answers, p.id)
	}
}

// markLookUp has the next turn look in the store whether something waits for a minion.
func (s *peers) markLookUp(p *peer) {
	if !p.lookUp {
		p.lookUp = true
		s.lookUps = append(s.lookUps, p.id)
	}
}

// marked is a minion that had the mark lookUp, and whether it had signedIn, too.
type marked struct {
	id       string
	signedIn bool
}

// takeLookUps removes the marks lookUp and signedIn, and returns who had them.
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

// takeAnswers removes the mark answered, and returns the ids of those who had it. They are idle then,
// but for those that are silent: such a one signed in after it answered, and is probed again.
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

// hear notes when a minion answered something, and that this is no proof any more if it is 0.
func (s *peers) hear(p *peer, at moment) {
	switch {
	case p.heard == 0 && at != 0:
		s.proven++
	case p.heard != 0 && at == 0:
		s.proven--
	}
	p.heard = at
}

// sweep forgets those of which there is nothing to know any more: a proof that is old proves
// nothing. With all it forgets what every minion has proved.
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
