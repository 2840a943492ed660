// Package keys stores which minion keys a master knows, and their states: accepted, pending, rejected, denied.
//
//	                 ┌─ policy or operator ─▶ accepted ─ another key for this id ─▶ denied (the other key)
//	new key ─▶ pending ─┤
//	                 └─ operator, autoreject ─▶ rejected
//
// On disk it is stock Salt's layout (minions, minions_pre, minions_rejected, minions_denied below the pki
// directory), so salt-key and provisioning tools work on the same files while the master runs. Several masters keep
// the keys in their database; without a directory they are in memory. The package does not decide about sign-ins by
// itself; package master and Policy do. Salt's sources: salt/key.py, salt/crypt.py.
package keys

import (
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
)

// A State is the state of a key.
type State int

// The states in the order in which a sign-in looks at them: an id that is both rejected and accepted counts as
// rejected.
const (
	Unknown State = iota
	Rejected
	Accepted
	Pending
	Denied
)

// States returns every state under which keys are stored.
func States() []State { return []State{Accepted, Pending, Rejected, Denied} }

// String returns Salt's word for the state in `salt-key -l`.
func (s State) String() string {
	switch s {
	case Accepted:
		return "accepted"
	case Pending:
		return "pending"
	case Rejected:
		return "rejected"
	case Denied:
		return "denied"
	}
	return "unknown"
}

// Folder returns the directory below the pki directory that holds keys of this state.
func (s State) Folder() string {
	switch s {
	case Accepted:
		return "minions"
	case Pending:
		return "minions_pre"
	case Rejected:
		return "minions_rejected"
	case Denied:
		return "minions_denied"
	}
	return ""
}

var (
	// ErrNotFound means that no key of this id is stored in the requested states.
	ErrNotFound = errors.New("key not found")
	// ErrPendingFull means that as many keys are pending as the store may hold.
	ErrPendingFull = errors.New("too many pending keys")
)

// maxParsed is how many parsed keys are kept, at 1 KiB each. Reading and parsing one takes some 30 µs, and the
// first check of a request's token another 60.
const maxParsed = 16384

// maxKeyBytes limits one public key; 16384 bit RSA is below 3 KiB.
const maxKeyBytes = 16 << 10

// A Key is one stored public key.
type Key struct {
	ID    string
	State State
	// Text is the cleaned PEM text without final newline.
	Text string
	// Modified is when the key was stored in this state.
	Modified time.Time
}

// Fingerprint returns the key's fingerprint as salt-key -f shows it, with the named hash (md5, sha1, sha256, …).
func (k Key) Fingerprint(hashType string) (string, error) {
	return crypt.FingerprintPEM([]byte(k.Text+"\n"), hashType)
}

// A Change describes what happened to a key through this store.
type Change struct {
	// Act is Salt's word in salt/key events: accept, reject, delete; "pend" and "denied" for new arrivals.
	Act string
	ID  string
	// From is the state that the key had before, To the state after; Unknown if there is none.
	From, To State
}

// Options of a Store. The zero value stores keys in memory.
type Options struct {
	// Dir is the pki directory; empty means memory.
	Dir string
	// Shared stores the keys in place of both, for several masters. Name is the name of this master. Pass changes
	// by others to Told.
	Shared store.Shared
	Name   string
	// MaxPending limits how many keys may be pending; 0 means 10000, below 0 no limit.
	MaxPending int
	// Log receives what an operator should know; nil means no log.
	Log *slog.Logger
}

// A Store holds minion keys. Its methods may be called from several goroutines. Files that other programs change
// are seen at the next look-up: nothing is cached longer than its file stays as it is.
type Store struct {
	back       backend
	maxPending int
	log        *slog.Logger

	// change serialises edits of an id, if no other master makes any. Ids share some locks, so that many keys wait
	// for the disk together.
	change  [64]sync.Mutex
	pending room

	mu     sync.Mutex // guards parsed and hooks
	parsed map[string]parsedKey
	hooks  []func(Change)
}

type parsedKey struct {
	stamp stamp
	key   *crypt.PublicKey
}

// A view is the keys as they are now, or as they will be when an edit ends.
type view interface {
	read(folder, id string) (text []byte, st stamp, err error)
	stat(folder, id string) (stamp, error)
	write(folder, id string, text []byte) error
	remove(folder, id string) error
}

// A backend is where keys are stored: a directory, memory, or a database that several masters share.
type backend interface {
	view
	list(folder string) ([]string, error)
	count(folder string) (int, error)
	close() error
}

// editKeys lets f read and change the keys of one id in one step, so that two sign-ins of one id cannot both win.
// If other masters change keys too, f is called again when one of them was faster.
func (s *Store) editKeys(id string, f func(v view) (*Change, error)) error {
	var change *Change
	var err error
	if shared, ok := s.back.(*shared); ok {
		change, err = shared.editRecord(id, f)
	} else {
		h := fnv.New32a()
		h.Write([]byte(id))
		lock := &s.change[h.Sum32()%uint32(len(s.change))]
		lock.Lock()
		change, err = f(s.back)
		lock.Unlock()
	}
	if change != nil {
		s.forgetParsed(id)
		s.notifyHooks(*change)
	}
	return err
}

// stamp changes when a stored key does.
type stamp struct {
	mtime time.Time
	size  int64
	inode uint64
}

// Open opens the store and creates Salt's directories (0700) if they are missing.
func Open(o Options) (*Store, error) {
	if o.MaxPending == 0 {
		o.MaxPending = defaultPending
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{maxPending: o.MaxPending, log: o.Log, parsed: make(map[string]parsedKey)}
	s.pending.opened, s.pending.asked = time.Now(), make(map[string]time.Time)
	if o.Shared != nil {
		s.back = newShared(o.Shared, o.Name)
		return s, nil
	}
	if o.Dir == "" {
		s.back = newMemory()
		return s, nil
	}
	back, err := openDisk(o.Dir)
	if err != nil {
		return nil, err
	}
	if err := back.removeUnfinished(); err != nil {
		o.Log.Warn("Cannot remove unfinished keys", "dir", o.Dir, "err", err)
	}
	s.back = back
	return s, nil
}

// Close releases the directory.
func (s *Store) Close() error {
	s.pending.sweeps.Wait()
	return s.back.close()
}

// OnChange registers a function that is called after every change through this store. It runs in the goroutine that
// made the change and must not call the store's changing methods.
func (s *Store) OnChange(f func(Change)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = append(s.hooks, f)
}

func (s *Store) notifyHooks(c Change) {
	s.mu.Lock()
	hooks := slices.Clone(s.hooks)
	s.mu.Unlock()
	for _, f := range hooks {
		f(c)
	}
}

// State returns the state of an id: rejected before accepted before pending; denied keys do not count.
func (s *Store) State(id string) State {
	if protocol.ValidID(id) != nil {
		return Unknown
	}
	for _, st := range []State{Rejected, Accepted, Pending} {
		if _, err := s.back.stat(st.Folder(), id); err == nil {
			return st
		}
	}
	return Unknown
}

// Get returns the key of an id in one state, or ErrNotFound.
func (s *Store) Get(id string, st State) (Key, error) {
	// guard: CVE-2025-22241 @key-ids TestT1HostileIDs
	if err := protocol.ValidID(id); err != nil {
		return Key{}, err
	}
	b, mark, err := s.back.read(st.Folder(), id)
	if err != nil {
		return Key{}, fmt.Errorf("cannot read %s key of %q: %w", st, id, err)
	}
	return Key{ID: id, State: st, Text: crypt.CleanKey(string(b)), Modified: mark.mtime}, nil
}

// Accepted returns the accepted public key of an id, ready for use, or ErrNotFound. A key that is also rejected is
// not accepted. Every request of a minion calls it, so the parsed key is kept as long as its file does not change.
func (s *Store) Accepted(id string) (*crypt.PublicKey, error) {
	// guard: CVE-2025-22241 @key-ids TestT1HostileIDs
	if err := protocol.ValidID(id); err != nil {
		return nil, err
	}
	if _, err := s.back.stat(Rejected.Folder(), id); err == nil {
		return nil, fmt.Errorf("cannot use key of %q: it is rejected: %w", id, ErrNotFound)
	}
	mark, err := s.back.stat(Accepted.Folder(), id)
	if err != nil {
		s.forgetParsed(id)
		return nil, fmt.Errorf("cannot use key of %q: %w", id, err)
	}
	s.mu.Lock()
	known, ok := s.parsed[id]
	s.mu.Unlock()
	if ok && known.stamp == mark {
		return known.key, nil
	}
	b, mark, err := s.back.read(Accepted.Folder(), id)
	if err != nil {
		return nil, fmt.Errorf("cannot use key of %q: %w", id, err)
	}
	key, err := crypt.ParsePublicKey(b)
	if err != nil {
		return nil, fmt.Errorf("cannot use key of %q: %w", id, err)
	}
	s.mu.Lock()
	if len(s.parsed) >= maxParsed {
		clear(s.parsed)
	}
	s.parsed[id] = parsedKey{mark, key}
	s.mu.Unlock()
	return key, nil
}

func (s *Store) forgetParsed(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.parsed, id)
}

// List returns the ids with a key in one state, sorted.
func (s *Store) List(st State) ([]string, error) {
	ids, err := s.back.list(st.Folder())
	if err != nil {
		return nil, fmt.Errorf("cannot list %s keys: %w", st, err)
	}
	return ids, nil
}

// Match returns the ids of one state that match a shell pattern, sorted; "*" means all.
func (s *Store) Match(pattern string, st State) ([]string, error) {
	ids, err := s.List(st)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, id := range ids {
		if ok, err := path.Match(pattern, id); err != nil {
			return nil, fmt.Errorf("cannot match keys: pattern %q: %w", pattern, err)
		} else if ok || pattern == id {
			out = append(out, id)
		}
	}
	return out, nil
}

// putKey stores text under a state; the text must have a usable length.
func putKey(v view, id string, st State, text string) error {
	// guard: CVE-2025-22241 @key-ids TestT1HostileIDs
	if err := protocol.ValidID(id); err != nil {
		return err
	}
	if len(text) == 0 || len(text) > maxKeyBytes {
		return fmt.Errorf("cannot store %s key of %q: %d bytes are not a public key", st, id, len(text))
	}
	if err := v.write(st.Folder(), id, []byte(text)); err != nil {
		return fmt.Errorf("cannot store %s key of %q: %w", st, id, err)
	}
	return nil
}

// Preseed stores a key as accepted before its minion ever connected, as provisioning does. A key of the id in any
// other state is removed.
func (s *Store) Preseed(id, pem string) error {
	if _, err := crypt.ParsePublicKey([]byte(pem)); err != nil {
		return fmt.Errorf("cannot accept key of %q: %w", id, err)
	}
	return s.editKeys(id, func(v view) (*Change, error) {
		err := putKey(v, id, Accepted, crypt.CleanKey(pem))
		for _, st := range []State{Pending, Rejected, Denied} {
			if err == nil {
				err = v.remove(st.Folder(), id)
			}
		}
		if err != nil {
			return nil, err
		}
		return &Change{Act: "accept", ID: id, To: Accepted}, nil
	})
}

// Accept moves a key to accepted, from pending or, with includeRejected or includeDenied, from those. It returns
// ErrNotFound if there is none. It does not check that the key is usable: Salt accepts what the operator accepts,
// and a key that cannot be parsed never passes a sign-in.
func (s *Store) Accept(id string, includeRejected, includeDenied bool) error {
	from := []State{Pending}
	if includeRejected {
		from = append(from, Rejected)
	}
	if includeDenied {
		from = append(from, Denied)
	}
	return s.moveKey(id, from, Accepted, "accept")
}

// Reject moves a key to rejected, from pending or, if requested, from accepted or denied.
func (s *Store) Reject(id string, includeAccepted, includeDenied bool) error {
	from := []State{Pending}
	if includeAccepted {
		from = append(from, Accepted)
	}
	if includeDenied {
		from = append(from, Denied)
	}
	return s.moveKey(id, from, Rejected, "reject")
}

func (s *Store) moveKey(id string, from []State, to State, act string) error {
	// guard: CVE-2025-22241 @key-ids TestT1HostileIDs
	if err := protocol.ValidID(id); err != nil {
		return err
	}
	err := s.editKeys(id, func(v view) (*Change, error) {
		src := Unknown
		var text []byte
		for _, st := range from {
			if b, _, err := v.read(st.Folder(), id); err == nil {
				src, text = st, b
				break
			}
		}
		if src == Unknown {
			return nil, ErrNotFound
		}
		err := putKey(v, id, to, crypt.CleanKey(string(text)))
		if err == nil {
			err = v.remove(src.Folder(), id)
		}
		if err == nil && to == Accepted {
			// An accepted key must not stay rejected, or no sign-in would ever see it.
			err = v.remove(Rejected.Folder(), id)
		}
		if err != nil {
			return nil, err
		}
		return &Change{Act: act, ID: id, From: src, To: to}, nil
	})
	if err != nil {
		return fmt.Errorf("cannot %s key of %q: %w", act, id, err)
	}
	return nil
}

// Delete removes the keys of an id in every state, or returns ErrNotFound.
func (s *Store) Delete(id string) error {
	return s.deleteFrom(id, States())
}

// DeleteState removes the key of an id in one state only, as `salt-key` does for denied keys.
func (s *Store) DeleteState(id string, st State) error {
	return s.deleteFrom(id, []State{st})
}

func (s *Store) deleteFrom(id string, states []State) error {
	// guard: CVE-2025-22241 @key-ids TestT1HostileIDs
	if err := protocol.ValidID(id); err != nil {
		return err
	}
	err := s.editKeys(id, func(v view) (*Change, error) {
		was := Unknown
		var err error
		for _, st := range states {
			if _, e := v.stat(st.Folder(), id); e != nil {
				continue
			}
			if was == Unknown || st == Accepted {
				was = st
			}
			if e := v.remove(st.Folder(), id); e != nil && err == nil {
				err = e
			}
		}
		if err == nil && was == Unknown {
			err = ErrNotFound
		}
		if err != nil {
			return nil, err
		}
		return &Change{Act: "delete", ID: id, From: was}, nil
	})
	if err != nil {
		return fmt.Errorf("cannot delete key of %q: %w", id, err)
	}
	return nil
}
