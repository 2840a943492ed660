package minion

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/strftime"
	"github.com/brine-salt/brine/minion/schedule"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make directory: %w", err)
	}
	return nil
}

// newSchedule creates the schedule. Start it once the pillar is known, because the pillar may contain jobs.
func (m *Minion) newSchedule() *schedule.Schedule {
	s := m.settings()
	return schedule.New(schedule.Options{Jobs: s.dict("schedule"),
		Loop: s.span("loop_interval", time.Second), Pillar: m.currentPillar,
		Grains: m.currentGrains, Running: m.jobs.scheduled, Start: m.startScheduled,
		Persist: m.persistSchedule, Log: m.log, Clock: m.o.Clock,
		Fire: func(tag string, data map[string]any) { m.bus.bus.Publish(tag, data) }})
}

// currentPillar returns the pillar of the first master that has sent one, or nil. It does not wait.
func (m *Minion) currentPillar() map[string]any {
	for _, l := range m.eachLink() {
		l.pillar.mu.Lock()
		data := l.pillar.data
		l.pillar.mu.Unlock()
		if data != nil {
			return data
		}
	}
	return nil
}

func (m *Minion) currentGrains() map[string]any {
	m.grains.mu.Lock()
	defer m.grains.mu.Unlock()
	return m.grains.data
}

// pillarChanged is called after every attempt to fetch a pillar. The first call starts schedule and beacons,
// even if the attempt failed, because those of the configuration do not need the pillar.
func (m *Minion) pillarChanged() {
	if m.ctx == nil || m.schedule == nil {
		return
	}
	m.schedule.Start()
	m.beacons.Start(m.ctx)
}

// startDutiesEarly implements options scheduler_before_connect and beacons_before_connect.
func (m *Minion) startDutiesEarly() {
	s := m.settings()
	if s.masterType == typeDisable || s.truth("scheduler_before_connect") {
		m.schedule.Start()
	}
	if s.masterType == typeDisable || s.truth("beacons_before_connect") {
		m.beacons.Start(m.ctx)
	}
}

// scheduled returns how many runs of a scheduled job are in progress.
func (t *jobTable) scheduled(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, j := range t.running {
		if j.Raw["schedule"] == name && !j.returning.Load() {
			n++
		}
	}
	return n
}

// startScheduled starts one run of a scheduled job.
func (m *Minion) startScheduled(r schedule.Run) {
	if m.ctx.Err() != nil {
		return
	}
	jid := m.jids.Next(m.now())
	args, _ := pyobj.Iterate(r.Job["args"])
	funArgs := append([]any{}, args...)
	if kwargs, ok := r.Job["kwargs"]; ok {
		funArgs = append(funArgs, kwargs)
	}
	raw := map[string]any{"id": m.ID(), "fun": r.Fun, "fun_args": funArgs, "schedule": r.Name,
		"jid": string(jid), "pid": int64(os.Getpid())}
	if r.Fun == "" {
		raw["fun"] = nil
	}
	m.addScheduleMetadata(raw, r.Job["metadata"])
	j := &job{Job: protocol.Job{JID: jid, Fun: []string{r.Fun}, Raw: raw}, received: time.Now(),
		finished: make(chan struct{}), link: m.firstLink()}
	j.ctx, j.cancel = context.WithCancelCause(context.WithoutCancel(m.ctx))
	if rc, ok := m.o.Runner.(*runcmd.Runner); ok {
		j.runner = rc.Sub()
	}
	if !m.jobs.add(j) {
		j.cancel(nil)
		return
	}
	m.log.Info(fmt.Sprintf("Running scheduled job: %s with jid %s", r.Name, jid))
	m.wg.Go(func() {
		defer m.finishJob(j)
		m.runScheduled(j, r, args)
	})
}

// addScheduleMetadata adds the time to a job's metadata (salt/utils/schedule.py: handle_func).
func (m *Minion) addScheduleMetadata(raw map[string]any, metadata any) {
	if metadata == nil {
		return
	}
	meta, ok := metadata.(map[string]any)
	if !ok {
		m.log.Warn("schedule: The metadata parameter must be specified as a dictionary.  Ignoring.")
		return
	}
	now := m.now()
	meta["_TOS"] = now.Local().Format("-0700")
	meta["_TS"] = now.Local().Format("Mon Jan _2 15:04:05 2006")
	meta["_TT"] = strftime.Format("%Y %B %d %a %H %m", now.UTC())
	raw["metadata"] = meta
}

// firstLink returns a link that is signed in, else any link, or nil.
func (m *Minion) firstLink() *link {
	links := m.eachLink()
	for _, l := range links {
		if l.session() != nil {
			return l
		}
	}
	if len(links) > 0 {
		return links[0]
	}
	return nil
}

// runScheduled runs a scheduled job and returns its result (salt/utils/schedule.py: handle_func).
func (m *Minion) runScheduled(j *job, r schedule.Run, args []any) {
	job := options(r.Job)
	proc := ""
	if job.truthOr("jid_include", true) {
		proc = m.writeProc(j)
	}
	ret := maps.Clone(j.Raw) // others read j.Raw
	res, code := m.callScheduled(j, args, r.Job["kwargs"])
	ret["return"], ret["retcode"],
		ret["success"] = ordered.States(res.Return, res.Out), int64(code), true
	if res.Err != nil {
		text := "Unhandled exception running " + pytext.Str(j.Raw["fun"])
		m.log.Error(text, "err", res.Err)
		ret["return"], ret["success"], ret["retcode"] = text, false, int64(254)
		if isMissing(res.Err) {
			// Without the list of similar functions that a master's job would get.
			ret["return"] = res.Err.Error()
		}
	}
	j.returning.Store(true)
	j.progress.close()
	names := m.allowedReturners(returnerNames(r.Job["returner"], m.scheduleReturner()))
	if res.Err == nil && len(names) > 0 {
		if v, ok := r.Job["return_config"]; ok {
			ret["ret_config"] = v
		}
		if v, ok := r.Job["return_kwargs"]; ok {
			ret["ret_kwargs"] = v
		}
		m.sendToReturners(j.ctx, j.link, m.settings().policy, names, ret)
	}
	if def, err := m.o.Registry.Lookup(r.Fun, m.jobEnvironment(j.ctx, j.link, j)); err == nil &&
		def.Out != "" {
		ret["out"] = def.Out
	}
	m.returnScheduled(j, ret, r.Job["return_job"], len(names) == 0)
	if proc != "" {
		os.Remove(proc)
	}
}

// callScheduled runs the function under the checks for a master's job, because the pillar's schedule belongs to
// the master.
func (m *Minion) callScheduled(j *job, args []any, keywords any) (modules.Result, int) {
	fun := j.Fun[0]
	kwargs, ok := keywords.(map[string]any)
	switch {
	case fun == "":
		return failedResult(fun, errors.New("the job names no function")), 1
	case keywords != nil && !ok:
		return failedResult(fun,
			fmt.Errorf("kwargs is %s, not a dictionary", modules.TypeName(keywords))), 1
	}
	if err := m.dispatch.refuseFunction(j.ctx, j.link, j, fun); err != nil {
		return failedResult(fun, err), 1
	}
	env := m.jobEnvironment(j.ctx, j.link, j)
	own := &modules.Context{}
	res := m.o.Registry.Run(j.ctx, env,
		modules.Request{Fun: fun, JID: string(j.JID), Args: args, Kwargs: kwargs, Pub: j.Raw,
			AsGiven: true, Context: own, Progress: func(item any) { j.progress.send(j, item) }})
	return res, own.Retcode()
}

func isMissing(err error) bool {
	_, ok := err.(*modules.NotAvailableError)
	return ok
}

// scheduleReturner returns the option schedule_returner of configuration or pillar.
func (m *Minion) scheduleReturner() any {
	if v, ok := m.settings().options["schedule_returner"]; ok && pytext.Truth(v) {
		return v
	}
	return m.currentPillar()["schedule_returner"]
}

// returnScheduled sends a return to every master unless the job's return_job is false. With unreturned, the
// master assigns a job id.
func (m *Minion) returnScheduled(j *job, ret map[string]any, wanted any, unreturned bool) {
	if wanted != nil && !pytext.Truth(wanted) {
		return
	}
	load := map[string]any{"cmd": "_return"}
	for k, v := range ret {
		load[k] = v
	}
	if unreturned {
		load["jid"] = "req"
		if wanted == "nocache" {
			load["jid"] = "nocache"
		}
	}
	for _, l := range m.eachLink() {
		item, err := m.spool.Put(l.masterName(), string(j.JID), load)
		if item == nil {
			m.log.Error("Cannot return a scheduled job", "jid", string(j.JID), "err", err)
			return
		}
		m.returns.sendItem(m.ctx, item, load)
	}
}

// returnerNames returns the returners named by a job and by the schedule, without duplicates.
func returnerNames(sources ...any) []string {
	var names []string
	seen := map[string]bool{}
	add := func(v any) {
		if s, ok := payload.Text(v); ok && s != "" && !seen[s] {
			seen[s] = true
			names = append(names, s)
		}
	}
	for _, src := range sources {
		if list, ok := src.([]any); ok {
			for _, v := range list {
				add(v)
			}
			continue
		}
		add(src)
	}
	return names
}
