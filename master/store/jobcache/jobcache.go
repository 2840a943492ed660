// Package jobcache stores jobs and returns in the directory layout of Salt's local_cache returner, so that stock
// salt, salt-run and third-party tools on the master's host find them.
//
//	jobs/ab/cdef…/jid                  the job id; the path is its hash
//	              .load.p              the publish load, written last
//	              .minions.p           the minions that are expected
//	              nocache              returns are not kept
//	              <minion>/return.p    return, retcode, success
//	                       out.p       the outputter
//
// Salt's source: salt/returners/local_cache.py.
package jobcache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// Names of the files of a job.
const (
	jidFile     = "jid"
	loadFile    = ".load.p"
	minionsFile = ".minions.p"
	missingFile = ".missing.p" // ours; Salt does not store them
	returnFile  = "return.p"
	outFile     = "out.p"
	noCacheFile = "nocache"
)

// maxFile limits what is read back, in bytes.
const maxFile = 256 << 20

// A Store is an open directory; store.Store documents its methods. Data without a place in Salt's layout is
// lost: of a return's load only return, retcode, success and out are stored, and a job's time is that of its
// id.
type Store struct {
	dir      *confined.Dir
	hashType string
	busy     busyJobs
	writing  sync.Mutex // held while a return is written
}

var _ store.Store = (*Store)(nil)

// Open opens <cachedir>/jobs and creates it if it is missing. hashType is Salt's hash_type; empty means sha256.
func Open(dir, hashType string) (*Store, error) {
	if hashType == "" {
		hashType = "sha256"
	}
	if _, err := crypt.NewHash(hashType); err != nil {
		return nil, fmt.Errorf("cannot open job cache: %w", err)
	}
	d, err := confined.Open(dir, 0o750)
	if err != nil {
		return nil, err
	}
	return &Store{dir: d, hashType: hashType}, nil
}

// Close implements store.Store.
func (s *Store) Close() error {
	s.busy.close()
	return s.dir.Close()
}

// jobDir returns the directory of a job.
func (s *Store) jobDir(jid string) (string, error) {
	// guard: CVE-2025-22242 TestCVE_2025_22242_JobIDTraversal
	if !protocol.ValidJID(jid) {
		return "", fmt.Errorf("%.40q is not a valid job id", jid)
	}
	return protocol.JobDir(jid, s.hashType), nil
}

// makeJobDir creates the directory of a job and its jid file.
func (s *Store) makeJobDir(jid string) (string, error) {
	dir, err := s.jobDir(jid)
	if err != nil {
		return "", err
	}
	if err := s.dir.Mkdir(dir, 0o750); err != nil {
		return "", err
	}
	_, err = s.dir.Create(dir+"/"+jidFile, []byte(jid), 0o640)
	return dir, err
}

func (s *Store) writeValue(name string, v any) error {
	b, err := payload.MarshalBin(v)
	if err != nil {
		return err
	}
	return s.dir.Write(name, b, 0o640, false)
}

func (s *Store) readValue(name string) (any, error) {
	b, _, err := s.dir.Read(name, maxFile)
	if err != nil {
		return nil, err
	}
	return payload.UnmarshalDisk(b, payload.Limits{Bytes: maxFile}, "arg", "return")
}

// SaveJob implements store.Store.
func (s *Store) SaveJob(_ context.Context, j store.Job) error {
	if err := s.saveJob(j); err != nil {
		return fmt.Errorf("cannot store job %.40s: %w", j.JID, err)
	}
	return nil
}

func (s *Store) saveJob(j store.Job) error {
	dir, err := s.makeJobDir(j.JID)
	if err != nil {
		return err
	}
	load := map[string]any{}
	for k, v := range j.Load {
		load[k] = v
	}
	for k, v := range map[string]any{"jid": j.JID, "fun": j.Fun, "arg": j.Arg, "tgt": j.Tgt, "tgt_type": j.TgtType, "user": j.User} {
		if k == "user" && v == "" {
			continue // started by a minion; readers treat it as root's, as in stock
		}
		if _, has := load[k]; !has {
			load[k] = v
		}
	}
	b, err := payload.MarshalBin(load)
	if err != nil {
		return err
	}
	if nocache, _ := j.Load["nocache"].(bool); nocache {
		if _, err := s.dir.Create(dir+"/"+noCacheFile, nil, 0o640); err != nil {
			return err
		}
		s.busy.forgetJob(j.JID)
	}
	if err := s.writeValue(dir+"/"+minionsFile, j.Minions); err != nil {
		return err
	}
	if len(j.Missing) > 0 {
		if err := s.writeValue(dir+"/"+missingFile, j.Missing); err != nil {
			return err
		}
	}
	// The load comes last, because Salt's tools look for it.
	made, err := s.dir.Create(dir+"/"+loadFile, b, 0o640)
	if err == nil && !made {
		err = store.ErrExists
	}
	return err
}

// hasJob reports whether the files of a job exist.
func (s *Store) hasJob(jid string) bool {
	dir, err := s.jobDir(jid)
	if err != nil {
		return false
	}
	for _, name := range []string{jidFile, minionsFile} {
		if info, err := s.dir.Stat(dir + "/" + name); err != nil || info.Size() == 0 {
			return false
		}
	}
	_, err = s.readJob(dir, jid)
	return err == nil
}

// restoreJob stores a job whose files are missing or damaged.
func (s *Store) restoreJob(j store.Job) error {
	dir, err := s.jobDir(j.JID)
	if err != nil {
		return err
	}
	if err := errors.Join(s.dir.Remove(dir+"/"+loadFile), s.dir.Remove(dir+"/"+jidFile)); err != nil {
		return err
	}
	if err := s.saveJob(j); !errors.Is(err, store.ErrExists) {
		return err
	}
	return nil
}

// hasReturn reports whether the return of a minion exists, or is not stored on purpose. An empty file is
// removed.
func (s *Store) hasReturn(jid, id string) bool {
	dir, err := s.jobDir(jid)
	if err != nil {
		return false
	}
	name := dir + "/" + id + "/" + returnFile
	if info, err := s.dir.Stat(name); err == nil {
		return info.Size() > 0 || s.dir.Remove(name) != nil
	}
	_, err = s.dir.Stat(dir + "/" + noCacheFile)
	return err == nil
}

// AddMinions implements store.Store.
func (s *Store) AddMinions(_ context.Context, jid string, ids []string) error {
	dir, err := s.jobDir(jid)
	if err == nil {
		if _, e := s.dir.Stat(dir + "/" + loadFile); e != nil {
			err = store.ErrNotFound
		}
	}
	if err == nil {
		err = s.writeValue(dir+"/"+minionsFile, store.Union(s.readTexts(dir+"/"+minionsFile), ids))
	}
	if err != nil {
		return fmt.Errorf("cannot add minions to job %.40s: %w", jid, err)
	}
	return nil
}

// SaveReturn implements store.Store.
func (s *Store) SaveReturn(_ context.Context, r store.Return) (bool, error) {
	isNew, kept, err := s.saveReturn(r)
	return isNew || !kept && err == nil, err
}

// saveReturn stores a return. kept is false for a job whose returns are not stored.
func (s *Store) saveReturn(r store.Return) (isNew, kept bool, err error) {
	if isNew, kept, err = s.keepReturn(r); err != nil {
		err = fmt.Errorf("cannot store return of %.80q for job %.40s: %w", r.ID, r.JID, err)
	}
	return isNew, kept, err
}

func (s *Store) keepReturn(r store.Return) (isNew, kept bool, err error) {
	// guard: CVE-2025-22238 TestCVE_2025_22242_JobIDTraversal
	if err := protocol.ValidID(r.ID); err != nil {
		return false, false, err
	}
	fields := map[string]any{}
	for _, k := range []string{"return", "retcode", "success"} {
		if v, ok := r.Load[k]; ok {
			fields[k] = v
		}
	}
	b, err := payload.MarshalBin(fields)
	if err != nil {
		return false, false, err
	}
	for try := 1; ; try++ {
		j, err := s.busyJob(r.JID)
		if err != nil {
			return false, false, err
		}
		if j.noCache {
			s.busy.release(j)
			return false, false, nil
		}
		made, err := s.writeReturn(j.dir, r, b)
		if try == 1 && !made && errors.Is(err, fs.ErrNotExist) {
			s.busy.drop(j) // another process removed the job's directory
			continue
		}
		s.busy.release(j)
		return made, true, err
	}
}

// writeReturn writes the files of a return below the directory of its job, one return after the other. The kernel
// allows only one process at a time into a directory, and waiting there keeps processors busy.
func (s *Store) writeReturn(job *confined.Dir, r store.Return, kept []byte) (made bool, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	// The directory shows that a minion returned. The process that creates it is the first.
	if made, err = job.MakeDir(r.ID, 0o750); err == nil && !made {
		// A directory without a return was left by a master that ended in between.
		if _, e := job.Stat(r.ID + "/" + returnFile); errors.Is(e, fs.ErrNotExist) {
			made = true
		}
	}
	if err != nil || !made {
		return made, err
	}
	// The return is written last, so that a reader who finds it finds all files. (Salt writes it first.)
	if out, ok := r.Load["out"]; ok {
		b, err := payload.MarshalBin(out)
		if err != nil {
			return made, err
		}
		if err := job.WriteBelow(r.ID+"/"+outFile, b, 0o640); err != nil {
			return made, err
		}
	}
	return made, job.WriteBelow(r.ID+"/"+returnFile, kept, 0o640)
}

// Job implements store.Store.
func (s *Store) Job(_ context.Context, jid string) (store.Job, error) {
	dir, err := s.jobDir(jid)
	if err != nil {
		return store.Job{}, fmt.Errorf("cannot find job: %w: %w", err, store.ErrNotFound)
	}
	j, err := s.readJob(dir, jid)
	if err != nil {
		return store.Job{}, fmt.Errorf("cannot find job %s: %w", jid, err)
	}
	return j, nil
}

func (s *Store) readJob(dir, jid string) (store.Job, error) {
	v, err := s.readValue(dir + "/" + loadFile)
	if errors.Is(err, fs.ErrNotExist) {
		return store.Job{}, store.ErrNotFound
	}
	if err != nil {
		return store.Job{}, err
	}
	load, ok := payload.Map(v)
	if !ok {
		return store.Job{}, fmt.Errorf("its load is %T, not a map", v)
	}
	j := store.Job{JID: jid, Fun: load["fun"], Tgt: load["tgt"], Load: load,
		Minions: s.readTexts(dir + "/" + minionsFile), Missing: s.readTexts(dir + "/" + missingFile)}
	j.Arg, _ = payload.List(load["arg"])
	j.TgtType, _ = payload.Text(load["tgt_type"])
	j.User, _ = payload.Text(load["user"])
	j.Created, _ = protocol.JID(jid).Time()
	return j, nil
}

func (s *Store) readTexts(name string) []string {
	v, err := s.readValue(name)
	if err != nil {
		return nil
	}
	list, _ := payload.List(v)
	var out []string
	for _, x := range list {
		if t, ok := payload.Text(x); ok {
			out = append(out, t)
		}
	}
	return out
}

// Returns implements store.Store.
func (s *Store) Returns(_ context.Context, jid string) ([]store.Return, error) {
	dir, err := s.jobDir(jid)
	if err != nil {
		return nil, nil
	}
	entries, err := s.dir.List(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot find returns of job %s: %w", jid, err)
	}
	var out []store.Return
	for _, e := range entries {
		id := e.Name()
		if !e.IsDir() || protocol.ValidID(id) != nil {
			continue
		}
		v, err := s.readValue(dir + "/" + id + "/" + returnFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue // being written
		}
		load, ok := payload.Map(v)
		if err != nil || !ok {
			return nil, fmt.Errorf("cannot read return of %q for job %s: %w", id, jid, errors.Join(err))
		}
		r := store.Return{JID: jid, ID: id, Load: load}
		load["id"], load["jid"] = id, jid
		if o, err := s.readValue(dir + "/" + id + "/" + outFile); err == nil {
			load["out"] = o
		}
		if info, err := e.Info(); err == nil {
			r.Received = info.ModTime()
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b store.Return) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// eachJob calls f with every job directory and its id until f returns an error.
func (s *Store) eachJob(f func(dir, jid string) error) error {
	tops, err := s.dir.List(".")
	if err != nil {
		return err
	}
	for _, top := range tops {
		if !top.IsDir() {
			continue
		}
		finals, err := s.dir.List(top.Name())
		if err != nil {
			return err
		}
		for _, final := range finals {
			dir := top.Name() + "/" + final.Name()
			b, _, err := s.dir.Read(dir+"/"+jidFile, 64)
			if jid := string(b); err == nil && protocol.ValidJID(jid) {
				if err := f(dir, jid); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Jobs implements store.Store.
func (s *Store) Jobs(_ context.Context, f store.Filter) ([]store.Job, error) {
	if f.Limit <= 0 {
		f.Limit = store.DefaultLimit
	}
	type found struct{ dir, jid string }
	var all []found
	err := s.eachJob(func(dir, jid string) error {
		at, _ := protocol.JID(jid).Time()
		if (f.Since.IsZero() || !at.Before(f.Since)) && (f.Before.IsZero() || at.Before(f.Before)) {
			all = append(all, found{dir, jid})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list jobs: %w", err)
	}
	slices.SortFunc(all, func(a, b found) int { return strings.Compare(b.jid, a.jid) })
	var out []store.Job
	for _, x := range all {
		if len(out) == f.Limit {
			break
		}
		j, err := s.readJob(x.dir, x.jid)
		if err != nil {
			continue // it has only returns, or is incomplete
		}
		if f.Minion != "" && !slices.Contains(j.Minions, f.Minion) {
			if protocol.ValidID(f.Minion) != nil {
				continue
			}
			if _, err := s.dir.Stat(x.dir + "/" + f.Minion); err != nil {
				continue
			}
		}
		out = append(out, j)
	}
	return out, nil
}

// Purge implements store.Store.
func (s *Store) Purge(_ context.Context, before time.Time) (int, error) {
	n := 0
	err := s.eachJob(func(dir, jid string) error {
		at, ok := protocol.JID(jid).Time()
		if !ok || !at.Before(before) {
			return nil
		}
		if _, err := s.dir.Stat(dir + "/" + loadFile); err == nil {
			n++
		}
		s.busy.forgetJob(jid)
		return s.dir.RemoveAll(dir)
	})
	if err != nil {
		return n, fmt.Errorf("cannot remove old jobs: %w", err)
	}
	return n, nil
}
