package minion

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/backoff"
	"github.com/brine-salt/brine/minion/journal"
	"github.com/brine-salt/brine/minion/spool"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
)

// deliverReturn delivers a job's return to its master. It is written to disk first, then sent until it is
// acknowledged.
func (m *Minion) deliverReturn(j *job, ret protocol.Return) {
	jid := string(j.JID)
	load := ret.Load()
	if j.degraded != nil {
		load["degraded"] = errorName(j.degraded)
	}
	m.log.Info("Returning information for job: " + jid)
	m.cacheJob(jid, load)
	if !m.settings().truth("pub_ret") {
		m.endJob(jid)
		m.callReturners(j, load)
		return
	}
	keep := m.spool.Put
	if !hasEffects(&j.Job) {
		keep = m.spool.Memory
	}
	item, err := keep(j.master, jid, load)
	if item == nil {
		// The return cannot be packed. Report that to the master instead.
		ret.Return, ret.Retcode, ret.Success, ret.Out = "ERROR: "+err.Error(), int64(1), false,
			"nested"
		load = ret.Load()
		item, err = keep(j.master, jid, load)
	}
	if err != nil {
		m.log.Error("A return is only in memory", "jid", jid, "err", err)
		if item == nil {
			return
		}
		load["degraded"] = errorName(err)
	}
	failpoint("spooled")
	m.endJob(jid)
	m.callReturners(j, load)
	if s := j.link.session(); s == nil || !s.prompt {
		backoff.Sleep(m.ctx, m.settings().returnAge-time.Since(j.received))
	}
	m.returns.sendItem(m.ctx, item, load)
}

// errorName returns the short name of a disk error, for the field degraded of a return.
func errorName(err error) string {
	for name, errno := range map[string]error{"ENOSPC": syscall.ENOSPC, "EROFS": syscall.EROFS,
		"EDQUOT": syscall.EDQUOT, "EIO": syscall.EIO} {
		if errors.Is(err, errno) {
			return name
		}
	}
	return "cache cannot be written"
}

func (m *Minion) endJob(jid string) {
	if err := m.journal.End(jid); err != nil {
		m.log.Debug("Cannot note the end of a job", "jid", jid, "err", err)
	}
}

// cacheJob implements option cache_jobs (salt/utils/minion.py: cache_jobs).
func (m *Minion) cacheJob(jid string, load map[string]any) {
	if !m.settings().truth("cache_jobs") {
		return
	}
	if err := m.writeCachedJob(jid, load); err != nil {
		m.log.Warn("Cannot cache job", "jid", jid, "err", err)
	}
}

func (m *Minion) writeCachedJob(jid string, load map[string]any) error {
	dir := filepath.Join(m.settings().cacheDir, "minion_jobs", jid)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot create job cache directory: %w", err)
	}
	ret := maps.Clone(load)
	delete(ret, "cmd")
	b, err := payload.MarshalBin(ret)
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(dir, "return.p"), b, 0o600)
}

// reportInterrupted returns an error for each job that a crash or stop interrupted. Such jobs do not run again.
func (m *Minion) reportInterrupted() {
	m.removeOrderFiles(orderDir) // left by interrupted jobs
	for _, e := range m.journal.Interrupted() {
		if !m.spool.Has(e.JID) && !immediateName(e.Job["fun"]) {
			load := interruptedReturn(m.ID(), e).Load()
			m.log.Warn("Reporting a job that was interrupted", "jid", e.JID)
			if _, err := m.spool.Put(e.Master, e.JID, load); err != nil {
				m.log.Error("Cannot report an interrupted job", "jid", e.JID, "err", err)
			}
		}
		m.endJob(e.JID)
		os.Remove(filepath.Join(m.settings().cacheDir, "proc", e.JID))
	}
}

func immediateName(fun any) bool {
	name, ok := fun.(string)
	return ok && runsAtOnce(&protocol.Job{Fun: []string{name}})
}

// interruptedReturn returns the return of an interrupted job, in the form of a failed one.
func interruptedReturn(id string, e journal.Entry) protocol.Return {
	text := "ERROR: the job was interrupted: the minion stopped or crashed after it had begun at " +
		e.At.UTC().Format(time.RFC3339) +
		". It was not run again; what it did until then is unknown."
	o := options(e.Job)
	args, _ := payload.List(e.Job["arg"])
	r := protocol.Return{JID: protocol.JID(e.JID), ID: id, Fun: e.Job["fun"], FunArgs: args,
		Return: text, Retcode: int64(1), Success: false,
		Out: "nested", User: o.optional("user"), MasterID: o.optional("master_id")}
	if meta, ok := e.Job["metadata"].(map[string]any); ok {
		r.Metadata = meta
	}
	if list, compound := e.Job["fun"].([]any); compound {
		texts, codes, success := map[string]any{}, map[string]any{}, map[string]any{}
		for _, f := range list {
			name := fmt.Sprint(f)
			texts[name], codes[name], success[name] = text, int64(1), false
		}
		r.Return, r.Retcode, r.Success = texts, codes, success
	}
	return r
}

// sender delivers spooled returns. It has a goroutine only while returns are pending and a master is connected.
type sender struct {
	m *Minion

	mu     sync.Mutex
	flying map[*spool.Item]bool // guarded by mu
	tries  map[*spool.Item]int  // guarded by mu; replies that did not acknowledge
	active bool                 // guarded by mu
	again  bool                 // guarded by mu; kick was called while active
	timer  *time.Timer          // guarded by mu
	retry  backoff.Backoff      // guarded by mu
}

// maxRefused is how often a return is sent to a master that fails to process it.
const maxRefused = 3

// sendItem tries to deliver a return now. If that fails it is retried later.
func (q *sender) sendItem(ctx context.Context, it *spool.Item, load map[string]any) {
	if !q.claimItem(it) {
		return
	}
	err := q.deliverItem(ctx, it, load)
	q.releaseItem(it)
	if err != nil && ctx.Err() == nil {
		q.m.log.Warn("The minion failed to return the job information for job "+it.JID+
			"; it will be tried again until the master "+
			"has it", "err", err)
		q.retryLater()
	}
}

func (q *sender) claimItem(it *spool.Item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.flying[it] {
		return false
	}
	if q.flying == nil {
		q.flying, q.tries = map[*spool.Item]bool{}, map[*spool.Item]int{}
	}
	q.flying[it] = true
	return true
}

func (q *sender) releaseItem(it *spool.Item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.flying, it)
}

// deliverItem sends a return once, with the retries of a request.
func (q *sender) deliverItem(ctx context.Context, it *spool.Item, load map[string]any) error {
	l := q.link(it.Master)
	if l == nil {
		return ErrNotConnected
	}
	if load == nil {
		var err error
		if load, err = q.m.spool.Load(it); err != nil {
			q.m.spool.Drop(it, err.Error())
			return nil
		}
	}
	c := l.daemonCall()
	c.sign = q.m.settings().truth("minion_sign_messages")
	answer, err := l.requestReply(ctx, load, c)
	failpoint("sent")
	if errors.Is(err, payload.ErrLimit) {
		q.m.spool.Drop(it, err.Error())
		return nil
	}
	if err != nil {
		if q.tooLarge(ctx, l, it, err) {
			return q.replaceReturn(ctx, l, it, load)
		}
		return err
	}
	if text, failed := answer.(string); failed && text == "" && !q.itemRefused(it) {
		// The master's function raised. It may have stored the return or not.
		return errors.New("the master did not accept the return")
	}
	q.m.spool.Done(it)
	if load["fun"] == "test.ping" { // held in memory only: this process ran it
		l.pinged.Store(time.Now().Unix())
	}
	q.mu.Lock()
	delete(q.tries, it)
	q.retry.Reset()
	q.mu.Unlock()
	failpoint("acknowledged")
	return nil
}

// largeReturn is the size in bytes from which the transport may be the reason of a failure: Python's ws servers
// accept at most 4 MiB.
const largeReturn = 4<<20 - 64<<10

// tooLarge reports whether a return fails because of its size: it failed maxRefused times, and the master
// answers other requests.
func (q *sender) tooLarge(ctx context.Context, l *link, it *spool.Item, err error) bool {
	if it.Size() < largeReturn || !errors.Is(err, transport.ErrTooBig) &&
		!errors.Is(err, transport.ErrNoReply) {
		return false
	}
	s := l.session()
	return s != nil && l.ping(ctx, s) == nil && q.itemRefused(it)
}

// replaceReturn sends an error in place of a return that the master cannot accept. The full return stays in the
// job cache, where saltutil.find_cached_job finds it.
func (q *sender) replaceReturn(ctx context.Context, l *link, it *spool.Item,
	load map[string]any) error {
	if err := q.m.writeCachedJob(it.JID, load); err != nil {
		q.m.log.Warn("Cannot cache a return that is too large to be sent", "jid", it.JID, "err",
			err)
	}
	short := maps.Clone(load)
	short["return"] = fmt.Sprintf("ERROR: the return of %d bytes is too large for the transport "+
		"of the master; the minion keeps it in its job cache", it.Size())
	short["retcode"], short["success"], short["out"] = int64(1), false, "nested"
	if _, err := l.requestReply(ctx, short, l.daemonCall()); err != nil {
		return err
	}
	q.m.spool.Done(it)
	return nil
}

// itemRefused counts a failure of the master to process a return. It reports whether to give up.
func (q *sender) itemRefused(it *spool.Item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tries[it]++
	if q.tries[it] < maxRefused {
		return false
	}
	q.m.log.Error("The master repeatedly failed to accept a return", "jid", it.JID)
	return true
}

// link returns the connection for a return: to the master that published the job or, if that is no longer
// configured, to any connected one. It returns nil if there is none.
func (q *sender) link(master string) *link {
	var other *link
	for _, l := range q.m.eachLink() {
		for _, a := range l.masterList() {
			if a.name == master {
				if l.session() == nil {
					return nil
				}
				return l
			}
		}
		if other == nil && l.session() != nil {
			other = l
		}
	}
	return other
}

// kick starts sending the pending returns, in the background.
func (q *sender) kick() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
	if q.active {
		q.again = true
		return
	}
	if q.m.ctx.Err() != nil {
		return
	}
	q.active = true
	q.m.wg.Go(q.flush)
}

// retryLater calls kick after a pause.
func (q *sender) retryLater() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.timer != nil || q.active {
		return
	}
	s := q.m.settings()
	q.retry.Base, q.retry.Max = s.returnMin, time.Minute
	q.timer = time.AfterFunc(q.retry.Next(), q.kick)
}

func (q *sender) flush() {
	failed := q.flushAll()
	q.mu.Lock()
	q.active = false
	again := q.again
	q.again = false
	q.mu.Unlock()
	switch {
	case again:
		q.kick()
	case failed:
		q.retryLater()
	}
}

// flushAll tries to send every pending return once, and then drops expired ones. That order gives each one a
// try if the clock has jumped.
func (q *sender) flushAll() (failed bool) {
	defer q.expire()
	for _, it := range q.m.spool.Pending() {
		if q.m.ctx.Err() != nil {
			return false
		}
		if !q.claimItem(it) {
			continue
		}
		err := q.deliverItem(q.m.ctx, it, nil)
		q.releaseItem(it)
		failed = failed || err != nil
	}
	return failed
}

// expire drops returns that no master accepted within return_spool_ttl. They stay in the job cache for
// saltutil.find_cached_job.
func (q *sender) expire() {
	for _, it := range q.m.spool.Expired() {
		if load, err := q.m.spool.Load(it); err == nil {
			if err := q.m.writeCachedJob(it.JID, load); err != nil {
				q.m.log.Warn("Cannot cache an expired return", "jid", it.JID, "err", err)
			}
		}
		q.m.spool.Drop(it, "no master acknowledged it within return_spool_ttl")
	}
}

func (q *sender) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
}
