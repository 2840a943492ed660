// Package returns handles the returns of minions: those of this master's jobs, of peers' jobs, of orders, and
// of what minions ran by themselves. A return is acknowledged once it is stored, and published as an event
// once.
//
//	return ──► a probe's answer? ──► heard
//	   │
//	   ├── jid "req": of no job ──► charged to the minion ──► gets a job of its own
//	   ├── jid "nocache" ──► published, not stored
//	   └── of a job ──► the job is known, and the minion targeted ──► stored ──► published: bus, run, order
//	                    no: refused; perhaps: marked, charged           again: dropped
//
// A minion that the job does not name may match by its properties, such as its grains, of which the master's
// copy may be out of date. Its return is marked as unexpected and charged to the minion like an unsolicited
// one.
package returns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/brine-salt/brine/master/internal/acks"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/internal/probe"
	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// jidSkew is how far in the future the id of an unknown job may be.
const jidSkew = time.Hour

// Runs are the jobs whose results are awaited on this master.
type Runs interface {
	// Awaited reports whether a job's results are awaited here, and returns its minions.
	Awaited(jid string) (minions []string, ok bool)
	// Deliver passes a return to the run that awaits it, and reports whether there is one.
	Deliver(jid, id string, load map[string]any) bool
	// NoCache reports whether a job's returns must not be stored.
	NoCache(jid string) bool
}

// Cluster stores returns and sends them to peers; a single master only stores them.
type Cluster interface {
	// Name is this master's name, or "" for a single master.
	Name() string
	// SaveReturn stores a return and sends it to the peers. first reports whether it is the minion's first one
	// for the job.
	SaveReturn(ctx context.Context, r store.Return) (first bool, err error)
	// TellReturn sends the peers a return that is not stored.
	TellReturn(ctx context.Context, jid, id string, load map[string]any) error
}

// Deliveries are the deliveries of orders.
type Deliveries interface {
	// Heard reports that a minion has returned something.
	Heard(id string, load map[string]any)
	// Returned ends the delivery of an order's job.
	Returned(ctx context.Context, jid, id string, load map[string]any)
	// ReturnedLate passes on an answer to a status query that is no longer awaited.
	ReturnedLate(ctx context.Context, id string, load map[string]any)
}

// Probes are the probes that identify connections.
type Probes interface {
	// Answered reports that a minion answered a probe. It returns whether the probe was one of this master's.
	Answered(id string, load map[string]any) bool
}

// Subjects provides the data of minions for targets.
type Subjects interface {
	// Subject returns the data that targets are matched against.
	Subject(id string) target.Subject
}

// Options configure a Taker. Fields that may be nil say so.
type Options struct {
	Store store.Store
	// Queue holds the orders; nil if the store keeps none.
	Queue    store.Queue
	Cluster  Cluster
	Runs     Runs
	Orders   Deliveries
	Probes   Probes
	Subjects Subjects
	Events   *events.Bus
	// Clock creates ids for jobs that minions ran by themselves.
	Clock  *protocol.JIDClock
	Hourly *ratelimit.HourlyLog
	Log    *slog.Logger
	// Started is when this master started.
	Started time.Time
	// KeepJobs is how long jobs are stored; below 0 means for ever.
	KeepJobs time.Duration
	// MaxUnordered is how many bytes of unsolicited returns are accepted per minion and hour; below 0 means no
	// limit.
	MaxUnordered int64
}

// Taker handles returns.
type Taker struct {
	Options
	known     knownJobs
	reads     singleflight.Group // in progress for unknown jobs, by job id
	unordered *ratelimit.Limiter // in bytes, by minion
	taken     atomic.Int64

	mu     sync.Mutex          // guards retold
	retold map[string]struct{} // "jid/id" of returns that came again and were told; see toldBefore
}

// New returns a Taker.
func New(o Options) *Taker {
	return &Taker{Options: o, retold: make(map[string]struct{}),
		unordered: ratelimit.New(float64(o.MaxUnordered)/3600, float64(o.MaxUnordered))}
}

// Taken returns the number of accepted returns.
func (t *Taker) Taken() int64 { return t.taken.Load() }

// isAwaited reports whether a job's results are awaited here.
func (t *Taker) isAwaited(jid string) bool {
	_, ok := t.Runs.Awaited(jid)
	return ok
}

// Take answers _return with an acknowledgement once the return is stored. A minion's second return for a job is
// acknowledged and dropped. Salt's source is salt/utils/job.py, store_job.
func (t *Taker) Take(ctx context.Context, v protocol.Verified) (any, error) {
	load := v.Load()
	ret, err := protocol.ParseReturn(load)
	if err != nil {
		t.Log.Warn("Return refused", "minion", v.ID(), "err", err)
		return nil, nil // as in Salt: an error would make the minion send it again
	}
	if probe.IsProbe(load) && t.Probes.Answered(v.ID(), load) {
		t.Orders.Heard(v.ID(), load)
		return nil, nil
	}
	now := time.Now()
	jid := string(ret.JID)
	var job knownJob
	question := probe.IsQuestion(load)
	if content.TellsOfJobs(load) {
		load = t.concealJobs(ctx, load, now)
	}
	switch ret.JID {
	case protocol.JIDRequest:
		if err = t.charge(v.ID(), load); err != nil {
			return nil, err
		}
		if jid, err = t.saveOwnJob(ctx, v.ID(), load, now); err != nil {
			return nil, errors.Join(acks.ErrDropped, err)
		}
	case protocol.JIDNoCache:
		t.tellReturn(ctx, jid, v.ID(), load, false)
		return nil, t.Cluster.TellReturn(ctx, jid, v.ID(), load)
	default:
		if question {
			break // any master's job, so it is sent to all
		}
		if job, err = t.judgeReturn(ctx, v, jid, load, now); err != nil {
			if errors.Is(err, acks.ErrLater) {
				return nil, err
			}
			t.Log.Log(ctx, t.Hourly.Level(v.ID(), "return", slog.LevelWarn), "Return refused",
				"minion", v.ID(), "jid", jid, "err", err)
			return nil, nil
		}
	}
	load["jid"] = jid
	if job.secret {
		load = content.MaskReturn(load)
	}
	first := true
	if !question && !t.Runs.NoCache(jid) {
		first, err = t.Cluster.SaveReturn(ctx,
			store.Return{JID: jid, ID: v.ID(), Load: load, Received: now})
		if err != nil && !first {
			return nil, errors.Join(acks.ErrDropped, err)
		}
		if err != nil {
			t.Log.Error("Return is stored, but not everywhere", "minion", v.ID(), "jid", jid,
				"err", err)
		}
	} else if !t.isAwaited(jid) && !(question && probe.IsOwn(load, t.Cluster.Name())) {
		if err := t.Cluster.TellReturn(ctx, jid, v.ID(), load); err != nil {
			return nil, errors.Join(acks.ErrDropped, err)
		}
	}
	if !first && !t.toldBefore(ctx, jid, v.ID()) {
		t.Log.Info("Return was stored before this master started; its event is fired now",
			"minion", v.ID(), "jid", jid)
		first = true
	}
	if !first {
		t.Log.Debug("Duplicate return", "minion", v.ID(), "jid", jid)
		return nil, nil
	}
	t.tellReturn(ctx, jid, v.ID(), load, job.order)
	return nil, nil
}

// maxRetold limits the duplicate returns that are remembered as published.
const maxRetold = 100_000

// toldBefore reports whether a duplicate return was published as an event before. One that was stored before
// this master started may not have been: the master died before acknowledging it, or the minion would not have
// sent it again. This process publishes each only once.
func (t *Taker) toldBefore(ctx context.Context, jid, id string) bool {
	db, ok := store.PagedOf(t.Store)
	if !ok {
		return true // the return cannot be older than this process
	}
	list, err := db.ReturnsOf(ctx, jid, []string{id})
	if err != nil {
		t.Log.Warn("Cannot find a duplicate return in the store", "minion", id, "jid", jid,
			"err", err)
	}
	if len(list) == 0 || !list[0].Received.Before(t.Started) {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.retold) >= maxRetold {
		clear(t.retold)
	}
	if fields.Has(t.retold, jid+"/"+id) {
		return true
	}
	t.retold[jid+"/"+id] = struct{}{}
	return false
}

// saveOwnJob stores the job of an unsolicited return (salt-call, schedules, startup states) and returns its new
// id.
func (t *Taker) saveOwnJob(ctx context.Context, id string, load map[string]any,
	now time.Time) (string, error) {
	saved := maps.Clone(load)
	delete(saved, "return")
	args, _ := payload.List(load["fun_args"])
	if a, ok := payload.List(load["arg"]); ok {
		args = a
	}
	saved["arg"], saved["tgt"], saved["tgt_type"] = args, id, "glob"
	for range 10 {
		jid := string(t.Clock.Next(now))
		saved["jid"] = jid
		err := t.Store.SaveJob(ctx, store.Job{JID: jid, Fun: load["fun"], Arg: args, Tgt: id,
			TgtType: "glob", User: fields.Text(load, "user"), Minions: []string{id}, Load: saved,
			Created: now})
		if err == nil {
			return jid, nil
		}
		if !errors.Is(err, store.ErrExists) {
			return "", err
		}
		saved = maps.Clone(saved)
	}
	return "", fmt.Errorf("cannot create a job id: %w", store.ErrExists)
}

// tellReturn publishes a return on the bus, and passes it to the run and the order that wait for it. order
// reports whether it may end a delivery.
func (t *Taker) tellReturn(ctx context.Context, jid, id string, load map[string]any, order bool) {
	t.taken.Add(1)
	t.Events.Publish("salt/job/"+jid+"/ret/"+id, load)
	t.tellStateErrors(jid, id, load)
	if t.Runs.Deliver(jid, id, load) {
		// The caller that awaits the answer handles it.
	} else if probe.IsQuestion(load) {
		if name := t.Cluster.Name(); name == "" || probe.IsOwn(load, name) {
			t.Orders.ReturnedLate(ctx, id, load)
		}
	} else if order && !t.Runs.NoCache(jid) {
		t.Orders.Returned(ctx, jid, id, load)
	}
	t.Orders.Heard(id, load)
}

// tellStateErrors fires an event for each failed state of a state run (salt/utils/event.py, fire_ret_load).
func (t *Taker) tellStateErrors(jid, id string, load map[string]any) {
	fun := fields.Text(load, "fun")
	if fun != "state.highstate" && fun != "state.sls" {
		return // Salt's list, which lacks state.apply
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
		t.Events.Publish("salt/job/"+jid+"/sub/"+id+"/error/"+fun, data)
	}
}

// Adopt handles a minion's cached return as if it had just arrived: it is stored, sent to the peers, published
// as an event, and passed to a run that awaits it. It returns false if load is not a return or cannot be
// stored.
func (t *Taker) Adopt(ctx context.Context, jid, id string, load map[string]any) bool {
	load["jid"], load["id"] = jid, id
	if job, _ := t.storedJob(ctx, jid, time.Now()); job.secret {
		load = content.MaskReturn(load)
	}
	if _, err := protocol.ParseReturn(load); err != nil {
		return false
	}
	first, err := t.Cluster.SaveReturn(ctx,
		store.Return{JID: jid, ID: id, Load: load, Received: time.Now()})
	if err != nil && !first {
		t.Log.Error("Cannot store return", "err", err)
		return false
	}
	if first || !t.toldBefore(ctx, jid, id) {
		t.tellReturn(ctx, jid, id, load, false)
	}
	return true
}

// concealJobs returns a return that describes jobs without the arguments of secret ones.
func (t *Taker) concealJobs(ctx context.Context, load map[string]any,
	now time.Time) map[string]any {
	out := maps.Clone(load)
	out["return"] = content.MaskJobs(load["return"], func(jid string) bool {
		job, _ := t.storedJob(ctx, jid, now)
		return job.secret
	})
	return out
}
