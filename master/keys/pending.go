package keys

import (
	"sync"
	"time"
)

const (
	// defaultPending is the default of Options.MaxPending.
	defaultPending = 10_000
	// recount is how long a count of pending keys is trusted; new ones are added to it. Counting ten thousand keys
	// for each of ten thousand would take minutes.
	recount = time.Second
	// pendingStale is after how long without a sign-in a pending key makes room for others. A minion that waits for
	// acceptance signs in every ten seconds; the ids of a flood never return.
	pendingStale = 5 * time.Minute
)

// room keeps the number of pending keys below a limit. If there are too many, keys are removed whose minions
// stopped signing in.
type room struct {
	mu      sync.Mutex // guards the fields below
	n       int        // pending keys, including those being stored
	storing int
	counted time.Time
	opened  time.Time            // when the store was opened; before that no sign-in is known
	asked   map[string]time.Time // the last sign-in of a pending id
	swept   time.Time
	sweeps  sync.WaitGroup
}

// reserve reports whether there is a place for one more key, that of id. After true, call leave when the key is
// stored.
func (r *room) reserve(s *Store, id string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n >= s.maxPending || time.Since(r.counted) > recount {
		n, err := s.back.count(Pending.Folder())
		if err != nil {
			return false, err
		}
		r.n, r.counted = n+r.storing, time.Now()
	}
	if r.n >= s.maxPending {
		r.makeRoom(s)
		return false, nil
	}
	r.n++
	r.storing++
	r.noteAsked(s, id)
	return true, nil
}

func (r *room) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.storing--
}

// touch notes that the minion of a pending key has signed in again.
func (r *room) touch(s *Store, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteAsked(s, id)
}

// noteAsked is touch; the caller holds mu.
func (r *room) noteAsked(s *Store, id string) {
	if _, ok := r.asked[id]; ok || len(r.asked) < 2*s.maxPending {
		r.asked[id] = time.Now()
	}
}

// makeRoom starts to remove stale keys, at most once a second. The caller holds mu.
func (r *room) makeRoom(s *Store) {
	if time.Since(r.swept) < recount {
		return
	}
	r.swept = time.Now()
	r.sweeps.Go(func() { r.removeStale(s) })
}

// removeStale removes the pending keys whose minions stopped signing in.
func (r *room) removeStale(s *Store) {
	ids, err := s.back.list(Pending.Folder())
	if err != nil {
		s.log.Warn("Cannot list pending keys", "err", err)
		return
	}
	var stale []string
	r.mu.Lock()
	for _, id := range ids {
		at, ok := r.asked[id]
		if !ok {
			at = r.opened
		}
		// guard: pending-flood TestPendingFlood
		if time.Since(at) > pendingStale {
			stale = append(stale, id)
		}
	}
	for id, at := range r.asked {
		if time.Since(at) > pendingStale {
			delete(r.asked, id)
		}
	}
	r.mu.Unlock()
	removed := 0
	for _, id := range stale {
		if err := s.forgetPending(id); err != nil {
			s.log.Warn("Cannot remove pending key", "minion", id, "err", err)
			continue
		}
		removed++
	}
	if removed > 0 {
		s.log.Warn("Too many keys wait for acceptance, removed those that no minion asks for", "removed", removed,
			"limit", s.maxPending)
	}
}

// forgetPending removes the key of an id if it is still pending.
func (s *Store) forgetPending(id string) error {
	return s.editKeys(id, func(v view) (*Change, error) {
		if _, err := v.stat(Pending.Folder(), id); err != nil {
			return nil, nil // it was decided in the meantime
		}
		return &Change{Act: "delete", ID: id, From: Pending}, v.remove(Pending.Folder(), id)
	})
}
