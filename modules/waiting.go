package modules

import (
	"slices"
	"sync"
)

// WaitingRuns holds the state runs of one minion that wait until others have ended, in order of arrival. The zero value
// is empty. A nil WaitingRuns is for programs that run one call at a time, so that no run waits. It is safe for
// concurrent use. Salt stores waiting runs in files and starts them later (salt/modules/state.py:
// _prior_running_states); brine's are jobs that wait.
type WaitingRuns struct {
	mu   sync.Mutex
	jids []string // guarded by mu
}

// Join adds a run at the end.
func (w *WaitingRuns) Join(jid string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jids = append(w.jids, jid)
}

// Leave removes a run.
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

// All returns the job ids of the waiting runs in order.
func (w *WaitingRuns) All() []string {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.jids)
}
