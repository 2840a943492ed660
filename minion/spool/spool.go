// Package spool keeps a minion's returns on disk until their master has acknowledged them: across restarts, for a time to live,
// within a size. One file per return, on the disk before the first attempt to send it.
//
// When the disk is full, a bounded number of returns is kept in memory instead, so that the minion still answers.
package spool

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/protocol/payload"
)

// Defaults of the options.
const (
	DefaultTTL      = 7 * 24 * time.Hour
	DefaultMaxBytes = 256 << 20
	// maxMemory bounds the returns that are kept in memory because the disk refuses them.
	maxMemory = 16 << 20
)

const (
	suffix  = ".return"
	damaged = ".damaged"
)

var limits = payload.Limits{Bytes: 1 << 30, Elements: 1 << 24}

// Options say where returns are kept and for how long.
type Options struct {
	// Dir is made with mode 0700 if it is missing.
	Dir string
	// TTL is how long a return is kept; 0 means DefaultTTL.
	TTL time.Duration
	// MaxBytes bounds all returns together; 0 means DefaultMaxBytes. The oldest make room for the newest.
	MaxBytes int64
	// Now is the time; nil is time.Now.
	Now func() time.Time
	// Log hears of damaged and dropped returns; nil is silent.
	Log *slog.Logger
}

// Item is a return that waits for its acknowledgement.
type Item struct {
	JID    string
	Master string // which master published the job
	At     time.Time
	size   int64
	path   string // "" when only memory has it
	memory []byte
}

// Spool is an open spool. It is safe for concurrent use.
type Spool struct {
	o Options

	mu      sync.Mutex
	items   []*Item // guarded by mu; oldest first
	bytes   int64   // guarded by mu; of all items
	memory  int64   // guarded by mu; of those in memory
	dropped int64   // guarded by mu
	last    int64   // guarded by mu; last file's number
}

// Open reads the names of the returns that wait.
func Open(o Options) (*Spool, error) {
	if o.TTL <= 0 {
		o.TTL = DefaultTTL
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Spool{o: o}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make spool directory: %w", err)
	}
	list, err := os.ReadDir(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read spool directory: %w", err)
	}
	for _, e := range list {
		s.adopt(e)
	}
	sorting.Stable(s.items, func(a, b *Item) int { return cmp.Compare(a.path, b.path) })
	return s, nil
}

// adopt takes a file of an earlier process.
func (s *Spool) adopt(e fs.DirEntry) {
	name := e.Name()
	path := filepath.Join(s.o.Dir, name)
	stamp, ok := strings.CutSuffix(name, suffix)
	info, err := e.Info()
	if !ok || err != nil || !info.Mode().IsRegular() {
		return
	}
	it := &Item{path: path, size: info.Size()}
	rec, err := it.read()
	if err != nil {
		s.o.Log.Error("A spooled return is damaged and is set aside", "path", path+damaged, "err", err)
		os.Rename(path, path+damaged)
		return
	}
	n, _ := strconv.ParseInt(stamp, 10, 64)
	s.last = max(s.last, n)
	it.JID, it.Master, it.At = rec.jid, rec.master, time.Unix(rec.at, 0)
	s.items = append(s.items, it)
	s.bytes += it.size
}

// Put keeps a return; it is on the disk when Put returns without an error. With an error it is kept in memory as far as there
// is room there, and can be sent all the same.
func (s *Spool) Put(master, jid string, load map[string]any) (*Item, error) {
	now := s.o.Now()
	b, err := payload.MarshalBin([]any{1, master, jid, now.Unix(), load})
	if err != nil {
		return nil, fmt.Errorf("cannot spool return of job %s: %w", jid, err)
	}
	it := &Item{JID: jid, Master: master, At: now, size: int64(len(b))}
	s.mu.Lock()
	s.last = max(s.last+1, now.UnixNano())
	path := filepath.Join(s.o.Dir, fmt.Sprintf("%020d%s", s.last, suffix))
	s.room(it.size)
	s.mu.Unlock()

	err = write(path, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("cannot spool return of job %s: %w", jid, err)
		it.memory = b
		s.memory += it.size
		s.forget()
	} else {
		it.path = path
	}
	s.items = append(s.items, it)
	s.bytes += it.size
	return it, err
}

// write makes a file and waits until it is on the disk. It is not renamed into place, which would cost a second wait: half a
// file is recognised when it is read, and the journal still knows its job then.
func write(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
	}
	return err
}

// Memory keeps a return in memory only, for answers that are worth nothing after a restart.
func (s *Spool) Memory(master, jid string, load map[string]any) (*Item, error) {
	now := s.o.Now()
	b, err := payload.MarshalBin([]any{1, master, jid, now.Unix(), load})
	if err != nil {
		return nil, fmt.Errorf("cannot keep return of job %s: %w", jid, err)
	}
	it := &Item{JID: jid, Master: master, At: now, size: int64(len(b)), memory: b}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory += it.size
	s.forget()
	s.items = append(s.items, it)
	s.bytes += it.size
	return it, nil
}

// room drops the oldest returns until size more bytes fit. Called with mu held.
func (s *Spool) room(size int64) {
	for s.bytes+size > s.o.MaxBytes && len(s.items) > 0 {
		s.drop(s.items[0], "the spool is full")
	}
}

// forget drops the oldest returns that only memory has. Called with mu held.
func (s *Spool) forget() {
	for i := 0; s.memory > maxMemory && i < len(s.items); {
		if s.items[i].path == "" {
			s.drop(s.items[i], "the disk cannot be written and memory is full")
			continue
		}
		i++
	}
}

func (s *Spool) drop(it *Item, why string) {
	s.dropped++
	s.o.Log.Error("A return is dropped before its master acknowledged it", "jid", it.JID, "master", it.Master, "reason", why)
	s.remove(it)
}

// remove forgets an item and its file. Called with mu held.
func (s *Spool) remove(it *Item) {
	i := slices.Index(s.items, it)
	if i < 0 {
		return
	}
	s.items = slices.Delete(s.items, i, i+1)
	s.bytes -= it.size
	if it.path == "" {
		s.memory -= it.size
		return
	}
	if err := os.Remove(it.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.o.Log.Warn("Cannot remove an acknowledged return; it will be sent again after a restart", "path", it.path, "err", err)
	}
}

// Done forgets a return that its master acknowledged.
func (s *Spool) Done(it *Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(it)
}

// Drop forgets a return that can never be delivered, and logs why.
func (s *Spool) Drop(it *Item, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.items, it) {
		s.drop(it, why)
	}
}

// Pending are the returns that wait, oldest first.
func (s *Spool) Pending() []*Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.items)
}

// Has tells whether a return of the job waits.
func (s *Spool) Has(jid string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.items, func(it *Item) bool { return it.JID == jid })
}

// Dropped is how many returns were dropped since Open.
func (s *Spool) Dropped() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// Expired are the returns older than the time to live. Deciding what becomes of them, and Drop, is the caller's.
func (s *Spool) Expired() []*Item {
	limit := s.o.Now().Add(-s.o.TTL)
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*Item
	for _, it := range s.items {
		if it.At.Before(limit) {
			list = append(list, it)
		}
	}
	return list
}

// Load reads a return.
func (s *Spool) Load(it *Item) (map[string]any, error) {
	rec, err := it.read()
	if err != nil {
		return nil, fmt.Errorf("cannot read spooled return of job %s: %w", it.JID, err)
	}
	return rec.load, nil
}

type record struct {
	master, jid string
	at          int64
	load        map[string]any
}

func (it *Item) read() (record, error) {
	b := it.memory
	if it.path != "" {
		var err error
		if b, err = os.ReadFile(it.path); err != nil {
			return record{}, err
		}
	}
	v, err := payload.UnmarshalDisk(b, limits)
	if err != nil {
		return record{}, err
	}
	list, ok := payload.List(v)
	if !ok || len(list) < 5 {
		return record{}, errors.New("not a spooled return")
	}
	var rec record
	rec.master, _ = payload.Text(list[1])
	rec.jid, _ = payload.Text(list[2])
	rec.at, _ = payload.Int(list[3])
	if rec.load, ok = payload.Map(list[4]); !ok {
		return record{}, errors.New("spooled return has no load")
	}
	return rec, nil
}

// Size is the return's packed size in bytes.
func (it *Item) Size() int64 { return it.size }
