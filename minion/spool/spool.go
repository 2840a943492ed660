// Package spool keeps a minion's returns on disk until the master has acknowledged them, across restarts, up to an
// age and a total size.
//
//	Put ─▶ NNN.return, fsync ─▶ sent ─▶ acknowledged ─▶ Done removes the file
//	  │ disk full                  │ restart: Open reads the names, Pending returns them
//	  ▼                            │ older than TTL: Expired
//	memory, at most 16 MiB         │ damaged: renamed to NNN.return.damaged
//
// Each return is a file, which is on the disk before the first attempt to send it. If the disk is full, a limited
// number of returns is kept in memory, so that the minion still answers.
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
	// maxMemory limits the returns that are kept in memory because the disk refuses them.
	maxMemory = 16 << 20
)

const (
	suffix  = ".return"
	damaged = ".damaged"
)

var limits = payload.Limits{Bytes: 1 << 30, Elements: 1 << 24}

// Options configure where and how long returns are kept.
type Options struct {
	// Dir is created with mode 0700 if it is missing.
	Dir string
	// TTL is how long a return is kept; 0 means DefaultTTL.
	TTL time.Duration
	// MaxBytes limits the size of all returns; 0 means DefaultMaxBytes. The oldest are dropped for new ones.
	MaxBytes int64
	// Now returns the time; nil means time.Now.
	Now func() time.Time
	// Log receives messages about damaged and dropped returns; nil means no log.
	Log *slog.Logger
}

// An Item is a return that is not acknowledged yet.
type Item struct {
	JID    string
	Master string // the master that published the job
	At     time.Time
	size   int64
	path   string // "" if it is in memory only
	memory []byte
}

// A Spool is an open spool. It is safe for concurrent use.
type Spool struct {
	o Options

	mu      sync.Mutex
	items   []*Item // guarded by mu; oldest first
	bytes   int64   // guarded by mu; of all items
	memory  int64   // guarded by mu; of the items in memory
	dropped int64   // guarded by mu
	last    int64   // guarded by mu; the number of the last file
}

// Open reads the pending returns of earlier processes.
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
		return nil, fmt.Errorf("cannot create spool directory: %w", err)
	}
	list, err := os.ReadDir(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read spool directory: %w", err)
	}
	for _, e := range list {
		s.adoptFile(e)
	}
	sorting.Stable(s.items, func(a, b *Item) int { return cmp.Compare(a.path, b.path) })
	return s, nil
}

// adoptFile adds a file of an earlier process.
func (s *Spool) adoptFile(e fs.DirEntry) {
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
		s.o.Log.Error("A spooled return is damaged and is quarantined", "path", path+damaged, "err", err)
		os.Rename(path, path+damaged)
		return
	}
	n, _ := strconv.ParseInt(stamp, 10, 64)
	s.last = max(s.last, n)
	it.JID, it.Master, it.At = rec.jid, rec.master, time.Unix(rec.at, 0)
	s.items = append(s.items, it)
	s.bytes += it.size
}

// Put stores a return; it is on the disk when Put returns without an error. After an error the return is in memory,
// if there is room, and can still be sent.
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
	s.makeRoom(it.size)
	s.mu.Unlock()

	err = writeFile(path, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("cannot spool return of job %s: %w", jid, err)
		it.memory = b
		s.memory += it.size
		s.trimMemory()
	} else {
		it.path = path
	}
	s.items = append(s.items, it)
	s.bytes += it.size
	return it, err
}

// writeFile writes a file and waits until it is on the disk. It does not rename the file into place, which would
// cost a second fsync. A half-written file is detected when it is read, and the journal still knows its job then.
func writeFile(path string, b []byte) error {
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

// Memory keeps a return in memory only. It is for returns that are useless after a restart.
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
	s.trimMemory()
	s.items = append(s.items, it)
	s.bytes += it.size
	return it, nil
}

// makeRoom drops the oldest returns until size more bytes fit. The caller holds mu.
func (s *Spool) makeRoom(size int64) {
	for s.bytes+size > s.o.MaxBytes && len(s.items) > 0 {
		s.dropItem(s.items[0], "the spool is full")
	}
}

// trimMemory drops the oldest returns that are in memory only. The caller holds mu.
func (s *Spool) trimMemory() {
	for i := 0; s.memory > maxMemory && i < len(s.items); {
		if s.items[i].path == "" {
			s.dropItem(s.items[i], "the disk cannot be written and memory is full")
			continue
		}
		i++
	}
}

// dropItem removes a return that was not acknowledged, and logs it.
func (s *Spool) dropItem(it *Item, why string) {
	s.dropped++
	s.o.Log.Error("A return is dropped before its master acknowledged it", "jid", it.JID, "master", it.Master, "reason", why)
	s.removeItem(it)
}

// removeItem removes an item and its file. The caller holds mu.
func (s *Spool) removeItem(it *Item) {
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

// Done removes a return that its master has acknowledged.
func (s *Spool) Done(it *Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeItem(it)
}

// Drop removes a return that can never be delivered, and logs why.
func (s *Spool) Drop(it *Item, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.items, it) {
		s.dropItem(it, why)
	}
}

// Pending returns the returns that are not acknowledged, oldest first.
func (s *Spool) Pending() []*Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.items)
}

// Has reports whether a return of the job is pending.
func (s *Spool) Has(jid string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.items, func(it *Item) bool { return it.JID == jid })
}

// Dropped returns how many returns were dropped since Open.
func (s *Spool) Dropped() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// Expired returns the returns older than the time to live. The caller decides what to do with them, and calls Drop.
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

// record is the content of a file: version, master, job id, time and load.
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
	v, err := payload.UnmarshalDiskOrdered(b, limits)
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

// Size returns the return's packed size in bytes.
func (it *Item) Size() int64 { return it.size }
