package jobcache

import (
	"errors"
	"io/fs"
	"slices"
	"sync"

	"github.com/brine-salt/brine/master/internal/confined"
)

// maxBusy is how many directories of jobs are kept open.
const maxBusy = 4

// busyJobs are the open directories to which returns were last written. The returns of a job arrive together,
// and finding its directory for each costs more than writing it.
type busyJobs struct {
	mu   sync.Mutex // guards all, and users of each
	all  []*busyJob // the last one used is last
	shut bool
}

// busyJob is an open directory.
type busyJob struct {
	jid     string
	dir     *confined.Dir
	noCache bool // returns are not wanted
	users   int
	dropped bool // the last user closes it
}

// busyJob returns the directory of a job, which it creates if it is missing. Release it afterwards.
func (s *Store) busyJob(jid string) (*busyJob, error) {
	if j := s.busy.find(jid); j != nil {
		return j, nil
	}
	name, err := s.makeJobDir(jid)
	if err != nil {
		return nil, err
	}
	dir, err := s.dir.Sub(name)
	if err != nil {
		return nil, err
	}
	j := &busyJob{jid: jid, dir: dir, users: 1}
	if _, err := dir.Stat(noCacheFile); err == nil {
		j.noCache = true
	} else if !errors.Is(err, fs.ErrNotExist) {
		dir.Close()
		return nil, err
	}
	s.busy.keepOpen(j)
	return j, nil
}

func (b *busyJobs) find(jid string) *busyJob {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.all, func(j *busyJob) bool { return j.jid == jid })
	if i < 0 {
		return nil
	}
	j := b.all[i]
	b.all = append(slices.Delete(b.all, i, i+1), j)
	j.users++
	return j
}

// keepOpen adds an open directory. A job may have two for a while.
func (b *busyJobs) keepOpen(j *busyJob) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shut {
		j.dropped = true
		return
	}
	b.all = append(b.all, j)
	if len(b.all) > maxBusy {
		b.forgetDir(b.all[0])
	}
}

// forgetDir removes a directory. The caller holds mu.
func (b *busyJobs) forgetDir(j *busyJob) {
	if i := slices.Index(b.all, j); i >= 0 {
		b.all = slices.Delete(b.all, i, i+1)
	}
	j.dropped = true
	if j.users == 0 {
		j.dir.Close()
	}
}

// drop removes and releases a directory that was deleted.
func (b *busyJobs) drop(j *busyJob) {
	b.mu.Lock()
	if !j.dropped {
		b.forgetDir(j)
	}
	b.mu.Unlock()
	b.release(j)
}

func (b *busyJobs) release(j *busyJob) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j.users--; j.users == 0 && j.dropped {
		j.dir.Close()
	}
}

// forgetJob closes the directory of a job that is about to be removed or changed.
func (b *busyJobs) forgetJob(jid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := len(b.all) - 1; i >= 0; i-- {
		if b.all[i].jid == jid {
			b.forgetDir(b.all[i])
		}
	}
}

// close closes all directories, now or when their users are done.
func (b *busyJobs) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shut = true
	for len(b.all) > 0 {
		b.forgetDir(b.all[0])
	}
}
