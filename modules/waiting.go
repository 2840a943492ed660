package modules

import (
	"slices"
	"sync"
)

// WaitingRuns are the state runs of one minion that wait until others have ended, in the order in which they came. The zero
// value is empty; nil is a program that makes one call at a time, in which nobody waits for another. It is safe for
// concurrent use. Salt keeps files of waiting runs and starts them later (salt/modules/state.py: _prior_running_states);
// here they are jobs that wait.
type WaitingRuns struct {
	mu   sync.Mutex
	jids []string // guarded by mu
}

// Join puts a run behind all that wait.
func (w *WaitingRuns) Join(jid string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jids = append(w.jids, jid)
}

// Leave takes a run out.
func (w *WaitingRuns) Leave(jid string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.jids, jid); i >= 0 {
		w.jids = slices.Delete(w.jids, i, i+1)
	}
}

// All are the job ids of those that wait, the first of them first.
func (w *WaitingRuns) All() []string {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.jids)
}
