// Package sessions holds the session keys of minions, and accepts each request once.
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

// replayFile stores the time of each minion's newest request over a clean restart. No minion id begins with a
// dot.
const replayFile = ".seen"

// maxNonces limits the nonces per minion: at 40 bytes each, 160 KiB until the next sweep.
const maxNonces = 4096

// Store holds one session key per minion, and the requests seen under it. A request is accepted once: its nonce
// is remembered while its time is within a window of the newest time seen from that minion. Older requests are
// refused. Both times are the minion's own, so a wrong clock does no harm. If a clock jumps far back, the next
// sign-in gets a new session key, which makes recorded requests worthless (CVE-2024-38823).
//
// On disk a key is the file sessions/<id>, as in Salt. After a crash it is unknown which requests were seen, so
// all keys are replaced.
type Store struct {
	dir    *confined.Dir // nil if in memory
	life   time.Duration
	window int64 // in seconds
	log    *slog.Logger

	mu  sync.Mutex // guards all
	all map[string]*Session
}

// Session is the key of one minion, with the requests seen under it.
type Session struct {
	mu      sync.Mutex // guards the fields below
	key     *crypt.Key
	owner   [32]byte         // hash of the public key for which it was issued
	of      *crypt.PublicKey // a public key known to have that hash, to save hashing
	made    time.Time
	newest  int64              // newest time seen, in seconds
	floor   int64              // requests with an earlier time are refused
	seen    map[[16]byte]int64 // time by nonce
	again   map[[16]byte]uint8 // how often a nonce came again, at most 255; nil if none did
	expired bool               // the next sign-in gets another key
	// generation is the key's generation, in a cluster, whose masters derive the same keys.
	generation int64
}

// Open opens the sessions in a directory, or in memory if it is "". life is the lifetime of a key, window how
// far apart two requests of a minion may arrive out of order, in its own time.
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

// load loads the session keys of a master that ended cleanly, and removes those of one that crashed.
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

// keptSession parses the record that Close wrote for one session.
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

// OwnerOf returns the hash of a public key by which a session identifies its owner.
func OwnerOf(pub *crypt.PublicKey) [32]byte { return sha256.Sum256([]byte(pub.Text())) }

// Close stores which requests were seen.
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

// Get returns the session of an id, or nil. Look up the id's accepted key first.
func (s *Store) Get(id string) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

// Join returns the session of an id, which may have been issued by a peer master.
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

// Enter discards what was seen under earlier session keys.
func (e *Session) Enter(generation int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.generation != generation {
		e.generation, e.newest, e.floor, e.seen, e.again = generation, 0, 0, nil, nil
	}
}

// Current returns the key that seals requests. It returns nil if the key is missing or expired, or if the id
// now has another public key. The minion's request is refused then, and it signs in again.
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

// Issue returns the session key for a minion that has just signed in with its accepted key, and creates it if
// needed.
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
			// The key then lives as long as this process. After a restart the minion signs in again.
			s.log.Error("Session key of a minion is only in memory: the disk is full", "minion", id,
				"err", err)
			err = s.dir.Remove(id)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot store session key of %q: %w", id, err)
		}
	}
	e.key, e.owner, e.of, e.made, e.newest, e.floor, e.seen, e.again, e.expired = key, owner, nil,
		time.Now(), 0, 0, nil, nil, false
	return key, nil
}

// Forget removes the session of an id. The minion's next request is refused.
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

// ErrReplayed means that a request was accepted before, or may have been.
var ErrReplayed = errors.New("request was seen before")

// ErrClockBack is wrapped besides ErrReplayed if the request has an earlier time than the session remembers.
var ErrClockBack = errors.New("the minion's clock jumped back")

// Admit returns an error unless a verified request may be accepted. repeated is how often it came before, at most 255.
func (e *Session) Admit(v protocol.Verified, window int64) (repeated int, err error) {
	at, ok := v.Time()
	if !ok {
		return 0, errors.New("request has no time")
	}
	ts := at.Unix()
	sum := sha256.Sum256([]byte(v.Nonce()))
	nonce := [16]byte(sum[:16])
	e.mu.Lock()
	defer e.mu.Unlock()
	// guard: CVE-2024-38823 master:TestCVE_2024_38823_Replay
	if ts < e.floor || ts < e.newest-window {
		// It is old, or the minion's clock jumped back. A new session key makes the two distinguishable.
		e.expired = true
		return 0, fmt.Errorf("%w, or %w %d s", ErrReplayed, ErrClockBack, e.newest-ts)
	}
	// guard: CVE-2024-38823 master:TestCVE_2024_38823_Replay
	if _, dup := e.seen[nonce]; dup {
		if e.again == nil {
			e.again = make(map[[16]byte]uint8)
		}
		e.again[nonce] = max(e.again[nonce], e.again[nonce]+1) // the last one does not overflow
		return int(e.again[nonce]), nil
	}
	if e.seen == nil {
		e.seen = make(map[[16]byte]int64)
	}
	e.seen[nonce] = ts
	e.newest = max(e.newest, ts)
	if len(e.seen) > maxNonces {
		// For a very busy minion, shorten the remembered time instead of storing more nonces, but keep the last
		// seconds.
		e.trim(window)
		for w := window / 2; len(e.seen) > maxNonces/2 && w > 2; w /= 2 {
			e.trim(w)
		}
	}
	return 0, nil
}

// trim removes nonces older than a window. Such requests are refused by their time from now on.
func (e *Session) trim(window int64) {
	e.floor = max(e.floor, e.newest-window)
	for n, ts := range e.seen {
		if ts < e.floor {
			delete(e.seen, n)
			delete(e.again, n)
		}
	}
	if len(e.seen) == 0 {
		e.seen = nil
	}
	if len(e.again) == 0 {
		e.again = nil
	}
}

// Sweep frees the memory of quiet minions, and removes the sessions of ids that are no longer accepted. It
// calls accepted, which returns the sorted accepted ids, after listing the sessions, so that a minion that
// signs in meanwhile keeps its own.
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

// Generation returns the generation of the key that last sealed a request, in a cluster.
func (e *Session) Generation() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.generation
}
