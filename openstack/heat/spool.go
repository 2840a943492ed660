package heat

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/backoff"
	"github.com/brine-salt/brine/internal/python/pyjson"
)

// spool stores signals on disk until the service has accepted them.
type spool struct {
	dir string
	ttl time.Duration
	log *slog.Logger
	now func() time.Time
	to  *signaler

	mu   sync.Mutex
	wait map[string]*backoff.Backoff // guarded by mu; by deployment id
	next map[string]time.Time        // guarded by mu
	busy map[string]bool             // guarded by mu
}

const (
	// maxSpooled limits the waiting signals. Beyond it, a new signal replaces the oldest.
	maxSpooled = 1000
	// goneTTL is how long a signal is retried although the service does not know its target: an API behind a load
	// balancer may lag behind its database.
	goneTTL = 10 * time.Minute
	// longestWait is the longest pause between two attempts.
	longestWait = 5 * time.Minute
)

func newSpool(dir string, ttl time.Duration, to *signaler, log *slog.Logger) *spool {
	return &spool{dir: dir, ttl: ttl, log: log, now: time.Now, to: to, wait: map[string]*backoff.Backoff{}, next: map[string]time.Time{},
		busy: map[string]bool{}}
}

func (s *spool) path(id string) string { return filepath.Join(s.dir, id+".json") }

// put stores a signal together with the deployment, whose inputs contain the signal's target.
func (s *spool) put(d *Deployment, r Result) error {
	ids := s.ids()
	for len(ids) >= maxSpooled {
		s.log.Error("A signal is given up: too many wait", "deployment", ids[0])
		s.drop(ids[0])
		ids = ids[1:]
	}
	entry := map[string]any{"deployment": slim(d), "signal": map[string]any(trim(r, MaxSignal)), "since": s.now().Unix()}
	if err := writePrivate(s.path(d.ID), encode(entry)); err != nil {
		return fmt.Errorf("cannot keep the signal of %s: %w", d.ID, err)
	}
	return nil
}

// slim returns a deployment without its configuration: only what a signal needs.
func slim(d *Deployment) map[string]any {
	inputs := []any{}
	for _, in := range d.Inputs {
		if strings.HasPrefix(in.Name, "deploy_") {
			inputs = append(inputs, map[string]any{"name": in.Name, "type": in.Type, "value": in.Value})
		}
	}
	return map[string]any{"id": d.ID, "name": d.Name, "inputs": inputs}
}

// ids returns the waiting signals, oldest first.
func (s *spool) ids() []string {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil
	}
	type entry struct {
		id string
		at time.Time
	}
	var list []entry
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		info, err := e.Info()
		if ok && err == nil && goodID(id) {
			list = append(list, entry{id, info.ModTime()})
		}
	}
	slices.SortStableFunc(list, func(a, b entry) int { return a.at.Compare(b.at) })
	ids := make([]string, len(list))
	for i, e := range list {
		ids[i] = e.id
	}
	return ids
}

func (s *spool) drop(id string) {
	if err := os.Remove(s.path(id)); err != nil && !os.IsNotExist(err) {
		s.log.Error("A sent signal stays on disk and will be sent again", "deployment", id, "err", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wait, id)
	delete(s.next, id)
}

// claim reports whether the signal of a deployment is due, and reserves it until release.
func (s *spool) claim(id string, force bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[id] || !force && s.now().Before(s.next[id]) {
		return false
	}
	s.busy[id] = true
	return true
}

func (s *spool) release(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, id)
}

// flush sends the signals that are due, or all if force is set. It returns the number of accepted signals and when
// the next one is due, or the zero time if none is waiting.
func (s *spool) flush(ctx context.Context, force bool) (sent int, next time.Time) {
	for _, id := range s.ids() {
		if ctx.Err() != nil {
			break
		}
		if !s.claim(id, force) {
			continue
		}
		if s.one(ctx, id) {
			sent++
		}
		s.release(id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.next {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	return sent, next
}

func (s *spool) one(ctx context.Context, id string) bool {
	d, body, since, err := s.read(id)
	if err != nil {
		s.log.Error("A damaged signal is put aside", "deployment", id, "err", err)
		if err := os.Rename(s.path(id), s.path(id)+".damaged"); err != nil {
			s.drop(id)
		}
		return false
	}
	err = s.to.send(ctx, d, body)
	if err == nil {
		s.log.Info("A deployment was signalled", "deployment", id, "name", d.Name, "transport", d.Transport(), "bytes", len(body))
		s.drop(id)
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	age := s.now().Sub(since)
	if age > s.ttl || gone(err) && age > goneTTL {
		s.log.Error("A signal is given up", "deployment", id, "name", d.Name, "err", err)
		s.drop(id)
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.wait[id]
	if b == nil {
		b = &backoff.Backoff{Base: 2 * time.Second, Max: longestWait}
		s.wait[id] = b
	}
	pause := b.Next()
	s.next[id] = s.now().Add(pause)
	s.log.Warn("A signal was not taken and will be sent again", "deployment", id, "name", d.Name, "err", err, "in", pause.Round(time.Second))
	return false
}

func (s *spool) read(id string) (d *Deployment, body []byte, since time.Time, err error) {
	b, err := readLimited(s.path(id), maxFile)
	if err != nil {
		return nil, nil, since, err
	}
	v, err := pyjson.Parse(b)
	if err != nil {
		return nil, nil, since, err
	}
	m, _ := v.(map[string]any)
	d, err = NewDeployment(m["deployment"])
	if err != nil {
		return nil, nil, since, err
	}
	signal, ok := m["signal"].(map[string]any)
	if !ok {
		return nil, nil, since, fmt.Errorf("%s has no signal", s.path(id))
	}
	seconds, _ := m["since"].(int64)
	return d, encode(signal), time.Unix(seconds, 0), nil
}

// renew stores the newest URL for a waiting signal: signed URLs expire, and Heat signs new ones.
func (s *spool) renew(d *Deployment) {
	if _, err := os.Stat(s.path(d.ID)); err != nil || !s.claim(d.ID, true) {
		return
	}
	defer s.release(d.ID)
	b, err := readLimited(s.path(d.ID), maxFile)
	if err != nil {
		return
	}
	v, err := pyjson.Parse(b)
	m, _ := v.(map[string]any)
	if err != nil || m == nil {
		return
	}
	info, err := os.Stat(s.path(d.ID))
	fresh := slim(d)
	if err != nil || string(encode(m["deployment"])) == string(encode(fresh)) {
		return
	}
	m["deployment"] = fresh
	if err := writePrivate(s.path(d.ID), encode(m)); err != nil {
		s.log.Warn("Cannot renew the address of a signal", "deployment", d.ID, "err", err)
		return
	}
	_ = os.Chtimes(s.path(d.ID), info.ModTime(), info.ModTime()) // keep the order of the spool
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.next, d.ID)
}
