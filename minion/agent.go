package minion

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// agent implements [modules.Agent] for one job. In salt-call, job is nil and the running jobs are read from the
// daemon's proc files.
type agent struct {
	m    *Minion
	link *link
	job  *job
}

var _ modules.Agent = agent{}

// Running implements [modules.Agent]. It leaves out the calling job, as Salt does.
func (a agent) Running() []map[string]any {
	if a.m.ctx == nil {
		return a.m.procFiles()
	}
	expected := a.m.jobs.expectedJobs()
	var list []map[string]any
	for _, j := range a.m.jobs.list() {
		delete(expected, string(j.JID))
		if j != a.job && !j.returning.Load() {
			list = append(list, j.describe())
		}
	}
	for _, jid := range slices.Sorted(maps.Keys(expected)) {
		list = append(list, expected[jid])
	}
	return list
}

// describe returns the job in the form of its proc file.
func (j *job) describe() map[string]any {
	d := maps.Clone(payload.PlainMap(j.Raw))
	if j.Secret() {
		d["arg"] = maskedArgs(j.Job, nil)
	}
	d["pid"] = int64(os.Getpid())
	if j.queued.Load() {
		d["pid"], d["queued"], d["queue_type"] = int64(0), true, "process"
	} else if j.runner != nil {
		if pids := j.runner.PIDs(); len(pids) > 0 {
			children := make([]any, len(pids))
			for i, p := range pids {
				children[i] = int64(p)
			}
			d["child_pids"] = children
		}
	}
	return d
}

// Job implements [modules.Agent]. A job is reported until the master has its return, so that a salt command
// does not give up while the return is on its way.
func (a agent) Job(jid string) map[string]any {
	if a.m.ctx != nil {
		expected := a.m.jobs.expectedJobs()
		if j := a.m.jobs.get(jid); j != nil && j != a.job {
			return j.describe()
		}
		return expected[jid]
	}
	for _, d := range a.Running() {
		if have, _ := payload.Text(d["jid"]); have == jid {
			return d
		}
	}
	return nil
}

// Cached implements modules.Agent.
func (a agent) Cached(jid string) map[string]any { return a.m.cachedJob(jid) }

// Signals that end a job.
const (
	sigHup, sigInt, sigQuit, sigAbrt, sigKill, sigTerm = 1, 2, 3, 6, 9, 15
)

// endsProcess reports whether a signal ends a process that has no handler for it.
func endsProcess(sig int) bool {
	switch sig {
	case sigHup, sigInt, sigQuit, sigAbrt, sigKill, sigTerm:
		return true
	}
	return false
}

// Signal implements [modules.Agent] (salt/modules/saltutil.py: signal_job). A job is a goroutine, not a
// process: the signal goes to the programs it runs. The job itself is cancelled on SIGKILL, or on a fatal
// signal if it runs no program.
func (a agent) Signal(jid string, sig int) string {
	if a.m.ctx == nil {
		return a.signalForeign(jid)
	}
	j := a.m.jobs.get(jid)
	switch {
	case j == nil && a.m.jobs.endComing(jid, sig):
		return fmt.Sprintf("Signal %d sent to job %s at pid %d", sig, jid, os.Getpid())
	case j == nil || j == a.job:
		return ""
	}
	sent := 0
	if j.runner != nil {
		sent = j.runner.Signal(sig)
	}
	if sig == sigKill || endsProcess(sig) && sent == 0 {
		j.cancel(errSignal)
	}
	pid := os.Getpid()
	if j.runner != nil {
		if pids := j.runner.PIDs(); len(pids) > 0 {
			pid = pids[0]
		}
	}
	return fmt.Sprintf("Signal %d sent to job %s at pid %d", sig, jid, pid)
}

// signalForeign implements Signal in salt-call. It cannot signal the daemon's jobs, because the pid in their
// proc files is the daemon's.
func (a agent) signalForeign(jid string) string {
	for _, d := range a.m.procFiles() {
		if have, _ := payload.Text(d["jid"]); have == jid {
			return fmt.Sprintf("Job %s runs inside the minion; signal it through its master", jid)
		}
	}
	if path := filepath.Join(a.m.settings().cacheDir, "proc",
		filepath.Base(jid)); os.Remove(path) == nil {
		return fmt.Sprintf("Job %s was not running and job data has been cleaned up", jid)
	}
	return ""
}

// RefreshGrains implements modules.Agent.
func (a agent) RefreshGrains(ctx context.Context) error { return a.m.refreshGrains(ctx) }

// RefreshPillar implements [modules.Agent]. It fetches the pillar of the master that sent the job.
func (a agent) RefreshPillar(ctx context.Context, clean bool) error {
	if a.link == nil {
		return nil
	}
	if a.link.local {
		return a.link.localPillar(ctx)
	}
	return a.link.refreshPillar(ctx, clean)
}

// Reload implements modules.Agent.
func (a agent) Reload(ctx context.Context) error { return a.m.Reload(ctx) }

// FireLocal implements modules.Agent.
func (a agent) FireLocal(tag string, data any) bool { return a.m.fireLocal(tag, data) }

// Masters implements modules.Agent.
func (a agent) Masters() map[string]bool {
	list := map[string]bool{}
	links := a.m.eachLink()
	if len(links) == 0 && a.link != nil {
		links = []*link{a.link}
	}
	for _, l := range links {
		current := l.session()
		for _, s := range l.masterList() {
			list[s.name] = current != nil && current.master == s
		}
	}
	return list
}

// Restart implements modules.Agent.
func (a agent) Restart() error { return a.m.restart() }

// masterDoor implements [modules.Master] for execution functions.
type masterDoor struct{ l *link }

var (
	_ modules.Master        = masterDoor{}
	_ modules.OrderedMaster = masterDoor{}
)

// Request implements modules.Master.
func (d masterDoor) Request(ctx context.Context, load map[string]any) (any, error) {
	return d.l.requestReply(ctx, onWire(load), d.l.plainCall())
}

// RequestOrdered implements modules.OrderedMaster.
func (d masterDoor) RequestOrdered(ctx context.Context, load map[string]any) (any, error) {
	c := d.l.plainCall()
	c.unsealed = openOrdered
	v, err := d.l.requestReply(ctx, onWire(load), c)
	return pyobj.From(v), err
}

// openOrdered opens a reply and keeps the order of its dictionaries.
func openOrdered(v any, s *session, nonce string) (any, error) {
	return s.requester.OpenReplyOrdered(v, nonce)
}

// onWire converts a function's map, which may hold ordered values, to wire types.
func onWire(m map[string]any) map[string]any { return ordered.ToWire(m).(map[string]any) }

// Fire implements [modules.Master]. It applies max_event_size, because in Salt such an event passes the
// minion's event bus, which does.
func (d masterDoor) Fire(ctx context.Context, tag string, data any) error {
	limit := d.l.m.settings().integer("max_event_size")
	load := protocol.TrimEvent(map[string]any{"data": ordered.ToWire(data), "tag": tag,
		"events": nil, "pretag": nil}, limit)
	return d.l.fire(ctx, tag, load["data"], nil)
}
