// Package journal records, across crashes, which jobs a minion has begun and which publishes it has seen. So a job id
// runs at most once, and an old publish is never accepted again.
//
//	magic │ record │ record │ …          record: length, CRC-32, packed array
//
//	publish ─▶ Advance (serial) ─▶ Begin (fsync) ─▶ job runs ─▶ spool has the return ─▶ End
//	                                    │ crash
//	                                    ▼
//	                               Interrupted, at the next start
//
// The journal is one file that records are appended to. A Begin record is on the disk before the job has any effect.
// A crash while writing leaves an incomplete record at the end, which is cut off. When the file is large and mostly
// outdated, it is rewritten with the records that are still needed.
//
// If the disk is full the journal continues in memory and reports that (Failure), so that the minion still answers.
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
	// maxSeen limits the remembered job ids. They take less than 1 MB, the map included.
	maxSeen = 32 << 10
	// maxSerials limits the remembered shared keys.
	maxSerials = 256
	// compactAt is the size at which the file is rewritten, unless most of it is still needed.
	compactAt = 1 << 20
	// maxFile limits what is read at start.
	maxFile = 64 << 20
	// maxArgs limits the arguments that are kept to report an interrupted job; larger ones are left out.
	maxArgs = 64 << 10
)

// An Entry is a job that has begun.
type Entry struct {
	JID    string
	Master string
	// At is when the job began; the zero time means now.
	At time.Time
	// Job is what the return of an interrupted job needs: fun, arg, user, metadata, master_id.
	Job map[string]any
}

// Options configure a journal.
type Options struct {
	// Path is the file. Its directory must exist.
	Path string
	// Now returns the time; nil means time.Now.
	Now func() time.Time
	// Log receives reports of damage; nil means no log.
	Log *slog.Logger
}

// A Journal is an open journal. It is safe for concurrent use.
type Journal struct {
	o Options

	mu          sync.Mutex
	f           *os.File         // guarded by mu, like all below; nil after Close
	size        int64            // bytes of complete records in the file
	torn        bool             // bytes after size may be garbage
	running     map[string]Entry // begun and not ended
	interrupted []Entry          // begun before this process
	seen        map[uint64]int64 // hash of job id -> unix seconds
	serials     map[string]serial
	pins        map[string]bool
	failure     error  // of the last write
	id          string // of this journal, see ID

	gen int // counts files, since size starts again with each

	syncMu    sync.Mutex
	synced    int64 // guarded by syncMu; bytes known to be on the disk
	syncedGen int   // guarded by syncMu; the file that synced refers to
}

type serial struct {
	value int64
	at    int64 // unix seconds
}

// Open reads the journal, or creates one. A file that cannot be read is quarantined under the suffix ".damaged".
func Open(o Options) (*Journal, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	j := &Journal{o: o, running: map[string]Entry{}, seen: map[uint64]int64{}, serials: map[string]serial{}, pins: map[string]bool{}}
	if err := j.openFile(); err != nil {
		return nil, err
	}
	j.interrupted = append(j.interrupted, sortedEntries(j.running)...)
	return j, nil
}

// openFile opens and locks the file and reads its records.
func (j *Journal) openFile() error {
	f, err := os.OpenFile(j.o.Path, os.O_RDWR|os.O_CREATE|openFlags, 0o600)
	if err != nil {
		return fmt.Errorf("cannot open journal: %w", err)
	}
	if err := lockFile(f); err != nil {
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
		return j.quarantine(err)
	}
	if err != nil || good < info.Size() {
		j.o.Log.Warn("The end of the journal is damaged and is cut off", "path", j.o.Path, "bytes", info.Size()-good, "err", err)
	}
	j.f, j.size, j.torn = f, good, good < info.Size()
	if j.id == "" || err != nil { // the file is new, or damaged in the middle, so that jobs may be missing
		j.id = rand.Text()
		if _, err := j.appendRecord([]any{recBorn, j.id}); err != nil {
			j.o.Log.Warn("The journal gets another id at the next start", "path", j.o.Path, "err", err)
		}
	}
	return nil
}

// ID returns the id of this journal. A journal that was started again because its file was missing or damaged has
// another id: it may not know earlier jobs.
func (j *Journal) ID() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.id
}

// quarantine renames a damaged journal and starts a new file.
func (j *Journal) quarantine(cause error) error {
	damaged := j.o.Path + ".damaged"
	j.o.Log.Error("The journal is damaged and is quarantined", "path", damaged, "err", cause)
	if err := os.Rename(j.o.Path, damaged); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot quarantine journal: %w", err)
	}
	return j.openFile()
}

// Interrupted returns the jobs that had begun and not ended when the last process ended, oldest first. They stay in
// the journal until End is called for them.
func (j *Journal) Interrupted() []Entry { return j.interrupted }

// Begin records that a job begins. It returns false if the job id was seen before. With sync the record is on the
// disk when Begin returns. After an error the record is in memory only; the job still counts as begun.
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
	j.forgetOld(now)
	j.seen[id] = now
	j.running[e.JID] = e
	end, err := j.appendRecord(beginRecord(e, e.At.Unix()))
	f, gen := j.f, j.gen
	j.mu.Unlock()
	if err == nil && sync {
		err = j.syncTo(f, gen, end)
	}
	return true, err
}

// End records that a job needs no record any more: its return is stored in the spool.
func (j *Journal) End(jid string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, ok := j.running[jid]; !ok {
		return nil
	}
	delete(j.running, jid)
	_, err := j.appendRecord([]any{recEnd, jid})
	return err
}

// Seen reports whether a job id has begun within the last day.
func (j *Journal) Seen(jid string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, ok := j.seen[hashID(jid)]
	return ok
}

// Advance records the number of a publish under a shared key. It reports whether the number is above all earlier
// ones. key identifies the shared key and must not reveal it.
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
	// No sync: a crash of the host may lose the newest numbers, but jobs that began have their own records.
	_, _ = j.appendRecord([]any{recSerial, key, n, now})
	return true
}

// Pin records that a master signs its publishes, so that unsigned ones are refused from now on. The record is on the
// disk when Pin returns without an error.
func (j *Journal) Pin(master string) error {
	j.mu.Lock()
	if j.pins[master] {
		j.mu.Unlock()
		return nil
	}
	j.pins[master] = true
	end, err := j.appendRecord([]any{recPin, master})
	f, gen := j.f, j.gen
	j.mu.Unlock()
	if err != nil {
		return err
	}
	return j.syncTo(f, gen, end)
}

// Pinned reports whether a master signs its publishes.
func (j *Journal) Pinned(master string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pins[master]
}

// Failure returns why the last record could not be written, or nil.
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

// forgetOld drops job ids that are older than a day, or the older half if there are too many. The caller holds mu.
func (j *Journal) forgetOld(now int64) {
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

// syncTo waits until the first end bytes of a file are on the disk. Jobs that begin together share one fsync.
func (j *Journal) syncTo(f *os.File, gen int, end int64) error {
	j.syncMu.Lock()
	defer j.syncMu.Unlock()
	j.mu.Lock()
	upTo, same := j.size, j.gen == gen
	j.mu.Unlock()
	if !same || j.syncedGen == gen && j.synced >= end {
		return nil // already synced, or a newer file was synced as a whole
	}
	if err := f.Sync(); err != nil {
		if errors.Is(err, os.ErrClosed) {
			return nil // replaced by a newer file
		}
		j.setFailure(err)
		return fmt.Errorf("cannot sync journal: %w", err)
	}
	j.synced, j.syncedGen = upTo, gen
	return nil
}

// setFailure stores the error of a write.
func (j *Journal) setFailure(err error) {
	j.mu.Lock()
	j.failure = err
	j.mu.Unlock()
}

// hashID returns a number for a job id: its digits if it has the usual 20 digits of a year below 2100, else a hash.
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
