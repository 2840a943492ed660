package master

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/subscribers"
	"github.com/brine-salt/brine/master/targets"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// ErrNotServing is returned by calls that need the network before Serve has begun or after it has ended.
var ErrNotServing = errors.New("master is not serving")

// ErrDenied is returned for jobs that Local.DeniedUsers or Local.DeniedFunctions forbid.
var ErrDenied = errors.New("the master's publisher_acl_blacklist forbids it")

// NoMinionsError says that a target means no minion that the master knows.
type NoMinionsError = targets.NoMinionsError

// Step is one function of a compound command, with its arguments.
type Step struct {
	Fun    string
	Args   []any
	Kwargs map[string]any
}

// Job is a command for minions.
type Job struct {
	// Fun, Args and Kwargs are what to run.
	Fun    string
	Args   []any
	Kwargs map[string]any
	// Steps, when set, are run in their place one after the other: a compound command.
	Steps []Step

	// Tgt selects the minions: text, or []string or []any for lists. TgtType is Salt's tgt_type; empty means list for
	// a list, else glob.
	Tgt       any
	TgtType   string
	Delimiter string

	// JID chooses the job id; empty lets the master make one.
	JID string
	// Ret names returners on the minions, User who orders, Metadata what comes back with every return.
	Ret      string
	User     string
	Metadata any
	// Asker is the minion that ordered the job through peer publishing.
	Asker string
	// NoCache keeps the job and its returns out of the store.
	NoCache bool
	// Extra are further fields of the published map: module_executors, ret_config, …
	Extra map[string]any

	// Timeout and GatherTimeout are those of Options, for this job.
	Timeout, GatherTimeout time.Duration

	border *border // nil for the master's own jobs
}

// Published is a job on its way.
type Published struct {
	JID string
	// Minions are expected to answer; Missing are ids of a list target that the master does not know.
	Minions, Missing []string
}

// arg is the arguments of a call as they travel.
func (c Step) arg() []any {
	out := append([]any{}, c.Args...)
	if len(c.Kwargs) > 0 {
		kw := maps.Clone(c.Kwargs)
		kw["__kwarg__"] = true
		out = append(out, kw)
	}
	return out
}

// callOnWire is the call that travels as a function and its arguments.
func callOnWire(fun any, arg []any) Step {
	name, _ := payload.Text(fun)
	c := Step{Fun: name, Args: arg}
	if n := len(arg); n > 0 {
		if kw, ok := payload.Map(arg[n-1]); ok && kw["__kwarg__"] == true {
			c.Args, c.Kwargs = arg[:n-1], maps.Clone(kw)
			delete(c.Kwargs, "__kwarg__")
		}
	}
	return c
}

// onWire is fun and arg as they travel.
func (j Job) onWire() (fun any, arg []any, err error) {
	if len(j.Steps) == 0 {
		if j.Fun == "" {
			return nil, nil, errors.New("job has no function")
		}
		return j.Fun, Step{j.Fun, j.Args, j.Kwargs}.arg(), nil
	}
	funs := make([]any, len(j.Steps))
	arg = make([]any, len(j.Steps))
	for i, c := range j.Steps {
		if c.Fun == "" {
			return nil, nil, fmt.Errorf("call %d of job has no function", i+1)
		}
		funs[i], arg[i] = c.Fun, c.arg()
	}
	return funs, arg, nil
}

// publication is a job in Salt's terms, ready to be matched, stored and sent.
type publication struct {
	fun       any
	arg       []any
	tgt       any
	tgtType   string
	delimiter string
	ret       string
	user      string
	jid       string         // "" = make one
	load      map[string]any // for the store; nil = made from the other fields
	extra     map[string]any // further fields of the job map
	noCache   bool
	internal  bool // find_job: no events, not stored
	here      bool // for subscribers of this one of several masters
	again     bool // a given job id may be published once more, as salt --batch does
	wait      *Run // to be registered before anything is sent
	border    *border
}

// Publish sends a job and does not wait. The error is a *NoMinionsError when the target means nobody, or wraps
// store.ErrExists when the job id is taken.
func (m *Master) Publish(ctx context.Context, j Job) (Published, error) {
	p, err := j.publication()
	if err != nil {
		return Published{}, fmt.Errorf("cannot publish: %w", err)
	}
	return m.publish(ctx, p)
}

func (j Job) publication() (publication, error) {
	fun, arg, err := j.onWire()
	if err != nil {
		return publication{}, err
	}
	if j.Tgt == nil {
		return publication{}, errors.New("job has no target")
	}
	p := publication{fun: fun, arg: arg, tgt: j.Tgt, tgtType: j.TgtType, delimiter: j.Delimiter,
		ret: j.Ret, user: j.User,
		jid: j.JID, extra: maps.Clone(j.Extra), noCache: j.NoCache, border: j.border}
	if p.extra == nil {
		p.extra = make(map[string]any)
	}
	if j.Metadata != nil {
		p.extra["metadata"] = j.Metadata
	}
	if j.Asker != "" {
		p.extra["id"] = j.Asker
	}
	return p, nil
}

// publish matches, stores, announces and sends: in this order, so that no return can arrive for a job that is not known
// (salt/master.py, ClearFuncs.publish).
func (m *Master) publish(ctx context.Context, p publication) (Published, error) {
	if !m.life.Serving() {
		return Published{}, m.life.NotServing(ErrNotServing)
	}
	if !p.internal && m.Denied(p.user, fields.Functions(p.fun)...) {
		m.log.Warn("Job refused", "user", fields.Brief(p.user), "fun", p.fun, "err", ErrDenied)
		return Published{}, fmt.Errorf("cannot publish: %w", ErrDenied)
	}
	tgtType, tgt, err := m.targets.OnWire(p.tgtType, p.tgt)
	if err != nil {
		return Published{}, fmt.Errorf("cannot publish: %w", err)
	}
	ids, missing, err := m.targets.Expected(tgtType, tgt, p.delimiter)
	if err != nil {
		return Published{}, fmt.Errorf("cannot publish to %v: %w", p.tgt, err)
	}
	if p.border != nil {
		tgtType, tgt, ids, missing, err = m.bounded(ctx, p, tgtType, tgt, ids, missing)
		if err != nil {
			return Published{}, fmt.Errorf("cannot publish to %v: %w", p.tgt, err)
		}
	}
	if len(ids) == 0 {
		return Published{}, &NoMinionsError{Tgt: p.tgt, Missing: missing}
	}
	if p.arg == nil {
		p.arg = []any{}
	}
	job := map[string]any{"fun": p.fun, "arg": p.arg, "tgt": tgt, "tgt_type": tgtType, "ret": p.ret}
	maps.Copy(job, p.extra)
	if p.user != "" {
		job["user"] = p.user
	}
	if p.delimiter != "" && p.delimiter != target.DefaultDelimiter {
		job["delimiter"] = p.delimiter
	}
	jid, err := m.reserve(ctx, p, job, ids, missing)
	if err != nil {
		return Published{}, err
	}
	job["jid"] = jid
	if _, err := protocol.ParseJob(job); err != nil {
		return Published{}, fmt.Errorf("cannot publish: %w", err)
	}
	m.counts.CountJob()
	out := Published{JID: jid, Minions: ids, Missing: missing}
	if p.wait != nil {
		p.wait.begin(out)
		m.runs.add(p.wait)
	}
	if !p.internal {
		m.events.Publish("salt/job/"+jid+"/new", map[string]any{"jid": jid, "tgt_type": tgtType,
			"tgt": tgt, "user": p.user, "fun": p.fun, "arg": p.arg, "minions": nested.Anys(ids),
			"missing": nested.Anys(missing)})
		m.events.Publish("salt/job/"+jid+"/publish", maps.Clone(job))
		m.log.Debug("Job published", "jid", jid, "fun", p.fun, "minions", len(ids))
	}
	to := subscribers.Audience{IDs: ids, Topics: m.network.Sender.Topics(tgtType, ids, missing)}
	if p.border != nil && to.Topics != nil {
		to.Topics = ids // missing may be others' minions
	}
	if p.internal {
		to.IDs = nil // it is not stored
	}
	send := m.broadcast
	if p.here {
		send = m.network.Sender.Send
	}
	if err := send(job, to); err != nil {
		if p.wait != nil {
			p.wait.Close()
		}
		return Published{}, fmt.Errorf("cannot publish job %s: %w", jid, err)
	}
	return out, nil
}

// reserve fixes the job id and stores the job under it.
func (m *Master) reserve(ctx context.Context, p publication, job map[string]any,
	ids, missing []string) (string, error) {
	now := time.Now()
	if p.jid != "" && !protocol.ValidJID(p.jid) {
		return "", fmt.Errorf("cannot publish: job id %.40q is none", p.jid)
	}
	for range 10 {
		jid := p.jid
		if jid == "" {
			jid = string(m.clock.Next(now))
		}
		if p.internal || p.noCache {
			m.runs.skipCache(jid)
		}
		if p.internal {
			return jid, nil
		}
		load := maps.Clone(p.load)
		if load == nil {
			load = maps.Clone(job)
		}
		load["jid"] = jid
		if p.noCache {
			load["nocache"] = true
		}
		err := m.store.SaveJob(ctx, store.Job{JID: jid, Fun: p.fun, Arg: p.arg, Tgt: job["tgt"],
			TgtType: fields.Text(job, "tgt_type"), User: p.user, Minions: ids, Missing: missing,
			Load: load, Created: now})
		switch {
		case err == nil:
			return jid, nil
		case p.jid == "" && errors.Is(err, store.ErrExists):
			continue
		case p.again && errors.Is(err, store.ErrExists):
			return jid, notStored(m.store.AddMinions(ctx, jid, ids))
		}
		return "", notStored(err)
	}
	return "", fmt.Errorf("cannot make a job id: %w", store.ErrExists)
}

// Status says what became of a job on one minion.
type Status int

const (
	// Returned: the minion sent a result.
	Returned Status = iota
	// NoReturn: the minion sent nothing in time, and does not say that the job still runs.
	NoReturn
	// Missing: the target names an id that the master does not know.
	Missing

	// Queued: the order waits for the minion. This and what follows are of orders only.
	Queued
	// Underway: it was sent, and the minion has not returned yet.
	Underway
	// Undeliverable: its time to live or deadline ended before the minion came. It never ran and never will.
	Undeliverable
	// TimedOut: its deadline passed before the minion returned. StillRunning reports whether the minion was at it.
	TimedOut
	// Cancelled: Cancel ended it.
	Cancelled
	// Lost: it was sent, and nobody can find out whether it ran.
	Lost
	// Refused: a policy, of the minion or of this program, did not allow it.
	Refused
)

// String is a word for people.
func (s Status) String() string {
	switch s {
	case Returned:
		return "returned"
	case NoReturn:
		return "no return"
	case Missing:
		return "missing"
	case Queued:
		return "queued"
	case Underway:
		return "underway"
	case Undeliverable:
		return "undeliverable"
	case TimedOut:
		return "timed out"
	case Cancelled:
		return "cancelled"
	case Refused:
		return "refused"
	}
	return "lost"
}

// Result is what became of a job on one minion. The fields below Status are set when it returned.
type Result struct {
	ID     string
	Status Status
	Return any
	// Ordered is Return with its maps as payload.OrderedMap, in the order in which the minion has their keys.
	Ordered any
	// Retcode is the exit status; for compound commands the first that is not 0.
	Retcode int
	Success bool
	// Out names the outputter for the result.
	Out string
	// Load is the whole return. It is shared and must not be changed.
	Load map[string]any
	// StillRunning says of an order that timed out or was cancelled that the minion was still at it when last asked.
	StillRunning bool
	// Reason says in words why an order did not return.
	Reason string
}

// States returns the results of a run of states in the order in which they ran, or nil if the return is of another
// kind.
func (r Result) States() []protocol.StateResult { return protocol.StateResults(r.Return) }

func resultOf(id string, load map[string]any) Result {
	plain := payload.PlainMap(load)
	r := Result{ID: id, Return: plain["return"], Ordered: load["return"],
		Out: fields.Text(load, "out"), Load: plain}
	r.Retcode = fields.FirstCode(load["retcode"])
	switch s := load["success"].(type) {
	case bool:
		r.Success = s
	default:
		r.Success = r.Retcode == 0
	}
	return r
}
