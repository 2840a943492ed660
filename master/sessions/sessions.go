// Package sessions holds the keys that minions seal their requests with, and takes each request once.
package sessions

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// replayFile keeps, over a clean restart, up to which time each minion's requests were seen. No minion id begins with a
// dot.
const replayFile = ".seen"

// maxNonces bounds what is remembered of one busy minion: at 40 bytes each, 160 KiB until the next sweep.
const maxNonces = 4096

// Store holds the keys that requests are sealed with, one per minion, and what was seen under each of them. A request
// is taken once: its nonce is remembered as long as its time is within a window of the newest seen from that minion,
// and an older one is refused. Both are the minion's own times, so a wrong clock breaks nothing; a clock that jumps
// back far is healed by a new session key at the next sign-in, under which old recordings are worthless
// (CVE-2024-38823).
//
// On disk a key is the file that Salt has, sessions/<id>. After a crash nobody knows what was seen, so all keys are new
// then.
type Store struct {
	dir    *confined.Dir // nil in memory
	life   time.Duration
	window int64 // seconds
	log    *slog.Logger

	mu  sync.Mutex // guards all
	all map[string]*Session
}

// Session is the key of one minion, and what was seen under it.
type Session struct {
	mu      sync.Mutex // guards the fields below
	key     *crypt.Key
	owner   [32]byte         // hash of the public key that it was issued to
	of      *crypt.PublicKey // one that was found to have this hash and is kept anyway
	made    time.Time
	newest  int64              // newest ts seen, seconds
	floor   int64              // requests with a ts below are refused
	seen    map[[16]byte]int64 // nonce → ts
	expired bool               // the next sign-in gets another key
	// generation is that of the key, where several masters make the same ones.
	generation int64
}

// Open returns the sessions of a directory, or in memory if it is "". life is how long a key lives, window how far
// apart in its own time two of a minion's requests may arrive out of order.
func Open(cacheDir string, life, window time.Duration, log *slog.Logger) (*Store, error) {
	s := &Store{life: life, window: int64(window / time.Second), log: log,
		all: make(map[string]*Session)}
	if cacheDir == "" {
		return s, nil
	}
	var err error
	if s.dir, err = confined.Open(cacheDir+"/sessions", 0o700); err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		s.dir.Close()
		return nil, err
	}
	return s, nil
}

// load takes over the session keys of a master that ended cleanly, and removes those of one that did not.
func (s *Store) load() error {
	floors := map[string]any{}
	b, _, err := s.dir.Read(replayFile, 64<<20)
	clean := err == nil
	if clean {
		v, err := payload.UnmarshalDisk(b, payload.Limits{})
		if floors, clean = payload.Map(v); err != nil || !clean {
			clean = false
		}
	}
	if err := s.dir.Remove(replayFile); err != nil {
		return fmt.Errorf("cannot open session keys: %w", err)
	}
	entries, err := s.dir.List(".")
	if err != nil {
		return fmt.Errorf("cannot list session keys: %w", err)
	}
	for _, e := range entries {
		id := e.Name()
		kept, _ := payload.List(floors[id])
		newest, owner, known := keptSession(kept)
		if clean && known && e.Type().IsRegular() && protocol.ValidID(id) == nil {
			if text, info, err := s.dir.Read(id, 1024); err == nil {
				if key, err := crypt.ParseKey(string(text)); err == nil {
					s.all[id] = &Session{key: key, owner: owner, made: info.ModTime(),
						newest: newest, floor: newest + 1}
					continue
				}
			}
		}
		if err := s.dir.RemoveAll(id); err != nil {
			s.log.Warn("Cannot remove old session key", "minion", id, "err", err)
		}
	}
	return nil
}

// keptSession reads what close wrote of one session.
func keptSession(list []any) (newest int64, owner [32]byte, ok bool) {
	if len(list) != 2 {
		return 0, owner, false
	}
	newest, ok = payload.Int(list[0])
	b, isBytes := payload.Bytes(list[1])
	if !ok || !isBytes || len(b) != len(owner) {
		return 0, owner, false
	}
	return newest, [32]byte(b), true
}

// OwnerOf returns what a session remembers of a public key: its hash.
func OwnerOf(pub *crypt.PublicKey) [32]byte { return sha256.Sum256([]byte(pub.Text())) }

// Close writes what was seen.
func (s *Store) Close() error {
	if s.dir == nil {
		return nil
	}
	seen := make(map[string]any)
	s.mu.Lock()
	for id, e := range s.all {
		e.mu.Lock()
		if e.key != nil && !e.expired {
			seen[id] = []any{e.newest, e.owner[:]}
		}
		e.mu.Unlock()
	}
	s.mu.Unlock()
	b, err := payload.MarshalBin(seen)
	if err == nil {
		err = s.dir.Write(replayFile, b, 0o600, true)
	}
	if e := s.dir.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("cannot save sessions: %w", err)
	}
	return nil
}

// Get returns the session of an id, or nil if it has no session. Callers have looked up the accepted key of the
// id before.
func (s *Store) Get(id string) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

// Join returns the session of an id, which may have begun at another master.
func (s *Store) Join(id string) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.all[id]
	if e == nil {
		e = &Session{made: time.Now()}
		s.all[id] = e
	}
	return e
}

// Enter forgets what was seen under session keys of before.
func (e *Session) Enter(generation int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.generation != generation {
		e.generation, e.newest, e.floor, e.seen = generation, 0, 0, nil
	}
}

// Current returns the key that requests must be sealed with. It returns nil if the key is missing or too old, or if the
// id now belongs to another public key: then the minion's request is refused, and it signs in again.
func (e *Session) Current(life time.Duration, pub *crypt.PublicKey) *crypt.Key {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.key == nil || time.Since(e.made) > life || e.of != pub && e.owner != OwnerOf(pub) {
		e.expired = true
		return nil
	}
	e.of = pub
	return e.key
}

// Issue returns the session key for a minion that just signed in with its accepted key, making one if needed.
func (s *Store) Issue(id string, pub *crypt.PublicKey) (*crypt.Key, error) {
	owner := OwnerOf(pub)
	if err := protocol.ValidID(id); err != nil {
		return nil, err
	}
	s.mu.Lock()
	e := s.all[id]
	if e == nil {
		e = &Session{}
		s.all[id] = e
	}
	s.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.key != nil && !e.expired && time.Since(e.made) <= s.life && e.owner == owner {
		return e.key, nil
	}
	key, err := crypt.NewKey()
	if err != nil {
		return nil, err
	}
	if s.dir != nil {
		err := s.dir.Write(id, []byte(key.Text()), 0o600, false)
		if confined.IsDiskFull(err) {
			// The key is for this process then: after a restart the minion signs in again.
			s.log.Error("Session key of a minion is only in memory: the disk is full", "minion", id,
				"err", err)
			err = s.dir.Remove(id)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot store session key of %q: %w", id, err)
		}
	}
	e.key, e.owner, e.of, e.made, e.newest, e.floor, e.seen, e.expired = key, owner, nil,
		time.Now(), 0, 0, nil, false
	return key, nil
}

// Forget drops the session of an id: its next request is refused.
func (s *Store) Forget(id string) {
	if protocol.ValidID(id) != nil {
		return
	}
	s.mu.Lock()
	delete(s.all, id)
	s.mu.Unlock()
	if s.dir == nil {
		return
	}
	if err := s.dir.Remove(id); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("Cannot remove session key", "minion", id, "err", err)
	}
}

// ErrReplayed says that a request was taken before, or could have been.
var ErrReplayed = errors.New("request was seen before")

// Admit reports whether a verified request may be taken, and whether it repeats one that was taken already.
func (e *Session) Admit(v protocol.Verified, window int64) (repeated bool, err error) {
	at, ok := v.Time()
	if !ok {
		return false, errors.New("request has no time")
	}
	ts := at.Unix()
	sum := sha256.Sum256([]byte(v.Nonce()))
	nonce := [16]byte(sum[:16])
	e.mu.Lock()
	defer e.mu.Unlock()
	// guard: CVE-2024-38823 master:TestCVE_2024_38823_Replay
	if ts < e.floor || ts < e.newest-window {
		// Either old, or the minion's clock jumped back: a new session key tells the two apart.
		e.expired = true
		return false, fmt.Errorf("%w, or the minion's clock jumped back %d s", ErrReplayed,
			e.newest-ts)
	}
	// guard: CVE-2024-38823 master:TestCVE_2024_38823_Replay
	if _, dup := e.seen[nonce]; dup {
		return true, nil
	}
	if e.seen == nil {
		e.seen = make(map[[16]byte]int64)
	}
	e.seen[nonce] = ts
	e.newest = max(e.newest, ts)
	if len(e.seen) > maxNonces {
		// A very busy minion: remember less time instead of more nonces, but always the last seconds.
		e.trim(window)
		for w := window / 2; len(e.seen) > maxNonces/2 && w > 2; w /= 2 {
			e.trim(w)
		}
	}
	return false, nil
}

// trim forgets what is older than a window; such requests are refused by their time from now on.
func (e *Session) trim(window int64) {
	e.floor = max(e.floor, e.newest-window)
	for n, ts := range e.seen {
		if ts < e.floor {
			delete(e.seen, n)
		}
	}
	if len(e.seen) == 0 {
		e.seen = nil
	}
}

// Sweep gives back the memory of minions that have been quiet, and drops sessions of ids that are not accepted any
// more. It asks for the accepted ids, sorted, after it has looked which sessions there are: who signs in meanwhile
// keeps his.
func (s *Store) Sweep(accepted func() ([]string, error), now time.Time) {
	s.mu.Lock()
	all := maps.Clone(s.all)
	s.mu.Unlock()
	ids, err := accepted()
	if err != nil {
		return
	}
	for id, e := range all {
		if _, ok := slices.BinarySearch(ids, id); !ok {
			s.Forget(id)
			continue
		}
		e.mu.Lock()
		if len(e.seen) > 0 && now.Sub(e.made) > time.Duration(s.window)*time.Second {
			e.trim(s.window)
			if len(e.seen) > 16 {
				e.trim(2)
			}
			e.seen = maps.Clone(e.seen) // maps do not shrink
		}
		e.mu.Unlock()
	}
}

// Generation returns the generation of the key that requests were last sealed with, where several masters make the same
// ones.
func (e *Session) Generation() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.generation
}
