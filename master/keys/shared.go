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

// freshTime is how long a record is used without reading it again. Other masters report their changes, so this is
// for a master that cannot hear them.
const freshTime = 5 * time.Second

// maxRecords is how many records are remembered, at some 700 bytes each.
const maxRecords = 2048

// sharedTime limits one query of the database.
const sharedTime = 2 * time.Minute

// listTime limits a query for many ids. The command line tools wait 30 s for a job to be published: they must learn why
// it was not.
const listTime = 20 * time.Second

// maxSwaps is how often an edit is repeated because other masters were faster.
const maxSwaps = 100

// shared stores keys in a database, one record per id. Reads are answered from memory if the record was read or
// reported a moment ago.
type shared struct {
	db   store.Shared
	name string

	mu      sync.Mutex // guards the fields below
	records map[string]knownRecord
	reading map[string]*reading
	lists   map[string]knownList
}

// reading counts reads of one id in progress.
type reading struct {
	n     int
	stale bool // the record has changed since the first of them started
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
	return &shared{db: db, name: name, records: make(map[string]knownRecord), reading: make(map[string]*reading), lists: make(map[string]knownList)}
}

func (s *shared) close() error { return nil }

// record returns the keys of an id as they are, or were a moment ago.
func (s *shared) record(id string) (store.KeyRecord, error) {
	now := time.Now()
	s.mu.Lock()
	known, ok := s.records[id]
	s.mu.Unlock()
	if ok && now.Sub(known.at) < freshTime {
		return known.KeyRecord, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	return s.loadRecord(ctx, id)
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
	if known := s.records[id]; err != nil || mine.stale || known.Epoch > r.Epoch && now.Sub(known.at) < freshTime {
		return r, err
	}
	if len(s.records) >= maxRecords {
		clear(s.records)
	}
	s.records[id] = knownRecord{r, now}
	return r, nil
}

// dropRecord drops what is known of an id, or of all if it is empty, and marks its reads in progress as stale.
func (s *shared) dropRecord(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == "" {
		clear(s.records)
		for id := range s.reading {
			s.outdate(id)
		}
		return
	}
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

// Told applies what another master reported about keys and returns what changed. ok is false if it was not about
// the keys of a minion. A nil body means that something may have been missed.
func (s *Store) Told(body []byte) (c Change, ok bool) {
	back, isShared := s.back.(*shared)
	if !isShared {
		return c, false
	}
	if body == nil {
		back.dropRecord("")
		s.mu.Lock()
		clear(s.parsed)
		s.mu.Unlock()
		return c, false
	}
	v, err := payload.UnmarshalDisk(body, payload.Limits{})
	m, isMap := payload.Map(v)
	if err != nil || !isMap {
		return c, false
	}
	c.Act, _ = payload.Text(m["act"])
	c.ID, _ = payload.Text(m["id"])
	from, _ := payload.Int(m["from"])
	to, _ := payload.Int(m["to"])
	c.From, c.To = State(from), State(to)
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

var errNoEdit = errors.New("keys of several masters are changed in one step only")

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
