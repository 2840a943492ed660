// Package journal remembers, across crashes, which jobs a minion has begun and which publishes it has seen, so that a job id
// runs at most once and an old publish is not honoured again.
//
// It is one file that only grows, of small records with checksums. A record that says "this job begins" is on the disk before
// the job's first effect; a torn end of the file, from a crash while writing, is cut off. Now and then the file is written
// anew with what still counts.
//
// When the disk is full the journal goes on in memory and says so: a minion that cannot write must still answer.
package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"
)

// Limits.
const (
	// Keep is how long job ids are remembered.
	Keep = 24 * time.Hour
	// maxSeen bounds the remembered job ids; at 12 bytes each they stay below 1 MB with the map's own room.
	maxSeen = 32 << 10
	// maxSerials bounds the remembered shared keys.
	maxSerials = 256
	// compactAt is the size at which the file is written anew, unless most of it still counts.
	compactAt = 1 << 20
	// maxFile bounds what is read at start.
	maxFile = 64 << 20
	// maxArgs bounds the job that is kept for a report of its interruption; of larger ones the arguments are left out.
	maxArgs = 64 << 10
)

// Entry is a job that has begun.
type Entry struct {
	JID    string
	Master string
	// At is when the job began; the zero time means now.
	At time.Time
	// Job is what a return of the job needs: fun, arg, user, metadata, master_id.
	Job map[string]any
}

// Options say where the journal is.
type Options struct {
	// Path is the file. Its directory must exist.
	Path string
	// Now is the time; nil is time.Now.
	Now func() time.Time
	// Log hears of damage; nil is silent.
	Log *slog.Logger
}

// Journal is an open journal. It is safe for concurrent use.
type Journal struct {
	o Options

	mu          sync.Mutex
	f           *os.File         // guarded by mu, as all below; nil after Close
	size        int64            // bytes of whole records in the file
	torn        bool             // bytes after size may be rubbish
	running     map[string]Entry // begun and not ended
	interrupted []Entry          // begun before this process
	seen        map[uint64]int64 // hash of job id -> unix seconds
	serials     map[string]serial
	pins        map[string]bool
	failure     error  // of the last write
	id          string // of this journal

	gen int // counts files, as sizes start again with each

	syncMu    sync.Mutex
	synced    int64 // guarded by syncMu; bytes known to be on the disk
	syncedGen int   // guarded by syncMu; of which file
}

type serial struct {
	value int64
	at    int64 // unix seconds
}

// Open reads the journal or begins one. A file that cannot be understood is set aside under the suffix ".damaged".
func Open(o Options) (*Journal, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	j := &Journal{o: o, running: map[string]Entry{}, seen: map[uint64]int64{}, serials: map[string]serial{}, pins: map[string]bool{}}
	if err := j.open(); err != nil {
		return nil, err
	}
	j.interrupted = append(j.interrupted, sorted(j.running)...)
	return j, nil
}

func (j *Journal) open() error {
	f, err := os.OpenFile(j.o.Path, os.O_RDWR|os.O_CREATE|openFlags, 0o600)
	if err != nil {
		return fmt.Errorf("cannot open journal: %w", err)
	}
	if err := lock(f); err != nil {
		f.Close()
		return fmt.Errorf("cannot open journal %q: %w", j.o.Path, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("cannot open journal %q: %w", j.o.Path, err)
	}
	good, err := j.load(io.LimitReader(f, maxFile))
	if err != nil && good == 0 {
		f.Close()
		return j.setAside(err)
	}
	if err != nil || good < info.Size() {
		j.o.Log.Warn("The end of the journal is damaged and is cut off", "path", j.o.Path, "bytes", info.Size()-good, "err", err)
	}
	j.f, j.size, j.torn = f, good, good < info.Size()
	if j.id == "" || err != nil { // damaged in the middle: jobs that had begun may be missing
		j.id = rand.Text()
		if _, err := j.append([]any{recBorn, j.id}); err != nil {
			j.o.Log.Warn("The journal gets another name at the next start", "path", j.o.Path, "err", err)
		}
	}
	return nil
}

// ID names this journal. One that begins again, because its file is gone or damaged, has another name: it may not know the jobs of before.
func (j *Journal) ID() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.id
}

// setAside gives a damaged journal another name and starts anew.
func (j *Journal) setAside(cause error) error {
	damaged := j.o.Path + ".damaged"
	j.o.Log.Error("The journal is damaged and is set aside", "path", damaged, "err", cause)
	if err := os.Rename(j.o.Path, damaged); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot set journal aside: %w", err)
	}
	return j.open()
}

// Interrupted are the jobs that had begun and not ended when the last process went away, oldest first. They stay on record
// until End is called for them.
func (j *Journal) Interrupted() []Entry { return j.interrupted }

// Begin notes that a job begins, unless its id was seen before: then it returns false. With sync the note is on the disk when
// Begin returns. An error says that the note is only in memory; the job counts as begun all the same.
func (j *Journal) Begin(e Entry, sync bool) (first bool, err error) {
	id := hashID(e.JID)
	now := j.o.Now().Unix()
	if e.At.IsZero() {
		e.At = time.Unix(now, 0)
	}
	j.mu.Lock()
	if _, dup := j.seen[id]; dup {
		j.mu.Unlock()
		return false, nil
	}
	j.forget(now)
	j.seen[id] = now
	j.running[e.JID] = e
	end, err := j.append(beginRecord(e, e.At.Unix()))
	f, gen := j.f, j.gen
	j.mu.Unlock()
	if err == nil && sync {
		err = j.flush(f, gen, end)
	}
	return true, err
}

// End notes that a job's return is safe elsewhere.
func (j *Journal) End(jid string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, ok := j.running[jid]; !ok {
		return nil
	}
	delete(j.running, jid)
	_, err := j.append([]any{recEnd, jid})
	return err
}

// Seen tells whether a job id has begun within the last day.
func (j *Journal) Seen(jid string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, ok := j.seen[hashID(jid)]
	return ok
}

// Advance notes a publish number under a shared key and tells whether it is above all numbers before. key is any text that
// stands for the shared key and does not reveal it.
func (j *Journal) Advance(key string, n int64) bool {
	now := j.o.Now().Unix()
	j.mu.Lock()
	defer j.mu.Unlock()
	if last, ok := j.serials[key]; ok && n <= last.value {
		return false
	}
	j.serials[key] = serial{n, now}
	if len(j.serials) > maxSerials {
		oldest, at := "", int64(0)
		for k, s := range j.serials {
			if oldest == "" || s.at < at {
				oldest, at = k, s.at
			}
		}
		delete(j.serials, oldest)
	}
	// Not synced: a crash of the machine may lose the newest numbers, but jobs that ran have their own records.
	_, _ = j.append([]any{recSerial, key, n, now})
	return true
}

// Pin remembers that a master signs its publishes. The record is on the disk when Pin returns without an error.
func (j *Journal) Pin(master string) error {
	j.mu.Lock()
	if j.pins[master] {
		j.mu.Unlock()
		return nil
	}
	j.pins[master] = true
	end, err := j.append([]any{recPin, master})
	f, gen := j.f, j.gen
	j.mu.Unlock()
	if err != nil {
		return err
	}
	return j.flush(f, gen, end)
}

// Pinned tells whether the master signs its publishes.
func (j *Journal) Pinned(master string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pins[master]
}

// Failure is why the last record could not be written, nil if it could.
func (j *Journal) Failure() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failure
}

// Close writes everything to the disk and closes the file.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.f == nil {
		return nil
	}
	err := errors.Join(j.f.Sync(), j.f.Close())
	j.f = nil
	return err
}

// forget drops job ids that are older than a day, or the older half when there are too many. Called with mu held.
func (j *Journal) forget(now int64) {
	if len(j.seen) < maxSeen {
		return
	}
	limit := now - int64(Keep/time.Second)
	for len(j.seen) >= maxSeen {
		for id, at := range j.seen {
			if at < limit {
				delete(j.seen, id)
			}
		}
		limit += (now-limit)/2 + 1
	}
}

// flush makes sure that the first end bytes of a file are on the disk. Jobs that begin together share one fsync.
func (j *Journal) flush(f *os.File, gen int, end int64) error {
	j.syncMu.Lock()
	defer j.syncMu.Unlock()
	j.mu.Lock()
	upTo, same := j.size, j.gen == gen
	j.mu.Unlock()
	if !same || j.syncedGen == gen && j.synced >= end {
		return nil // a newer file was synced as a whole
	}
	if err := f.Sync(); err != nil {
		if errors.Is(err, os.ErrClosed) {
			return nil // replaced by a newer file meanwhile
		}
		j.fail(err)
		return fmt.Errorf("cannot sync journal: %w", err)
	}
	j.synced, j.syncedGen = upTo, gen
	return nil
}

func (j *Journal) fail(err error) {
	j.mu.Lock()
	j.failure = err
	j.mu.Unlock()
}

// hashID makes a small number of a job id: the id itself where it is the usual 20 digits of a year below 2100, else a hash.
func hashID(jid string) uint64 {
	if len(jid) == 20 && jid[0] == '2' && jid[1] == '0' {
		if n, err := strconv.ParseUint(jid[2:], 10, 64); err == nil {
			return n
		}
	}
	h := fnv.New64a()
	h.Write([]byte(jid))
	return h.Sum64() | 1<<63
}
