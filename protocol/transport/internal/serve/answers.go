package serve

import (
	"sync"
	"time"
)

const (
	// manyAnswers is how many requests may be answered at the same time before no further ones are read for a moment:
	// thousands of minions that return at once would each hold a stack and a message while they wait for a processor.
	manyAnswers = 512
	// answersPause limits that moment.
	answersPause = 50 * time.Millisecond
	// fewAnswers is how many answers end in answersPause if they wait for a processor. If fewer end, most of them wait
	// for something else, such as a database, a pillar or their turn to sign in.
	fewAnswers = 64
)

// answers counts the requests that are being answered.
type answers struct {
	mu      sync.Mutex // guards the fields below
	running int
	waiting int           // of those, how many wait for something other than a processor
	ended   int           // since awaitRoom began to wait
	room    chan struct{} // closed when fewer than manyAnswers need a processor, if awaitRoom waits
}

func (a *answers) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running++
}

func (a *answers) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running--
	a.waiting = min(a.waiting, a.running)
	a.ended++
	if a.room != nil && a.hasRoom() {
		close(a.room)
		a.room = nil
	}
}

// hasRoom reports whether fewer than manyAnswers need a processor. The caller holds mu.
func (a *answers) hasRoom() bool { return a.running-a.waiting < manyAnswers }

// awaitRoom waits until fewer than manyAnswers need a processor, for answersPause at most. If only fewAnswers end in
// that time, those that run do not count until they end. Only one goroutine may wait.
func (a *answers) awaitRoom() {
	a.mu.Lock()
	if a.hasRoom() {
		a.mu.Unlock()
		return
	}
	room := make(chan struct{})
	a.room, a.ended = room, 0
	a.mu.Unlock()
	timer := time.NewTimer(answersPause)
	defer timer.Stop()
	select {
	case <-room:
		return
	case <-timer.C:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended < fewAnswers {
		a.waiting = a.running
	}
}
