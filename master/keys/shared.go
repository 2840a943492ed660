package keys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// MessageKind is the kind of the messages with which masters tell each other about keys; see Store.Told.
const MessageKind = "key"

// freshTime is how long the remembered records are used without asking the database which of them have changed. Other
// masters report their changes at once, so this is for a master that cannot hear them. docs/security.md states it.
const freshTime = 5 * time.Second

// recordLife is how long one record is used although no change is known. It is for changes that no message
// reports: an operator's own statements, or a database restored from a backup.
const recordLife = 10 * time.Minute

// maxRecords is how many records are remembered, at some 700 bytes each: those of as many minions as a master has.
const maxRecords = 10_000

// sharedTime limits one query of the database.
const sharedTime = 2 * time.Minute

// listTime limits a query for many ids. The command line tools wait 30 s for a job to be published: they must learn why
// it was not.
const listTime = 20 * time.Second

// maxSwaps is how often an edit is repeated because other masters were faster.
const maxSwaps = 100

// shared stores keys in a database, one record per id. Reads are answered from memory. Every change of a key is stored
// together with a message to the other masters, and these have numbers without gaps. So one question for all records
// finds those that changed since the last one:
//
//	record ─ fresh? ── no ──▶ MessagesSince(newest) ─▶ drop the changed records, or all if messages were removed
//	            └──── yes ──▶ the record in memory, or Key
type shared struct {
	db    store.Shared
	name  string
	fresh time.Duration // freshTime; shorter in tests

	mu      sync.Mutex // guards the fields below
	newest  int64      // the number of the newest message when the records were last checked; -1: never
	checked time.Time  // when that check began; zero: check before the next use
	check   *check     // in progress, or nil
	records map[string]knownRecord
	reading map[string]*reading
	lists   map[string]knownList
}

// reading counts reads of one id in progress.
type reading struct {
	n     int
	stale bool // the record has changed since the first of them started
}

// check is a question for the changes of all records. err is set before done is closed.
type check struct {
	done chan struct{}
	err  error
}

type knownRecord struct {
	store.KeyRecord
	at time.Time
}

type knownList struct {
	version int64
	ids     []string
}

func newShared(db store.Shared, name string) *shared {
	return &shared{db: db, name: name, fresh: freshTime, newest: -1, records: make(map[string]knownRecord), reading: make(map[string]*reading), lists: make(map[string]knownList)}
}

func (s *shared) close() error { return nil }

// record returns the keys of an id as they are, or were at most freshTime ago.
func (s *shared) record(id string) (store.KeyRecord, error) {
	if err := s.refresh(); err != nil {
		return store.KeyRecord{}, err
	}
	s.mu.Lock()
	known, ok := s.records[id]
	s.mu.Unlock()
	if ok && time.Since(known.at) < recordLife {
		return known.KeyRecord, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	return s.loadRecord(ctx, id)
}

// refresh returns when the records in memory were checked less than freshTime before the call, or later. Callers that
// find them unchecked share one check.
func (s *shared) refresh() error {
	called := time.Now()
	for {
		s.mu.Lock()
		if !s.checked.IsZero() && called.Sub(s.checked) < s.fresh {
			s.mu.Unlock()
			return nil
		}
		c := s.check
		if c != nil {
			s.mu.Unlock()
			if <-c.done; c.err != nil {
				return c.err
			}
			continue
		}
		c = &check{done: make(chan struct{})}
		s.check = c
		since := s.newest
		s.mu.Unlock()
		c.err = s.dropChanged(since)
		close(c.done)
		return c.err
	}
}

// dropChanged drops the records that other masters changed since a message, and ends the check in progress.
func (s *shared) dropChanged(since int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	begun := time.Now()
	bodies, newest, complete, err := s.db.MessagesSince(ctx, s.name, MessageKind, since)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.check = nil
	if err != nil {
		return fmt.Errorf("cannot read which keys have changed: %w", err)
	}
	for _, body := range bodies {
		c, err := unpackChange(body)
		if err != nil || c.ID == "" {
			complete = false
			break
		}
		delete(s.records, c.ID)
		s.outdate(c.ID)
	}
	if !complete {
		s.dropAll()
	}
	s.newest, s.checked = newest, begun
	return nil
}

// suspect has the next use of a record ask what has changed.
func (s *shared) suspect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked = time.Time{}
}

// dropAll drops all records; callers hold mu.
func (s *shared) dropAll() {
	clear(s.records)
	for id := range s.reading {
		s.outdate(id)
	}
}

// loadRecord reads the record of an id and remembers it, unless a change was reported meanwhile or a later record
// is known.
func (s *shared) loadRecord(ctx context.Context, id string) (store.KeyRecord, error) {
	now := time.Now()
	s.mu.Lock()
	mine := s.reading[id]
	if mine == nil {
		mine = &reading{}
		s.reading[id] = mine
	}
	mine.n++
	s.mu.Unlock()
	r, err := s.db.Key(ctx, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if mine.n--; mine.n == 0 && s.reading[id] == mine {
		delete(s.reading, id)
	}
	if known := s.records[id]; err != nil || mine.stale || known.Epoch > r.Epoch && now.Sub(known.at) < recordLife {
		return r, err
	}
	if _, known := s.records[id]; !known && len(s.records) >= maxRecords {
		for other := range s.records { // any
			delete(s.records, other)
			break
		}
	}
	s.records[id] = knownRecord{r, now}
	return r, nil
}

// dropRecord drops what is known of an id and marks its reads in progress as stale.
func (s *shared) dropRecord(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, id)
	s.outdate(id)
}

// outdate keeps reads in progress from being remembered; callers hold mu.
func (s *shared) outdate(id string) {
	if r := s.reading[id]; r != nil {
		r.stale = true
		delete(s.reading, id)
	}
}

// editRecord implements Store.editKeys.
func (s *shared) editRecord(id string, f func(v view) (*Change, error)) (*Change, error) {
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	for range maxSwaps {
		r, err := s.loadRecord(ctx, id)
		if err != nil {
			return nil, err
		}
		v := &recordView{KeyRecord: r}
		change, err := f(v)
		if err != nil || !v.changed {
			return nil, err
		}
		v.Changed = time.Now()
		if change != nil && change.Act == "delete" {
			v.Generation++ // what was issued before is void, even if the key returns
		}
		body, err := packChange(id, change)
		if err != nil {
			return nil, err
		}
		ok, err := s.db.SwapKey(ctx, v.KeyRecord, store.Message{From: s.name, Kind: MessageKind, Body: body})
		s.dropRecord(id)
		if err != nil {
			return nil, err
		}
		if ok {
			return change, nil
		}
	}
	return nil, fmt.Errorf("cannot change keys of %q: another master changed them at every attempt", id)
}

func packChange(id string, c *Change) ([]byte, error) {
	if c == nil {
		c = &Change{ID: id}
	}
	return payload.MarshalBin(map[string]any{"act": c.Act, "id": id, "from": int64(c.From), "to": int64(c.To)})
}

func unpackChange(body []byte) (c Change, err error) {
	v, err := payload.UnmarshalDisk(body, payload.Limits{})
	m, isMap := payload.Map(v)
	if err != nil || !isMap {
		return c, errors.Join(errors.New("message about keys cannot be read"), err)
	}
	c.Act, _ = payload.Text(m["act"])
	c.ID, _ = payload.Text(m["id"])
	from, _ := payload.Int(m["from"])
	to, _ := payload.Int(m["to"])
	c.From, c.To = State(from), State(to)
	return c, nil
}

// Told applies what another master reported about keys and returns what changed. ok is false if it was not about
// the keys of a minion. A nil body means that something may have been missed: the next use of a key asks the database
// what has changed.
func (s *Store) Told(body []byte) (c Change, ok bool) {
	back, isShared := s.back.(*shared)
	if !isShared {
		return c, false
	}
	if body == nil {
		back.suspect()
		return c, false
	}
	c, err := unpackChange(body)
	if err != nil {
		return c, false
	}
	back.dropRecord(c.ID)
	s.forgetParsed(c.ID)
	return c, c.Act != ""
}

// Generation counts how often what was issued to a minion became void. It stays 0 for masters that share nothing.
func (s *Store) Generation(id string) (int64, error) {
	back, ok := s.back.(*shared)
	if !ok {
		return 0, nil
	}
	r, err := back.record(id)
	return r.Generation, err
}

// Renew increments the generation of a minion, if it is still the given one.
func (s *Store) Renew(id string, generation int64) error {
	if _, ok := s.back.(*shared); !ok || protocol.ValidID(id) != nil {
		return nil
	}
	return s.editKeys(id, func(v view) (*Change, error) {
		r := v.(*recordView)
		if r.Epoch > 0 && r.Generation == generation {
			r.Generation++
			r.changed = true
		}
		return nil, nil
	})
}

func (s *shared) read(folder, id string) ([]byte, stamp, error) {
	r, err := s.record(id)
	if err != nil {
		return nil, stamp{}, err
	}
	return (&recordView{KeyRecord: r}).read(folder, id)
}

func (s *shared) stat(folder, id string) (stamp, error) {
	_, st, err := s.read(folder, id)
	return st, err
}

var errNoEdit = errors.New("keys that masters share are changed in one step only")

func (s *shared) write(string, string, []byte) error { return errNoEdit }

func (s *shared) remove(string, string) error { return errNoEdit }

func (s *shared) list(folder string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), listTime)
	defer cancel()
	version, err := s.db.KeyVersion(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	known, ok := s.lists[folder]
	s.mu.Unlock()
	if !ok || known.version != version {
		ids, err := s.db.KeyIDs(ctx, folder)
		if err != nil {
			return nil, err
		}
		known = knownList{version, ids}
		s.mu.Lock()
		s.lists[folder] = known
		s.mu.Unlock()
	}
	return slices.Clone(known.ids), nil
}

func (s *shared) count(folder string) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	return s.db.KeyCount(ctx, folder)
}

// recordView is a record as a view.
type recordView struct {
	store.KeyRecord
	changed bool
}

// field returns where a record has the key of a state, nil for no state.
func (r *recordView) field(folder string) *string {
	switch folder {
	case Accepted.Folder():
		return &r.Accepted
	case Pending.Folder():
		return &r.Pending
	case Rejected.Folder():
		return &r.Rejected
	case Denied.Folder():
		return &r.Denied
	}
	return nil
}

func (r *recordView) read(folder, _ string) ([]byte, stamp, error) {
	f := r.field(folder)
	if f == nil || *f == "" {
		return nil, stamp{}, ErrNotFound
	}
	return []byte(*f), stamp{mtime: r.Changed, size: r.Epoch}, nil
}

func (r *recordView) stat(folder, id string) (stamp, error) {
	_, st, err := r.read(folder, id)
	return st, err
}

func (r *recordView) write(folder, _ string, text []byte) error {
	return r.set(folder, string(text))
}

func (r *recordView) remove(folder, _ string) error { return r.set(folder, "") }

func (r *recordView) set(folder, text string) error {
	f := r.field(folder)
	if f == nil {
		return fmt.Errorf("%q is not a state of a key", folder)
	}
	r.changed = r.changed || *f != text
	*f = text
	return nil
}

// Copy copies all keys of one store into another, each under its states. A stand-alone master's directory moves
// into a database this way, and back. It returns how many it copied.
func Copy(dst, src *Store) (int, error) {
	n := 0
	for _, st := range States() {
		ids, err := src.List(st)
		if err != nil {
			return n, err
		}
		for _, id := range ids {
			k, err := src.Get(id, st)
			if err == nil {
				err = dst.editKeys(id, func(v view) (*Change, error) { return nil, putKey(v, id, st, k.Text) })
			}
			if err != nil {
				return n, fmt.Errorf("cannot copy %s key of %q: %w", st, id, err)
			}
			n++
		}
	}
	return n, nil
}
