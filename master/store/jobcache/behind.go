package jobcache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
)

const (
	// While more than stormAt returns to one job are being saved, new ones are copied to the files later. Copying
	// continues when at most calmAt returns to all jobs are being saved, and at most calmAt arrived in lookEvery.
	stormAt, calmAt = 64, 16
	// maxLag is the maximum age of a return that is not copied yet, maxBehind the maximum number (100 bytes
	// each). Beyond that, new ones are written at once, and copying waits for nothing.
	maxLag    = 5 * time.Second
	maxBehind = 100_000
	// copyPage is how many returns are read at once. lookEvery is how often to check whether a storm is over.
	copyPage  = 16
	lookEvery = 20 * time.Millisecond
	// finishTime is how long Close continues copying; the next start does the rest.
	finishTime = 3 * time.Second
	// mendSpan is how long before the newest job others may have been created whose files a power failure
	// emptied: the kernel writes a file within 30 seconds. At most mendJobs are checked.
	mendSpan, mendJobs = 10 * time.Minute, 1000
	// retryAfter is how long a job whose copying failed waits for the next attempt, retryMax the same after
	// repeated failures.
	retryAfter, retryMax = time.Second, time.Minute
)

// Behind is a store in front of a job cache that only Salt's tools read. The other store is authoritative.
//
//	few returns    ─▶ first, then cache ─▶ acknowledged
//	a storm        ─▶ mark the job ─▶ first ─▶ acknowledged        later: first ─▶ cache ─▶ unmark
//	copy fails     ─▶ retried, after a growing pause
//	crash          ─▶ marked jobs are copied at the next start
//
// Jobs, and returns that arrive in small numbers, are in both stores when they are acknowledged. If many
// minions return for one job at the same time, their returns are first only in the other store, which handles
// many at once. They are copied when the storm is over, at most some seconds later. If copying fails, because
// the disk is full or descriptors are short, it is retried until it succeeds. Files are never incomplete.
type Behind struct {
	store.Store // both
	first       store.Paged
	cache       *Store
	log         *slog.Logger

	marking sync.Mutex    // held while a mark is made or removed; taken before mu
	marks   *confined.Dir // holds a file named after each marked job

	mu     sync.Mutex // guards the fields below
	jobs   map[string]*copied
	line   []*copied // jobs with ids to copy, oldest first
	behind int       // number of ids of all jobs
	saving int       // returns in progress to both
	pace   pace

	pause time.Duration // before the next attempt of a failed job; only run uses it

	wake chan struct{} // holds one element when there may be work
	quit chan struct{}
	done chan struct{}
}

// copied is a job whose returns are arriving.
type copied struct {
	jid    string
	saving int
	marked bool
	ids    []string  // minions whose returns are to be copied
	since  time.Time // when the first of them arrived
	failed bool      // some returns are not in the cache, possibly others than ids
	tried  time.Time // when copying of a failed job started again, until all is copied
}

// Behind returns a store with first in front of the cache. Close it before either store.
func (s *Store) Behind(first store.Paged, log *slog.Logger) (*Behind, error) {
	marks, err := confined.Open(s.dir.Path()+".behind", 0o750)
	if err != nil {
		return nil, err
	}
	b := &Behind{Store: store.Multi(first, s), first: first, cache: s, log: log, marks: marks, jobs: make(map[string]*copied),
		pause: retryAfter, wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	if err := b.resume(); err != nil {
		marks.Close()
		return nil, err
	}
	// Read this before the first job of this run arrives, which is between the two stores for a moment and
	// needs no repair.
	earlier, err := b.newestJobs()
	if err != nil {
		log.Error("Cannot mend the job cache", "err", err)
	}
	go b.run(earlier)
	return b, nil
}

// Unwrap implements store.Wrapper.
func (b *Behind) Unwrap() store.Store { return b.first }

// Close copies what is left, for a limited time. It does not close the two stores.
func (b *Behind) Close() error {
	close(b.quit)
	<-b.done
	return b.marks.Close()
}

// resume continues copying that a crash interrupted.
func (b *Behind) resume() error {
	entries, err := b.marks.List(".")
	if err != nil {
		return fmt.Errorf("cannot find jobs that are not copied yet: %w", err)
	}
	for _, e := range entries {
		jid := e.Name()
		if !protocol.ValidJID(jid) {
			continue
		}
		ids, err := b.first.Returned(context.Background(), jid)
		if err != nil {
			return err
		}
		j := &copied{jid: jid, marked: true}
		b.jobs[jid] = j
		b.addCopies(j, ids...)
	}
	b.signal()
	return nil
}

// SaveReturn implements store.Store.
func (b *Behind) SaveReturn(ctx context.Context, r store.Return) (bool, error) {
	j, later := b.enterReturn(r.JID)
	if later {
		if err := b.markJob(j); err != nil {
			b.log.Error("Returns of a job cannot be copied later, and are copied at once", "jid", r.JID, "err", err)
			later = false
		}
	}
	isNew, err := b.first.SaveReturn(ctx, r)
	// guard: lost-returns TestBehindAfterDeath
	if err == nil && !(later && isNew) {
		// Duplicates too: a crash may have kept the return from the cache, and then it was not acknowledged.
		_, _, err = b.cache.saveReturn(r)
	}
	b.leaveReturn(j, r.ID, later && isNew && err == nil, isNew && err != nil)
	return isNew, err
}

// enterReturn counts a return that is about to be saved. later reports whether it is to be copied later.
func (b *Behind) enterReturn(jid string) (j *copied, later bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j = b.jobs[jid]; j == nil {
		j = &copied{jid: jid}
		b.jobs[jid] = j
	}
	j.saving++
	b.saving++
	now := time.Now()
	b.pace.countArrival(now)
	storm := j.saving > stormAt || j.marked && b.pace.isQuick(now)
	return j, storm && !b.isLate() && protocol.ValidJID(jid)
}

// pace detects whether returns arrive quickly, even if each is saved before the next arrives.
type pace struct {
	since time.Time // when n began to be counted
	n     int
	last  time.Time // when more than calmAt arrived within lookEvery
}

func (p *pace) countArrival(now time.Time) {
	if now.Sub(p.since) >= lookEvery {
		p.since, p.n = now, 0
	}
	if p.n++; p.n > calmAt {
		p.last = now
	}
}

func (p *pace) isQuick(now time.Time) bool { return now.Sub(p.last) < lookEvery }

// isLate reports whether copying has reached its maximum lag. The caller holds mu.
func (b *Behind) isLate() bool {
	return b.behind >= maxBehind || len(b.line) > 0 && time.Since(b.line[0].since) > maxLag
}

// markJob marks a job, so that it is copied after a crash.
func (b *Behind) markJob(j *copied) error {
	b.mu.Lock()
	marked := j.marked
	b.mu.Unlock()
	if marked {
		return nil
	}
	b.marking.Lock()
	defer b.marking.Unlock()
	if _, err := b.marks.Create(j.jid, nil, 0o640); err != nil {
		return err
	}
	b.mu.Lock()
	j.marked = true
	b.mu.Unlock()
	return nil
}

// leaveReturn is called after a return was saved. later means that it must be copied, failed that it is only in
// the other store.
func (b *Behind) leaveReturn(j *copied, id string, later, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j.saving--
	b.saving--
	if later && !j.failed { // otherwise the next attempt finds it
		b.addCopies(j, id)
	}
	j.failed = j.failed || failed
	switch {
	case j.marked || j.failed:
		b.signal()
	case j.saving == 0:
		delete(b.jobs, j.jid)
	}
}

// addCopies schedules returns of a job for copying. The caller holds mu.
func (b *Behind) addCopies(j *copied, ids ...string) {
	if len(ids) == 0 {
		return
	}
	if len(j.ids) == 0 {
		j.since = time.Now()
		b.line = append(b.line, j)
	}
	j.ids = append(j.ids, ids...)
	b.behind += len(ids)
}

func (b *Behind) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// newestJobs returns the jobs whose files may be lost. Unlike the other store's, the cache's files are not
// synced, so a power failure empties or removes the last ones.
func (b *Behind) newestJobs() ([]store.Job, error) {
	ctx := context.Background()
	newest, err := b.first.Jobs(ctx, store.Filter{Limit: 1})
	if err != nil || len(newest) == 0 {
		return nil, err
	}
	return b.first.Jobs(ctx, store.Filter{Since: newest[0].Created.Add(-mendSpan), Limit: mendJobs})
}

// mendCache restores missing files of some jobs in the cache.
func (b *Behind) mendCache(jobs []store.Job) error {
	begun := time.Now()
	for _, listed := range jobs {
		select {
		case <-b.quit:
			if time.Since(begun) > finishTime {
				return nil
			}
		default:
		}
		if err := b.mendJob(context.Background(), listed.JID); err != nil {
			return fmt.Errorf("job %s: %w", listed.JID, err)
		}
	}
	return nil
}

// mendJob restores the files of a job and schedules its missing returns for copying.
func (b *Behind) mendJob(ctx context.Context, jid string) error {
	if !b.cache.hasJob(jid) {
		j, err := b.first.Job(ctx, jid)
		if err != nil {
			return err
		}
		if err := b.cache.restoreJob(j); err != nil {
			return err
		}
	}
	ids, err := b.first.Returned(ctx, jid)
	if err != nil {
		return err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return b.cache.hasReturn(jid, id) })
	if len(ids) == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[jid]
	if j == nil {
		j = &copied{jid: jid}
		b.jobs[jid] = j
	}
	b.addCopies(j, ids...)
	return nil
}

// run repairs the files of earlier jobs and copies until Close. One goroutine does all copying, so that a storm
// has the disk for itself.
func (b *Behind) run(earlier []store.Job) {
	defer close(b.done)
	if err := b.mendCache(earlier); err != nil {
		b.log.Error("Cannot mend the job cache", "err", err)
	}
	look := time.NewTicker(lookEvery)
	look.Stop()
	quit, end := b.quit, time.Time{}
	var retry <-chan time.Time
	for {
		select {
		case <-quit:
			quit, end = nil, time.Now().Add(finishTime)
		default:
		}
		j, ids, wait := b.nextPage()
		var tick <-chan time.Time
		switch {
		case j == nil:
			failed := b.unmarkDone()
			if quit == nil {
				return
			}
			if failed && retry == nil {
				retry = time.After(b.pause)
			}
		case !wait || quit == nil:
			b.copyReturns(j, ids)
			if quit == nil && time.Now().After(end) {
				return
			}
			continue
		default:
			look.Reset(lookEvery)
			tick = look.C
		}
		select {
		case <-b.wake:
		case <-tick:
		case <-retry:
			retry = nil
			b.retryFailed()
		case <-quit:
			quit, end = nil, time.Now().Add(finishTime)
		}
	}
}

// retryFailed starts to copy the failed job that has waited longest. One job shows whether the cause is gone;
// then the others follow at once.
func (b *Behind) retryFailed() {
	var j *copied
	b.mu.Lock()
	for _, x := range b.jobs {
		if x.failed && x.marked && (j == nil || x.tried.Before(j.tried)) {
			j = x
		}
	}
	if j == nil { // even the mark failed
		b.mu.Unlock()
		b.delayRetry()
		return
	}
	j.failed, j.tried = false, time.Now()
	b.mu.Unlock()
	ids, err := b.first.Returned(context.Background(), j.jid)
	if err != nil {
		b.failJob(j, err)
		return
	}
	b.mu.Lock()
	b.addCopies(j, ids...)
	b.mu.Unlock()
	b.signal()
}

// delayRetry doubles the pause before the next attempt.
func (b *Behind) delayRetry() { b.pause = min(max(2*b.pause, retryAfter), retryMax) }

// failJob leaves all copies of a job to the next attempt, which finds them in the other store.
func (b *Behind) failJob(j *copied, err error) {
	b.mu.Lock()
	j.failed = true
	again := !j.tried.IsZero()
	b.behind -= len(j.ids)
	if len(j.ids) > 0 {
		j.ids = nil
		b.line = slices.DeleteFunc(b.line, func(x *copied) bool { return x == j })
	}
	b.mu.Unlock()
	if again {
		b.delayRetry()
	}
	b.log.Error("Returns are stored, but not in the job cache; this is tried again", "jid", j.jid, "err", err)
	b.signal()
}

// nextPage returns the next returns to copy. wait means that returns in progress have priority.
func (b *Behind) nextPage() (j *copied, ids []string, wait bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.line) == 0 {
		return nil, nil, false
	}
	j = b.line[0]
	return j, j.ids[:min(len(j.ids), copyPage)], (b.saving > calmAt || b.pace.isQuick(time.Now())) && !b.isLate()
}

// copyReturns copies the first ids of a job.
func (b *Behind) copyReturns(j *copied, ids []string) {
	all, err := b.first.ReturnsOf(context.Background(), j.jid, ids)
	for _, r := range all {
		if _, e := b.cache.SaveReturn(context.Background(), r); e != nil {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		b.failJob(j, err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.behind -= len(ids)
	if j.ids = j.ids[len(ids):]; len(j.ids) == 0 {
		j.ids = nil
		b.line = b.line[1:]
	}
}

// unmarkDone removes the marks of jobs that are done and marks those that failed. It reports whether any failed.
func (b *Behind) unmarkDone() bool {
	b.marking.Lock()
	defer b.marking.Unlock()
	var over []string
	var unmarked []*copied
	failed := false
	b.mu.Lock()
	for jid, j := range b.jobs {
		failed = failed || j.failed
		switch {
		case j.failed && !j.marked:
			unmarked = append(unmarked, j)
		case j.marked && !j.failed && j.saving == 0 && len(j.ids) == 0:
			delete(b.jobs, jid)
			over = append(over, jid)
			if !j.tried.IsZero() {
				b.pause = 0
			}
		}
	}
	b.mu.Unlock()
	for _, j := range unmarked {
		if _, err := b.marks.Create(j.jid, nil, 0o640); err != nil {
			b.log.Error("Returns of a job are not copied at the next start", "jid", j.jid, "err", err)
			continue // perhaps next time
		}
		b.mu.Lock()
		j.marked = true
		b.mu.Unlock()
	}
	for _, jid := range over {
		if err := b.marks.Remove(jid); err != nil && !errors.Is(err, fs.ErrNotExist) {
			b.log.Error("Cannot remove the mark of a copied job", "jid", jid, "err", err)
		}
	}
	return failed
}
