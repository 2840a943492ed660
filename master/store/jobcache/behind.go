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
	// stormAt is how many returns of one job must be under way for another one to be copied later. The copying goes on when no more than calmAt
	// of all jobs are under way, and no more came within lookEvery.
	stormAt, calmAt = 64, 16
	// maxLag is how old the oldest return may be that is not copied yet, and maxBehind how many there may be (100 bytes each): beyond
	// that new ones are written at once, and the copying waits for nothing.
	maxLag    = 5 * time.Second
	maxBehind = 100_000
	// copyPage is how many returns are read at once, lookEvery how often it is looked whether a storm is over.
	copyPage  = 16
	lookEvery = 20 * time.Millisecond
	// finishTime is how long Close goes on with what is left; the next one does the rest.
	finishTime = 3 * time.Second
	// mendSpan is how long before the newest job others may have been made whose files a loss of power emptied: the kernel writes a file
	// within 30 seconds. No more than mendJobs are looked at.
	mendSpan, mendJobs = 10 * time.Minute, 1000
	// retryAfter is how long a job whose copying failed waits for the next try, retryMax how long when that fails again and again.
	retryAfter, retryMax = time.Second, time.Minute
)

// Behind is a store in front of a job cache, for what only Salt's tools read there: the other store decides, and is read. Jobs, and
// returns that come in small numbers, are in both when they are acknowledged. When many minions return for one job at the same time,
// their returns are in the other store then, which can do many of them at once, and are copied when the storm is over, some seconds later
// at most. What cannot be copied, because the disk is full or descriptors are short, is tried again until it can. The job is marked
// meanwhile, so that what a crash interrupts is done at the next start; files are never half there.
type Behind struct {
	store.Store // both
	first       store.Paged
	cache       *Store
	log         *slog.Logger

	marking sync.Mutex    // held while a mark is made or removed; comes before mu
	marks   *confined.Dir // a file named for each marked job

	mu     sync.Mutex // guards the fields below
	jobs   map[string]*copied
	line   []*copied // those with ids, the oldest first
	behind int       // all ids
	saving int       // returns under way to both
	pace   pace

	pause time.Duration // before the next try of a job that failed; only run uses it

	wake chan struct{} // has one element when there may be something to do
	quit chan struct{}
	done chan struct{}
}

// copied is a job whose returns come.
type copied struct {
	jid    string
	saving int
	marked bool
	ids    []string  // of whom returns are to be copied
	since  time.Time // when the first of them came
	failed bool      // some are not in the cache, which may be others than ids
	tried  time.Time // when the copying of a failed job began anew, until all is copied
}

// Behind puts first in front of the cache. Close it before either.
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
	go b.run()
	return b, nil
}

// Unwrap implements store.Wrapper.
func (b *Behind) Unwrap() store.Store { return b.first }

// Close copies what is left, as long as that does not take too much time, and closes neither store.
func (b *Behind) Close() error {
	close(b.quit)
	<-b.done
	return b.marks.Close()
}

// resume takes up what was interrupted.
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
		b.add(j, ids...)
	}
	b.signal()
	return nil
}

// SaveReturn implements store.Store.
func (b *Behind) SaveReturn(ctx context.Context, r store.Return) (bool, error) {
	j, later := b.enter(r.JID)
	if later {
		if err := b.mark(j); err != nil {
			b.log.Error("returns of a job cannot be copied later, and are copied at once", "jid", r.JID, "err", err)
			later = false
		}
	}
	isNew, err := b.first.SaveReturn(ctx, r)
	// guard: lost-returns TestBehindAfterDeath
	if err == nil && !(later && isNew) {
		// Also what is not new: a crash may have kept it from the cache, and then it was not acknowledged.
		_, _, err = b.cache.saveReturn(r)
	}
	b.leave(j, r.ID, later && isNew && err == nil, isNew && err != nil)
	return isNew, err
}

// enter counts a return that is going to be saved, and says whether it is to be copied later.
func (b *Behind) enter(jid string) (j *copied, later bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j = b.jobs[jid]; j == nil {
		j = &copied{jid: jid}
		b.jobs[jid] = j
	}
	j.saving++
	b.saving++
	now := time.Now()
	b.pace.came(now)
	storm := j.saving > stormAt || j.marked && b.pace.quick(now)
	return j, storm && !b.late() && protocol.ValidJID(jid)
}

// pace tells whether returns come quickly, though each is saved before the next ones are there.
type pace struct {
	since time.Time // when n began to be counted
	n     int
	last  time.Time // when there were more than calmAt within lookEvery
}

func (p *pace) came(now time.Time) {
	if now.Sub(p.since) >= lookEvery {
		p.since, p.n = now, 0
	}
	if p.n++; p.n > calmAt {
		p.last = now
	}
}

func (p *pace) quick(now time.Time) bool { return now.Sub(p.last) < lookEvery }

// late says that the copying is as far behind as it may be. The caller holds mu.
func (b *Behind) late() bool {
	return b.behind >= maxBehind || len(b.line) > 0 && time.Since(b.line[0].since) > maxLag
}

// mark makes sure that a job is found after a crash.
func (b *Behind) mark(j *copied) error {
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

// leave is called after a return was saved; later says that it is to be copied, failed that it is in the other store alone.
func (b *Behind) leave(j *copied, id string, later, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j.saving--
	b.saving--
	if later && !j.failed { // else the next try finds it
		b.add(j, id)
	}
	j.failed = j.failed || failed
	switch {
	case j.marked || j.failed:
		b.signal()
	case j.saving == 0:
		delete(b.jobs, j.jid)
	}
}

// add has returns of a job copied. The caller holds mu.
func (b *Behind) add(j *copied, ids ...string) {
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

// mend restores what is missing in the cache of the newest jobs. Its files are not synced, as those of the other store are, so a loss of
// power leaves the last ones empty, or takes them.
func (b *Behind) mend() error {
	ctx := context.Background()
	newest, err := b.first.Jobs(ctx, store.Filter{Limit: 1})
	if err != nil || len(newest) == 0 {
		return err
	}
	jobs, err := b.first.Jobs(ctx, store.Filter{Since: newest[0].Created.Add(-mendSpan), Limit: mendJobs})
	if err != nil {
		return err
	}
	begun := time.Now()
	for _, listed := range jobs {
		select {
		case <-b.quit:
			if time.Since(begun) > finishTime {
				return nil
			}
		default:
		}
		if err := b.mendJob(ctx, listed.JID); err != nil {
			return fmt.Errorf("job %s: %w", listed.JID, err)
		}
	}
	return nil
}

// mendJob restores the files of a job, and has its missing returns copied.
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
	b.add(j, ids...)
	return nil
}

// run copies until Close.
func (b *Behind) run() {
	defer close(b.done)
	if err := b.mend(); err != nil {
		b.log.Error("cannot mend the job cache", "err", err)
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
		j, ids, wait := b.next()
		var tick <-chan time.Time
		switch {
		case j == nil:
			failed := b.unmark()
			if quit == nil {
				return
			}
			if failed && retry == nil {
				retry = time.After(b.pause)
			}
		case !wait || quit == nil:
			b.copy(j, ids)
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
			b.again()
		case <-quit:
			quit, end = nil, time.Now().Add(finishTime)
		}
	}
}

// again begins to copy one of the jobs that failed, the one that waited longest. One is enough to see whether what was wrong is over:
// then the others follow at once.
func (b *Behind) again() {
	var j *copied
	b.mu.Lock()
	for _, x := range b.jobs {
		if x.failed && x.marked && (j == nil || x.tried.Before(j.tried)) {
			j = x
		}
	}
	if j == nil { // not even a mark could be made
		b.mu.Unlock()
		b.later()
		return
	}
	j.failed, j.tried = false, time.Now()
	b.mu.Unlock()
	ids, err := b.first.Returned(context.Background(), j.jid)
	if err != nil {
		b.fail(j, err)
		return
	}
	b.mu.Lock()
	b.add(j, ids...)
	b.mu.Unlock()
	b.signal()
}

// later doubles the pause before the next try.
func (b *Behind) later() { b.pause = min(max(2*b.pause, retryAfter), retryMax) }

// fail leaves all that is to be copied of a job to the next try, which finds it in the other store.
func (b *Behind) fail(j *copied, err error) {
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
		b.later()
	}
	b.log.Error("returns are stored, but not in the job cache; this is tried again", "jid", j.jid, "err", err)
	b.signal()
}

// next are returns to be copied; wait says that those which are being saved go first.
func (b *Behind) next() (j *copied, ids []string, wait bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.line) == 0 {
		return nil, nil, false
	}
	j = b.line[0]
	return j, j.ids[:min(len(j.ids), copyPage)], (b.saving > calmAt || b.pace.quick(time.Now())) && !b.late()
}

// copy copies the first ids of a job.
func (b *Behind) copy(j *copied, ids []string) {
	all, err := b.first.ReturnsOf(context.Background(), j.jid, ids)
	for _, r := range all {
		if _, e := b.cache.SaveReturn(context.Background(), r); e != nil {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		b.fail(j, err)
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

// unmark removes the marks of jobs that are done, and marks those that failed; it says whether there are such.
func (b *Behind) unmark() bool {
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
			b.log.Error("returns of a job are not copied at the next start", "jid", j.jid, "err", err)
			continue // perhaps next time
		}
		b.mu.Lock()
		j.marked = true
		b.mu.Unlock()
	}
	for _, jid := range over {
		if err := b.marks.Remove(jid); err != nil && !errors.Is(err, fs.ErrNotExist) {
			b.log.Error("mark of a copied job stays", "jid", jid, "err", err)
		}
	}
	return failed
}
