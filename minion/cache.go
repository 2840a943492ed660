package minion

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/brine-salt/brine/minion/journal"
	"github.com/brine-salt/brine/minion/spool"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// openCache creates cachedir and opens the job journal and the return spool in it.
func (m *Minion) openCache() error {
	s := m.settings()
	if err := makeCacheDir(s.cacheDir); err != nil {
		return err
	}
	var err error
	m.journal, err = journal.Open(journal.Options{Path: filepath.Join(s.cacheDir, "job_journal"),
		Now: m.o.Clock, Log: m.log})
	if err != nil {
		return err
	}
	m.cleanProc()
	m.spool, err = spool.Open(spool.Options{Dir: filepath.Join(s.cacheDir, "return_spool"),
		Now: m.o.Clock, Log: m.log,
		TTL:      s.span("return_spool_ttl", time.Second),
		MaxBytes: int64(s.number("return_spool_max_bytes"))})
	if err != nil {
		return errors.Join(err, m.journal.Close())
	}
	return nil
}

// makeCacheDir creates cachedir and its proc directory (salt/utils/verify.py: verify_env). It fails if other
// users can write to cachedir.
func makeCacheDir(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "proc"), 0o750); err != nil {
		return fmt.Errorf("cannot create cache directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("cannot use cache directory: %w", err)
	}
	if mode := info.Mode().Perm(); unixModes && mode&0o022 != 0 {
		return fmt.Errorf("cannot use cache directory %q: others can write to it (mode %04o)", dir,
			mode)
	}
	return nil
}

// cleanProc removes proc files left by earlier processes, because their pids may be in use again. Those of
// running salt-calls stay.
func (m *Minion) cleanProc() {
	dir := filepath.Join(m.settings().cacheDir, "proc")
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		data := readMap(path)
		pid, _ := payload.Int(data["pid"])
		if data["tgt"] == "salt-call" && pid > 0 && pid != int64(os.Getpid()) &&
			processAlive(int(pid)) {
			continue
		}
		if err := os.Remove(path); err != nil {
			m.log.Debug("Cannot remove an old proc file", "path", path, "err", err)
		}
	}
}

// maxProc is the largest proc file, in bytes, that is read.
const maxProc = 16 << 20

// procFiles returns the jobs in proc files of other live processes on this host. salt-call uses it.
func (m *Minion) procFiles() []map[string]any {
	dir := filepath.Join(m.settings().cacheDir, "proc")
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var jobs []map[string]any
	for _, e := range list {
		data := readMap(filepath.Join(dir, e.Name()))
		pid, ok := payload.Int(data["pid"])
		if !ok || pid == int64(os.Getpid()) || !processAlive(int(pid)) {
			continue
		}
		jobs = append(jobs, data)
	}
	return jobs
}

// readMap reads a packed map from a regular file. It returns nil on any error.
func readMap(path string) map[string]any {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxProc {
		return nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	v, err := payload.Unmarshal(b)
	if err != nil {
		return nil
	}
	data, _ := payload.Map(v)
	return data
}

// cachedJob returns the stored return of a finished job (option cache_jobs), or nil.
func (m *Minion) cachedJob(jid string) map[string]any {
	if !protocol.ValidJID(jid) {
		return nil
	}
	return readMap(filepath.Join(m.settings().cacheDir, "minion_jobs", jid, "return.p"))
}

// dataStore returns the minion's key-value store (salt/modules/data.py), for targets of type data. It is empty
// if the file is missing.
func (m *Minion) dataStore() map[string]any {
	path := filepath.Join(m.settings().cacheDir, "datastore")
	data := readMap(path)
	if data == nil {
		if _, err := os.Stat(path); err == nil || errors.Is(err, fs.ErrNotExist) {
			return map[string]any{}
		}
	}
	return data
}
