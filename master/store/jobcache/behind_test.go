package jobcache

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/sqlite"
	"github.com/brine-salt/brine/master/store/storetest"
	"github.com/brine-salt/brine/protocol"
)

// gated is a store whose returns wait for a gate.
type gated struct {
	store.Paged
	entered chan struct{}
	gate    chan struct{}
}

func (g gated) SaveReturn(ctx context.Context, r store.Return) (bool, error) {
	g.entered <- struct{}{}
	<-g.gate
	return g.Paged.SaveReturn(ctx, r)
}

// site is a database and a job cache in one directory.
type site struct {
	t     testing.TB
	dir   string
	db    store.Paged
	cache *Store
	log   bytes.Buffer
}

func newSite(t testing.TB) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir()}
	db, err := sqlite.Open(filepath.Join(s.dir, "db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s.db = db
	if s.cache, err = Open(filepath.Join(s.dir, "jobs"), ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cache.Close() })
	return s
}

func (s *site) behind(first store.Paged) *Behind {
	s.t.Helper()
	b, err := s.cache.Behind(first, slog.New(slog.NewTextHandler(&s.log, nil)))
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

func (s *site) close(b *Behind) {
	s.t.Helper()
	if err := b.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// marks are the jobs that are not copied.
func (s *site) marks() (all []string) {
	s.t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.dir, "jobs.behind"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// copied are the returns of a job in the files.
func (s *site) copied(jid string) map[string]any {
	s.t.Helper()
	list, err := s.cache.Returns(s.t.Context(), jid)
	if err != nil {
		s.t.Fatal(err)
	}
	out := make(map[string]any)
	for _, r := range list {
		out[r.ID] = r.Load["return"]
	}
	return out
}

const behindJID = "20260101120000000000"

func answer(id string) store.Return {
	return store.Return{JID: behindJID, ID: id, Load: map[string]any{"return": "of " + id, "retcode": 0, "success": true, "out": "nested"}, Received: time.Now()}
}

func TestPace(t *testing.T) {
	var p pace
	now := time.Now()
	come := func(n int, every time.Duration) {
		for range n {
			now = now.Add(every)
			p.countArrival(now)
		}
	}
	if come(calmAt, lookEvery/100); p.isQuick(now) {
		t.Error("a few at once are a storm")
	}
	if come(1, 0); !p.isQuick(now) {
		t.Error("many at once are none")
	}
	if now = now.Add(lookEvery); p.isQuick(now) {
		t.Error("it is never over")
	}
	if come(10*calmAt, lookEvery/calmAt); p.isQuick(now) {
		t.Error("what comes slowly is a storm")
	}
}

func TestBehindSuite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		s := newSite(t)
		return s.behind(s.db)
	})
}

// TestMendingLeavesNewJobs: the repair after a start does not copy a job that is just being saved. Otherwise the
// job would be saved twice in the files, and its publish refused because the job id exists.
func TestMendingLeavesNewJobs(t *testing.T) {
	for range 20 {
		s := newSite(t)
		b := s.behind(s.db)
		j := store.Job{JID: behindJID, Fun: "test.ping", Tgt: "*", TgtType: "glob", Created: time.Now(), Load: map[string]any{"fun": "test.ping"}}
		if err := s.db.SaveJob(t.Context(), j); err != nil { // the first half of saving it
			t.Fatal(err)
		}
		s.close(b)
		if err := s.cache.SaveJob(t.Context(), j); err != nil {
			t.Fatal("the second half of saving it:", err)
		}
	}
}

// TestBehindAlone: a return that comes alone is in the files when it is acknowledged.
func TestBehindAlone(t *testing.T) {
	s := newSite(t)
	b := s.behind(s.db)
	defer s.close(b)
	for i := range 3 {
		id := fmt.Sprint("m", i)
		if first, err := b.SaveReturn(t.Context(), answer(id)); !first || err != nil {
			t.Fatal(first, err)
		}
		if got := s.copied(behindJID); len(got) != i+1 || got[id] != "of "+id {
			t.Fatal(got)
		}
		if first, err := b.SaveReturn(t.Context(), answer(id)); first || err != nil {
			t.Fatal(first, err)
		}
	}
	if left := s.marks(); len(left) != 0 {
		t.Fatal(left)
	}
}

// TestBehindAfterDeath: a return that is in the database but not in the files, because the master died in between,
// is written to the files when it is sent again. It does not count as new; the master compares the times to see
// whether it was announced.
func TestBehindAfterDeath(t *testing.T) {
	s := newSite(t)
	r := answer("m1")
	if isNew, err := s.db.SaveReturn(t.Context(), r); err != nil || !isNew {
		t.Fatal(isNew, err)
	}
	b := s.behind(s.db)
	defer s.close(b)
	for i := range 2 { // it is not new: the master knows by when it came that it may not have been told
		if isNew, err := b.SaveReturn(t.Context(), r); err != nil || isNew {
			t.Errorf("return %d: new %v, %v", i+1, isNew, err)
		}
	}
	if got := s.copied(behindJID); len(got) != 1 || got["m1"] != "of m1" {
		t.Errorf("in the files: %v", got)
	}
}

// TestBehindStorm: what comes at the same time is in the database when it is acknowledged, and in the files afterwards.
func TestBehindStorm(t *testing.T) {
	s := newSite(t)
	const n = 4 * stormAt
	g := gated{s.db, make(chan struct{}, 2*n), make(chan struct{})}
	b := s.behind(g)
	var wg sync.WaitGroup
	firsts := make(chan bool, 2*n)
	for i := range 2 * n { // each twice
		wg.Go(func() {
			first, err := b.SaveReturn(t.Context(), answer(fmt.Sprint("m", i/2)))
			if err != nil {
				t.Error(err)
			}
			firsts <- first
		})
	}
	for range 2 * n {
		<-g.entered
	}
	if got := s.marks(); len(got) != 1 || got[0] != behindJID {
		t.Errorf("marked: %v", got)
	}
	close(g.gate)
	wg.Wait()
	count := 0
	for range 2 * n {
		if <-firsts {
			count++
		}
	}
	if all, err := s.db.Returns(t.Context(), behindJID); count != n || len(all) != n || err != nil {
		t.Fatal(count, len(all), err)
	}
	s.close(b)
	for end := time.Now().Add(time.Minute); len(s.marks()) > 0 && time.Now().Before(end); { // the disk is slow: the next master goes on
		s.close(s.behind(s.db))
	}
	got := s.copied(behindJID)
	for i := range n {
		if id := fmt.Sprint("m", i); got[id] != "of "+id {
			t.Errorf("%s: %v", id, got[id])
		}
	}
	if len(got) != n || len(s.marks()) != 0 || s.log.Len() > 0 {
		t.Fatal(len(got), s.marks(), s.log.String())
	}
}

// TestBehindResumes: what a master that was killed left undone, a directory without a return included, is done at the next start.
func TestBehindResumes(t *testing.T) {
	s := newSite(t)
	for i := range 3 * copyPage {
		if _, err := s.db.SaveReturn(t.Context(), answer(fmt.Sprint("m", i))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.cache.SaveReturn(t.Context(), answer("m1")); err != nil {
		t.Fatal(err)
	}
	job := filepath.Join(s.dir, "jobs", mustPlace(t, s.cache))
	if err := os.Mkdir(filepath.Join(job, "m2"), 0o750); err != nil {
		t.Fatal(err)
	}
	s.close(s.behind(s.db)) // nothing is marked
	if got := s.copied(behindJID); len(got) != 1 {
		t.Fatal(got)
	}
	for _, name := range []string{behindJID, "20260101120000000001", "not a job"} {
		if err := os.WriteFile(filepath.Join(s.dir, "jobs.behind", name), nil, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(time.Minute); len(s.marks()) > 1 && time.Now().Before(end); {
		s.close(s.behind(s.db))
	}
	if got := s.copied(behindJID); len(got) != 3*copyPage || got["m2"] != "of m2" {
		t.Fatal(got)
	}
	if left := s.marks(); len(left) != 1 || left[0] != "not a job" {
		t.Fatal(left)
	}
}

// TestBehindAfterLossOfPower has the files of some jobs empty, missing or half there, as a file system leaves what was not synced.
func TestBehindAfterLossOfPower(t *testing.T) {
	s := newSite(t)
	b := s.behind(s.db)
	lose := map[string]func(dir string) error{
		"20260101000000000001": func(string) error { return nil },
		"20260101000000000002": func(dir string) error { return os.Truncate(dir+"/"+loadFile, 0) },
		"20260101000000000003": func(dir string) error { return os.Truncate(dir+"/m/"+returnFile, 0) },
		"20260101000000000004": func(dir string) error { return os.Remove(dir + "/m/" + returnFile) },
		"20260101000000000005": os.RemoveAll,
		"20260101000000000006": func(dir string) error { return os.Truncate(dir+"/"+jidFile, 0) },
	}
	for jid := range lose {
		created, _ := protocol.JID(jid).Time()
		if err := b.SaveJob(t.Context(), store.Job{JID: jid, Fun: "test.ping", Tgt: "m", TgtType: "glob", Minions: []string{"m"}, Created: created}); err != nil {
			t.Fatal(err)
		}
		r := answer("m")
		r.JID = jid
		if _, err := b.SaveReturn(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	s.close(b)
	for jid, f := range lose {
		dir, err := s.cache.jobDir(jid)
		if err == nil {
			err = f(filepath.Join(s.dir, "jobs", dir))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.close(s.behind(s.db))
	for jid := range lose {
		if j, err := s.cache.Job(t.Context(), jid); err != nil || j.Fun != "test.ping" || len(j.Minions) != 1 {
			t.Errorf("job %s is %v, %v", jid, j, err)
		}
		if got, err := s.cache.Returns(t.Context(), jid); err != nil || len(got) != 1 || got[0].Load["return"] != "of m" {
			t.Errorf("the returns of job %s are %v, %v", jid, got, err)
		}
		dir, err := s.cache.jobDir(jid)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(s.dir, "jobs", dir, jidFile)); err != nil || string(b) != jid {
			t.Errorf("the job id of %s is %q, %v", jid, b, err)
		}
	}
}

func mustPlace(t testing.TB, s *Store) string {
	t.Helper()
	dir, err := s.jobDir(behindJID)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestBehindFails: a failed copy is logged and retried, also at the next start.
func TestBehindFails(t *testing.T) {
	s := newSite(t)
	if _, err := s.db.SaveReturn(t.Context(), answer("m1")); err != nil {
		t.Fatal(err)
	}
	s.close(s.behind(s.db))
	if err := os.WriteFile(filepath.Join(s.dir, "jobs.behind", behindJID), nil, 0o640); err != nil {
		t.Fatal(err)
	}
	unblock := s.block(behindJID)
	b := s.behind(s.db)
	s.close(b)
	if !strings.Contains(s.log.String(), "not in the job cache") || len(s.marks()) != 1 {
		t.Fatal(s.log.String(), s.marks())
	}
	unblock()
	s.close(s.behind(s.db))
	if got := s.copied(behindJID); got["m1"] != "of m1" || len(s.marks()) != 0 {
		t.Fatal(got, s.marks())
	}
}

// block puts files where the cache would create the directories of jobs; unblock removes them.
func (s *site) block(jids ...string) (unblock func()) {
	s.t.Helper()
	names := make(map[string]bool)
	for _, jid := range jids {
		dir, err := s.cache.jobDir(jid)
		if err != nil {
			s.t.Fatal(err)
		}
		top, _, _ := strings.Cut(dir, "/")
		names[filepath.Join(s.dir, "jobs", top)] = true
	}
	for name := range names {
		if err := os.WriteFile(name, nil, 0o640); err != nil {
			s.t.Fatal(err)
		}
	}
	return func() {
		s.t.Helper()
		for name := range names {
			if err := os.Remove(name); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// awaitCopied waits until no job is marked.
func (s *site) awaitCopied(b *Behind) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(lookEvery) {
		b.mu.Lock()
		n := len(b.jobs)
		b.mu.Unlock()
		switch {
		case n == 0 && len(s.marks()) == 0:
			return
		case time.Now().After(end):
			s.t.Fatal("not copied: ", s.marks(), s.log.String())
		}
	}
}

// TestBehindFailsAtOnce: a return that could only be stored in the database is copied once the cache can be written
// again, whatever comes after it.
func TestBehindFailsAtOnce(t *testing.T) {
	s := newSite(t)
	unblock := s.block(behindJID)
	b := s.behind(s.db)
	defer s.close(b)
	if first, err := b.SaveReturn(t.Context(), answer("m1")); !first || err == nil {
		t.Fatal(first, err)
	}
	unblock()
	if first, err := b.SaveReturn(t.Context(), answer("m2")); !first || err != nil {
		t.Fatal(first, err)
	}
	if got := s.copied(behindJID); got["m2"] != "of m2" {
		t.Fatal(got)
	}
	s.awaitCopied(b)
	if got := s.copied(behindJID); len(got) != 2 || got["m1"] != "of m1" {
		t.Fatal(got)
	}
}

// TestBehindTellsOnce: a return that was new and could not be copied is a duplicate when it is sent again, although
// only then is it copied.
func TestBehindTellsOnce(t *testing.T) {
	s := newSite(t)
	unblock := s.block(behindJID)
	b := s.behind(s.db)
	defer s.close(b)
	if isNew, err := b.SaveReturn(t.Context(), answer("m1")); !isNew || err == nil {
		t.Fatal(isNew, err)
	}
	unblock()
	if isNew, err := b.SaveReturn(t.Context(), answer("m1")); isNew || err != nil {
		t.Error(isNew, err)
	}
}

// asked is a store that reports the jobs whose returns are read.
type asked struct {
	store.Paged
	jids chan string
}

func (a asked) Returned(ctx context.Context, jid string) ([]string, error) {
	a.jids <- jid
	return a.Paged.Returned(ctx, jid)
}

// TestBehindTriesAgain: copying several jobs fails, and so does the first retry. Once the cache can be written all
// are copied, and so is a return that came for one of them in between.
func TestBehindTriesAgain(t *testing.T) {
	s := newSite(t)
	const n = 3 * copyPage
	jobs := []string{behindJID}
	for i := range n {
		if _, err := s.db.SaveReturn(t.Context(), answer(fmt.Sprint("m", i))); err != nil {
			t.Fatal(err)
		}
		if i >= 5 {
			continue
		}
		r := answer("other")
		r.JID = fmt.Sprint("2026010112000000001", i)
		jobs = append(jobs, r.JID)
		if _, err := s.db.SaveReturn(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	s.close(s.behind(s.db)) // makes the directory
	for _, jid := range jobs {
		if err := os.WriteFile(filepath.Join(s.dir, "jobs.behind", jid), nil, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	unblock := s.block(jobs...)
	db := asked{s.db, make(chan string, 100)}
	b := s.behind(db)
	defer s.close(b)
	tried := make(map[string]bool)
	for range len(jobs) + 1 { // at the start, and when the first is tried again
		tried[<-db.jids] = true
	}
	if len(tried) != len(jobs) || len(s.marks()) != len(jobs) {
		t.Fatal(tried, s.marks())
	}
	if first, err := b.SaveReturn(t.Context(), answer("late")); !first || err == nil {
		t.Fatal(first, err)
	}
	unblock()
	s.awaitCopied(b)
	got := s.copied(behindJID)
	for i := range n {
		if id := fmt.Sprint("m", i); got[id] != "of "+id {
			t.Errorf("%s: %v", id, got[id])
		}
	}
	if len(got) != n+1 || got["late"] != "of late" {
		t.Error(got)
	}
	for _, jid := range jobs[1:] {
		if got := s.copied(jid); len(got) != 1 || got["other"] != "of other" {
			t.Error(jid, got)
		}
	}
}

// TestBehindIsBounded: returns are copied at once while those that wait are too many or too old.
func TestBehindIsBounded(t *testing.T) {
	for name, b := range map[string]*Behind{
		"many": {behind: maxBehind},
		"old":  {line: []*copied{{since: time.Now().Add(-2 * maxLag)}}},
		"few":  {line: []*copied{{since: time.Now().Add(time.Hour)}}},
	} {
		b.jobs = map[string]*copied{behindJID: {jid: behindJID, saving: stormAt}}
		if _, later := b.enterReturn(behindJID); later != (name == "few") {
			t.Errorf("%s: %v", name, later)
		}
	}
}
