package minion

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/minion/journal"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// defaultRunning is how many jobs run at once if process_count_max is not set. More would compete for the same
// descriptors and memory. Further jobs are queued, not lost.
const defaultRunning = 200

// job is one accepted job.
type job struct {
	protocol.Job
	master   string // the master that published it
	received time.Time
	link     *link
	ctx      context.Context
	cancel   context.CancelCauseFunc
	runner   *runcmd.Runner // nil if Options.Runner has another type
	degraded error          // why the journal could not be written
	progress progress

	ready chan struct{} // closed when a queued job may run

	queued    atomic.Bool
	returning atomic.Bool // it has ended; its return is being sent
	finished  chan struct{}
}

// jobTable holds the running and queued jobs.
type jobTable struct {
	mu      sync.Mutex
	running map[string]*job    // guarded by mu; includes queued jobs
	coming  map[string]*coming // guarded by mu; announced jobs being fetched
	queue   []*job             // guarded by mu
	active  int                // guarded by mu; jobs admitted to run
	closed  bool               // guarded by mu
	changed func(running int)
}

// coming is a job that was announced to this minion and is being fetched.
type coming struct {
	raw      map[string]any // the announcement
	fetching int            // fetches in progress, one per announcing master
	ended    bool           // a signal ended it before it was fetched
}

// runsAtOnce reports whether a job runs without waiting in the queue and without a journal entry. These
// functions only query other jobs, and must work while everything else is stuck.
func runsAtOnce(j *protocol.Job) bool {
	if j.Compound {
		return false
	}
	switch j.Fun[0] {
	case "saltutil.find_job", "saltutil.running", "saltutil.is_running", "saltutil.find_cached_job":
		return true
	}
	return false
}

// hasEffects reports whether a job must be written to the journal before it runs.
func hasEffects(j *protocol.Job) bool {
	return !runsAtOnce(j) && (j.Compound || j.Fun[0] != "test.ping")
}

// isUrgent reports whether a job runs at once even if process_count_max is reached.
func isUrgent(j *protocol.Job) bool {
	if runsAtOnce(j) {
		return true
	}
	if j.Compound {
		return false
	}
	switch j.Fun[0] {
	case "test.ping", "saltutil.kill_job", "saltutil.term_job", "saltutil.signal_job",
		"saltutil.kill_all_jobs", "saltutil.term_all_jobs":
		return true
	}
	return false
}

// startJob starts a job unless its job id is known already. It does not wait for the job.
func (m *Minion) startJob(l *link, master string, pj protocol.Job) {
	jid := string(pj.JID)
	j := &job{Job: pj, link: l, master: master, received: time.Now(), finished: make(chan struct{})}
	j.ctx, j.cancel = context.WithCancelCause(context.WithoutCancel(m.ctx))
	if r, ok := m.o.Runner.(*runcmd.Runner); ok {
		j.runner = r.Sub()
	}
	if !m.jobs.add(j) {
		j.cancel(nil)
		m.log.Debug("Dropping a job that was taken on before", "jid", jid)
		return
	}
	entry := journal.Entry{JID: jid, Master: master, At: m.now(), Job: m.briefJob(pj)}
	if m.journal.Seen(jid) {
		m.finishJob(j)
		m.log.Debug("Dropping a job that has run before", "jid", jid)
		return
	}
	m.jobs.waitInLine(j, m.jobPlaces(), m.log.Warn)
	m.wg.Go(func() {
		defer m.finishJob(j)
		// The entry is written before the job runs. After a crash at any later point the job is reported, not
		// repeated.
		first, err := m.journal.Begin(entry, hasEffects(&pj))
		if !first {
			m.log.Debug("Dropping a job that has run before", "jid", jid)
			j.cancel(errSignal)
			if m.jobs.admit(j) {
				m.jobs.leave(m.jobPlaces())
			}
			return
		}
		if err != nil {
			j.degraded = err
			m.log.Error("The journal cannot be written; jobs go on without it", "jid", jid, "err",
				err)
		}
		failpoint("journalled")
		switch admitted := m.jobs.admit(j); {
		case j.ctx.Err() == nil:
			m.runJob(j)
		case admitted:
			m.jobs.leave(m.jobPlaces())
			fallthrough
		default:
			m.returnInterrupted(j)
		}
	})
}

// briefJob returns what the report of an interrupted job needs; see journalArgs.
func (m *Minion) briefJob(pj protocol.Job) map[string]any {
	b := map[string]any{"fun": pj.FunValue(), "arg": journalArgs(pj, m.dispatch.compiledDefs)}
	for _, k := range []string{"user", "metadata", "master_id"} {
		if v, ok := pj.Raw[k]; ok {
			b[k] = v
		}
	}
	return b
}

// jobPlaces returns how many jobs may run at once. The limit of file descriptors caps it.
func (m *Minion) jobPlaces() int {
	if n := m.settings().integer("process_count_max"); n > 0 {
		return runcmd.Places(n)
	}
	return runcmd.Places(defaultRunning)
}

func (t *jobTable) add(j *job) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, dup := t.running[string(j.JID)]; dup || t.closed {
		return false
	}
	if t.running == nil {
		t.running = map[string]*job{}
	}
	t.running[string(j.JID)] = j
	if c := t.coming[string(j.JID)]; c != nil {
		delete(t.coming, string(j.JID))
		if c.ended {
			j.cancel(errSignal)
		}
	}
	t.wakeWaiters()
	return true
}

// addAnnounced records that an announced job is being fetched. Call done after the fetch; it is nil if the job
// has arrived already or the table is closed.
func (t *jobTable) addAnnounced(pj protocol.Job) (done func()) {
	jid := string(pj.JID)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running[jid] != nil || t.closed {
		return nil
	}
	c := t.coming[jid]
	if c == nil {
		c = &coming{raw: payload.PlainMap(pj.Raw)}
		if t.coming == nil {
			t.coming = map[string]*coming{}
		}
		t.coming[jid] = c
	}
	c.fetching++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if c.fetching--; c.fetching == 0 && t.coming[jid] == c {
			delete(t.coming, jid)
		}
	}
}

// describe returns the job in the form of the proc file of a queued job.
func (c *coming) describe() map[string]any {
	d := maps.Clone(c.raw)
	d["pid"], d["queued"], d["queue_type"] = int64(0), true, "process"
	return d
}

// expectedJobs describes the jobs that are being fetched, by job id. Call it before you list running jobs, so
// that a job that moves from one to the other is not missed.
func (t *jobTable) expectedJobs() map[string]map[string]any {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[string]map[string]any, len(t.coming))
	for jid, c := range t.coming {
		all[jid] = c.describe()
	}
	return all
}

// endComing makes a job end as soon as it is fetched, if sig is fatal. It reports whether the job is being
// fetched.
func (t *jobTable) endComing(jid string, sig int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.coming[jid]
	if c != nil && endsProcess(sig) {
		c.ended = true
	}
	return c != nil
}

func (t *jobTable) remove(j *job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.running, string(j.JID))
	t.wakeWaiters()
}

// wakeWaiters reports the number of jobs to OnJobs. The caller holds mu, so that the numbers arrive in order.
func (t *jobTable) wakeWaiters() {
	if t.changed != nil {
		t.changed(len(t.running))
	}
}

// waitInLine admits the job at once or appends it to the queue. Jobs are admitted in the order of their
// arrival.
func (t *jobTable) waitInLine(j *job, places int, warn func(string, ...any)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j.ready = make(chan struct{})
	if isUrgent(&j.Job) || t.active < places && len(t.queue) == 0 {
		t.active++
		close(j.ready)
		return
	}
	j.queued.Store(true)
	t.queue = append(t.queue, j)
	warn(fmt.Sprintf("Maximum number of processes reached while executing jid %s, queuing... "+
		"(Running: %d, Max: %d)", j.JID, t.active, places))
}

// admit waits until the job is admitted. It returns false if the job was signalled or the minion stops before;
// such a job counts as never admitted.
func (t *jobTable) admit(j *job) bool {
	select {
	case <-j.ready:
		return true
	case <-j.ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.queue, j)
	if i < 0 {
		// It was admitted at the same moment. The caller checks j.ctx.
		return true
	}
	t.queue = slices.Delete(t.queue, i, i+1)
	return false
}

// leave ends the admission of one job and admits the first ones in the queue.
func (t *jobTable) leave(places int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active--
	for len(t.queue) > 0 && t.active < places {
		next := t.queue[0]
		t.queue = t.queue[1:]
		t.active++
		next.queued.Store(false)
		close(next.ready)
	}
}

func (t *jobTable) get(jid string) *job {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running[jid]
}

func (t *jobTable) list() []*job {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := slices.Collect(maps.Values(t.running))
	sorting.Stable(list,
		func(a, b *job) int { return strings.Compare(string(a.JID), string(b.JID)) })
	return list
}

// shutdown refuses new jobs, waits for running ones for patience, then cancels them.
func (t *jobTable) shutdown(patience time.Duration) {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for _, j := range t.list() {
		select {
		case <-j.finished:
		case <-deadline.C:
			for _, j := range t.list() {
				j.cancel(errStopping)
			}
			t.await(killPatience)
			return
		}
	}
}

// killPatience is how long cancelled jobs have to return what they have. A job that takes longer is reported
// after the next start.
const killPatience = 2 * time.Second

func (t *jobTable) await(d time.Duration) {
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	for _, j := range t.list() {
		select {
		case <-j.finished:
		case <-deadline.C:
			return
		}
	}
}

var (
	errStopping = modules.Errorf("the minion was stopped while this job ran")
	errSignal   = modules.Errorf("the job was cancelled by a signal")
)

func (m *Minion) finishJob(j *job) {
	j.cancel(nil)
	m.jobs.remove(j)
	close(j.finished)
}

// returnInterrupted returns the error of a job that was cancelled before it ran.
func (m *Minion) returnInterrupted(j *job) {
	ret := m.emptyReturn(j)
	ret.Return, ret.Retcode, ret.Success, ret.Out = "ERROR: "+context.Cause(j.ctx).Error(),
		int64(1), false, "nested"
	m.deliverReturn(j, ret)
}

// runJob runs an admitted job and sends its return.
func (m *Minion) runJob(j *job) {
	jid := string(j.JID)
	m.log.Info(fmt.Sprintf("Starting a new job %s with PID %d", jid, os.Getpid()))
	proc := ""
	if hasEffects(&j.Job) {
		proc = m.writeProc(j)
	}
	if m.settings().truth("grains_refresh_pre_exec") && !runsAtOnce(&j.Job) {
		if err := m.refreshGrains(j.ctx); err != nil {
			m.log.Warn("Cannot refresh grains before a job", "jid", jid, "err", err)
		}
	}
	failpoint("running")
	ret, silent := m.executeJob(j)
	failpoint("ran")
	j.returning.Store(true)
	m.jobs.leave(m.jobPlaces())
	j.progress.close()
	m.dropOrderFiles(j.Carried().Files)
	if proc != "" {
		os.Remove(proc)
	}
	if silent {
		if err := m.journal.End(jid); err != nil {
			m.log.Debug("Cannot note the end of a job", "jid", jid, "err", err)
		}
		return
	}
	m.deliverReturn(j, ret)
}

// writeProc writes the job's proc file, where stock tools look for running jobs. It returns the path, or "" if
// that failed.
func (m *Minion) writeProc(j *job) string {
	data := maps.Clone(j.Raw)
	data["pid"] = os.Getpid()
	if _, ok := data["arg"]; ok && len(j.Args) > 0 {
		data["arg"] = maskedArgs(j.Job, m.dispatch.compiledDefs)
	}
	b, err := payload.Marshal(data)
	path := filepath.Join(m.settings().cacheDir, "proc", string(j.JID))
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		m.log.Debug("Cannot write proc file", "jid", string(j.JID), "err", err)
		os.Remove(path)
		return ""
	}
	return path
}

func (m *Minion) emptyReturn(j *job) protocol.Return {
	ret := protocol.Return{JID: j.JID, ID: m.ID(), Fun: j.FunValue(), FunArgs: j.ArgValue(),
		User: j.User, MasterID: j.MasterID}
	if j.Secret() {
		ret.FunArgs = maskedArgs(j.Job, nil)
	}
	if j.Metadata != nil {
		if _, ok := j.Metadata.(map[string]any); ok || j.Compound {
			ret.Metadata = j.Metadata
		} else {
			m.log.Warn("The metadata parameter must be a dictionary. Ignoring.", "jid",
				string(j.JID))
		}
	}
	return ret
}

// executeJob runs the functions of a job. silent is true if the function asked for no return (__no_return__).
func (m *Minion) executeJob(j *job) (ret protocol.Return, silent bool) {
	ret = m.emptyReturn(j)
	env := m.jobEnvironment(j.ctx, j.link, j)
	defer func() { ret.FunArgs = maskedArgs(j.Job, m.dispatch.declaredDefs(env, j)) }()
	if !j.Compound {
		res := m.dispatch.runFunction(j.ctx, env, j, 0)
		ret.Return, ret.Retcode, ret.Success,
			ret.Out = ordered.States(res.Return, res.Out), int64(res.Retcode), res.Success, res.Out
		no, _ := modules.Field(res.Return, "__no_return__")
		silent = no == true
		m.logResult(j, j.Fun[0], res)
		return ret, silent
	}
	n := len(j.Fun)
	returns, retcodes, success := make([]any, n), make([]any, n), make([]any, n)
	results, codes, outcomes := pyobj.NewDict(), map[string]any{}, map[string]any{}
	for i, fun := range j.Fun {
		res := m.dispatch.runFunction(j.ctx, env, j, i)
		m.logResult(j, fun, res)
		returns[i], success[i] = ordered.States(res.Return, res.Out), res.Success
		_ = results.Set(fun, returns[i]) // a text can be a key
		outcomes[fun] = res.Success
		if res.Err == nil {
			// As in Salt, a function that raised has no return code.
			retcodes[i], codes[fun] = int64(res.Retcode), int64(res.Retcode)
		}
	}
	if m.settings().truth("multifunc_ordered") {
		ret.Return, ret.Retcode, ret.Success = returns, retcodes, success
	} else {
		ret.Return, ret.Retcode, ret.Success = results, codes, outcomes
	}
	return ret, false
}

func (m *Minion) logResult(j *job, fun string, res modules.Result) {
	if res.Err != nil && j.Secret() {
		m.log.Error(fmt.Sprintf("Problem executing '%s'; the error is in the return only, since "+
			"the job is secret", fun), "jid", string(j.JID))
	} else if res.Err != nil {
		m.log.Error(fmt.Sprintf("Problem executing '%s': %v", fun, res.Err), "jid", string(j.JID))
	}
}

// jobEnvironment returns the environment for the functions of a job, or of a call if j is nil. l is nil without
// a master.
func (m *Minion) jobEnvironment(ctx context.Context, l *link, j *job) *modules.Env {
	s := m.settings()
	e := &modules.Env{ID: s.id, Clock: m.o.Clock, Log: m.log, Runner: m.o.Runner,
		Templates: m.o.Templates, Others: m.o.Others,
		MasterHost: m.o.MasterHost, Policy: s.policy, Functions: m.o.Registry,
		WaitingRuns: &m.waiting,
		Opts:        func() map[string]any { return m.settings().options },
		Grains:      func() map[string]any { return m.grains.get(ctx) },
		OptsOrder:   func() *pyobj.Dict { return m.settings().order },
		GrainsOrder: m.grains.inOrder,
	}
	a := agent{m: m, link: l, job: j}
	e.Agent = a
	if j != nil && j.runner != nil {
		e.Runner = j.runner
	}
	if m.o.Seal != nil {
		e.OnRefused = func(fun string, err error) { m.noteRefusal(l, j, fun, err) }
		if e.Runner != nil {
			e.Runner = refusals{e.Runner, e.OnRefused}
		}
	}
	if j != nil && j.Secret() {
		e.Log = slog.New(slog.DiscardHandler) // functions log their arguments
	}
	if l != nil && l.owner {
		e.Policy = s.policy.Own()
	}
	if l != nil {
		e.Pillar = func() map[string]any { return l.pillarData(ctx) }
		e.OrderedPillar = func() *pyobj.Dict { return l.orderedPillar(ctx) }
		e.FreshPillar = l.compilePillar
		if !l.local {
			e.Master, e.FreshPillar = masterDoor{l}, l.freshPillar
		}
		if j != nil && j.Carried().Pillar && !l.local {
			l.orderPillar(ctx, e)
		}
		e.Files = l.files()
		e.Match = func(tgtType string, tgt any, delimiter string) (bool, error) {
			return l.matchTarget(ctx, tgtType, tgt, delimiter)
		}
	}
	return e
}
