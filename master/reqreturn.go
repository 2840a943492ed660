package master

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/internal/probe"
	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/master/requests"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// jidSkew is how far in the future a job id of an unknown job may be.
const jidSkew = time.Hour

// reqReturn takes the outcome of a job. It is acknowledged when it is stored, not before; a second return of a minion for a
// job is acknowledged and dropped. Salt's source is salt/utils/job.py, store_job.
func (m *Master) reqReturn(ctx context.Context, v protocol.Verified) (any, error) {
	load := v.Load()
	r, err := protocol.ParseReturn(load)
	if err != nil {
		m.log.Warn("return refused", "minion", v.ID(), "err", err)
		return nil, nil // Salt ignores what is not one; an error would only make the minion send it again
	}
	if probe.IsProbe(load) && m.names.Answered(v.ID(), load) {
		m.orders.Heard(v.ID(), load)
		return nil, nil
	}
	now := time.Now()
	jid := string(r.JID)
	var job knownJob
	question := probe.IsQuestion(load)
	if content.TellsOfJobs(load) {
		load = m.concealJobs(ctx, load, now)
	}
	switch r.JID {
	case protocol.JIDRequest:
		if err = m.unordered(v.ID(), load); err != nil {
			return nil, err
		}
		if jid, err = m.ownJob(ctx, v.ID(), load, now); err != nil {
			return nil, errors.Join(requests.ErrDropped, err)
		}
	case protocol.JIDNoCache:
		m.returned(ctx, jid, v.ID(), load, false)
		return nil, m.peers.TellReturn(ctx, jid, v.ID(), load)
	default:
		if question {
			break // whose it is, if it was not of this master, is told to all
		}
		if job, err = m.judgeReturn(ctx, v, jid, load, now); err != nil {
			if errors.Is(err, errLater) {
				return nil, err
			}
			m.log.Log(ctx, m.hourly(v.ID(), "return", slog.LevelWarn), "return refused", "minion", v.ID(), "jid", jid, "err", err)
			return nil, nil
		}
	}
	load["jid"] = jid
	if job.secret {
		load = content.MaskReturn(load)
	}
	first := true
	if !question && !m.noCache(jid) {
		first, err = m.peers.SaveReturn(ctx, store.Return{JID: jid, ID: v.ID(), Load: load, Received: now})
		if err != nil && !first {
			return nil, errors.Join(requests.ErrDropped, err)
		}
		if err != nil {
			m.log.Error("return is stored, but not everywhere", "minion", v.ID(), "jid", jid, "err", err)
		}
	} else if m.runOf(jid) == nil && !(question && probe.IsOwn(load, m.peers.Name())) {
		if err := m.peers.TellReturn(ctx, jid, v.ID(), load); err != nil {
			return nil, errors.Join(requests.ErrDropped, err)
		}
	}
	if !first && !m.toldBefore(ctx, jid, v.ID()) {
		m.log.Info("return was stored before this master started, and is told now", "minion", v.ID(), "jid", jid)
		first = true
	}
	if !first {
		m.log.Debug("return came again", "minion", v.ID(), "jid", jid)
		return nil, nil
	}
	m.returned(ctx, jid, v.ID(), load, job.order)
	return nil, nil
}

// maxRetold is how many returns are remembered that were told although they came again.
const maxRetold = 100_000

// toldBefore reports whether a return that came again was told as an event. One that was stored before this master started was perhaps not: its
// master ended before it was acknowledged, or the minion would not send it again. Each is told once by this process.
func (m *Master) toldBefore(ctx context.Context, jid, id string) bool {
	db, ok := store.PagedOf(m.store)
	if !ok {
		return true // nothing in it is older than this process
	}
	list, err := db.ReturnsOf(ctx, jid, []string{id})
	if err != nil {
		m.log.Warn("return that came again cannot be found", "minion", id, "jid", jid, "err", err)
	}
	if len(list) == 0 || !list[0].Received.Before(m.counts.started) {
		return true
	}
	m.runsMu.Lock()
	defer m.runsMu.Unlock()
	if len(m.retold) >= maxRetold {
		clear(m.retold)
	}
	if fields.Has(m.retold, jid+"/"+id) {
		return true
	}
	m.retold[jid+"/"+id] = struct{}{}
	return false
}

// ownJob stores the job of a return that no master ordered (salt-call, schedules, start-up states) and returns its new id.
func (m *Master) ownJob(ctx context.Context, id string, load map[string]any, now time.Time) (string, error) {
	saved := maps.Clone(load)
	delete(saved, "return")
	args, _ := payload.List(load["fun_args"])
	if a, ok := payload.List(load["arg"]); ok {
		args = a
	}
	saved["arg"], saved["tgt"], saved["tgt_type"] = args, id, "glob"
	for range 10 {
		jid := string(m.clock.Next(now))
		saved["jid"] = jid
		err := m.store.SaveJob(ctx, store.Job{JID: jid, Fun: load["fun"], Arg: args, Tgt: id, TgtType: "glob",
			User: fields.Text(load, "user"), Minions: []string{id}, Load: saved, Created: now})
		if err == nil {
			return jid, nil
		}
		if !errors.Is(err, store.ErrExists) {
			return "", err
		}
		saved = maps.Clone(saved)
	}
	return "", fmt.Errorf("cannot make a job id: %w", store.ErrExists)
}

// knownJob refuses returns for jobs that never were: a job id of this master, or one of the time for which jobs are kept. It says
// whether an order may be behind the job.
func (m *Master) knownJob(ctx context.Context, jid string, now time.Time) (knownJob, error) {
	if m.runOf(jid) != nil {
		return knownJob{}, nil
	}
	job, known := m.stored(ctx, jid, now)
	if known {
		return job, nil
	}
	at, ok := protocol.JID(jid).Time()
	if !ok {
		return job, errors.New("job id is no time")
	}
	if keep := m.opts.KeepJobs; keep > 0 && now.Sub(at) > keep+jidSkew {
		return job, errors.New("job is too old")
	}
	if at.Sub(now) > jidSkew {
		return job, errors.New("job is in the future")
	}
	return job, nil
}

// returned tells the bus and whoever waits for the job. order says that a delivery may end with it.
func (m *Master) returned(ctx context.Context, jid, id string, load map[string]any, order bool) {
	m.counts.add(&m.counts.returns)
	m.events.Publish("salt/job/"+jid+"/ret/"+id, load)
	m.stateErrors(jid, id, load)
	if r := m.runOf(jid); r != nil {
		r.deliver(resultOf(id, load))
	} else if probe.IsQuestion(load) {
		if name := m.peers.Name(); name == "" || probe.IsOwn(load, name) {
			m.orders.ReturnedLate(ctx, id, load)
		}
	} else if order && !m.noCache(jid) {
		m.orders.Returned(ctx, jid, id, load)
	}
	m.orders.Heard(id, load)
}

// stateErrors fires an event per failed state of a state run (salt/utils/event.py, fire_ret_load).
func (m *Master) stateErrors(jid, id string, load map[string]any) {
	fun := fields.Text(load, "fun")
	if fun != "state.highstate" && fun != "state.sls" {
		return // Salt's list, without state.apply
	}
	if code, ok := payload.Int(load["retcode"]); !ok || code == 0 {
		return
	}
	states, ok := payload.Map(load["return"])
	if !ok {
		return
	}
	for name, x := range states {
		s, ok := payload.Map(x)
		if result, isBool := s["result"].(bool); !ok || !isBool || result {
			continue
		}
		data := maps.Clone(s)
		data["success"], data["return"] = false, fmt.Sprintf("Error: %s.", name)
		data["fun"], data["id"], data["jid"] = fun, id, jid
		m.events.Publish("salt/job/"+jid+"/sub/"+id+"/error/"+fun, data)
	}
}
