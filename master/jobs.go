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

// ErrNotServing is returned by methods that need the network, before Serve listens and after it has ended.
var ErrNotServing = errors.New("master is not serving")

// ErrDenied is returned for jobs that Local.DeniedUsers or Local.DeniedFunctions deny.
var ErrDenied = errors.New("the master's publisher_acl_blacklist forbids it")

// NoMinionsError is the error for a target that matches no minion known to the master.
type NoMinionsError = targets.NoMinionsError

// Step is one function of a compound command, with its arguments.
type Step struct {
	Fun    string
	Args   []any
	Kwargs map[string]any
}

// Job is a function call for minions.
type Job struct {
	// Fun, Args and Kwargs are the function to run and its arguments.
	Fun    string
	Args   []any
	Kwargs map[string]any
	// Steps, if not empty, are run in order instead: a compound command.
	Steps []Step

	// Tgt selects the minions: a string, or []string or []any for lists. TgtType is Salt's tgt_type; if it is
	// empty, a list means "list" and a string "glob".
	Tgt       any
	TgtType   string
	Delimiter string

	// JID is the job id; if it is empty, the master creates one.
	JID string
	// Ret names returners on the minions. User is the user in whose name the job runs. Metadata is sent back
	// with every return.
	Ret      string
	User     string
	Metadata any
	// Asker is the minion that requested the job by peer publishing.
	Asker string
	// NoCache does not store the job and its returns.
	NoCache bool
	// Extra holds additional fields of the published job: module_executors, ret_config, …
	Extra map[string]any

	// Timeout and GatherTimeout override those of JobOptions.
	Timeout, GatherTimeout time.Duration

	border *border // nil for the master's own jobs
}

// Published describes a job that was published.
type Published struct {
	JID string
	// Minions are the minions expected to return. Missing are ids of a list target that the master does not
	// know.
	Minions, Missing []string
}

// arg returns the call's arguments in Salt's wire format.
func (c Step) arg() []any {
	out := append([]any{}, c.Args...)
	if len(c.Kwargs) > 0 {
		kw := maps.Clone(c.Kwargs)
		kw["__kwarg__"] = true
		out = append(out, kw)
	}
	return out
}

// callOnWire returns the call for a function and arguments in Salt's wire format.
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

// onWire returns the fields fun and arg in Salt's wire format.
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

// publication is a job in Salt's terms, before it is matched, stored and sent.
type publication struct {
	fun       any
	arg       []any
	tgt       any
	tgtType   string
	delimiter string
	ret       string
	user      string
	jid       string         // "" = make one
	load      map[string]any // stored form; nil = built from the other fields
	extra     map[string]any // additional fields of the job
	noCache   bool
	internal  bool // a find_job or probe: no events, not stored
	here      bool // in a cluster, only for this master's subscribers
	again     bool // jid may exist already, as with salt --batch
	wait      *Run // registered before the job is sent
	border    *border
}

// Publish sends a job and does not wait for results. It returns a *NoMinionsError if the target matches no
// minion, and an error that wraps store.ErrExists if the job id is taken.
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

// publish matches the target, stores the job, fires its events and sends it, in this order. So no return can
// arrive for an unknown job (salt/master.py, ClearFuncs.publish).
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
		to.Topics = ids // missing may be other tenants' minions
	}
	if p.internal {
		to.IDs = nil // an internal job is not stored
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

// reserve chooses the job id and stores the job under it.
func (m *Master) reserve(ctx context.Context, p publication, job map[string]any,
	ids, missing []string) (string, error) {
	now := time.Now()
	if p.jid != "" && !protocol.ValidJID(p.jid) {
		return "", fmt.Errorf("cannot publish: %.40q is not a valid job id", p.jid)
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
			return jid, notStored(m.log, m.store.AddMinions(ctx, jid, ids))
		}
		return "", notStored(m.log, err)
	}
	return "", fmt.Errorf("cannot create a job id: %w", store.ErrExists)
}

// Status is the state of a job on one minion.
type Status int

const (
	// Returned means that the minion sent a result.
	Returned Status = iota
	// NoReturn means that the minion sent nothing in time, and does not report the job as running.
	NoReturn
	// Missing means that the target names an id that the master does not know.
	Missing

	// Queued means that the order waits for the minion. It and the following ones apply to orders only.
	Queued
	// Underway means that the order was sent and the minion has not returned yet.
	Underway
	// Undeliverable means that the TTL or deadline ended before the minion connected. It never ran and never
	// will.
	Undeliverable
	// TimedOut means that the deadline passed before the minion returned. StillRunning reports whether it was
	// still running.
	TimedOut
	// Cancelled means that CancelOrder ended it.
	Cancelled
	// Lost means that it was sent, and it cannot be determined whether it ran.
	Lost
	// Refused means that a policy of the minion or of this program refused it.
	Refused
)

// String returns the status in lower-case English.
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

// Result is the result of a job on one minion. Return to Load are set if the minion returned.
type Result struct {
	ID     string
	Status Status
	Return any
	// Ordered is Return with its maps as payload.OrderedMap, in the minion's key order.
	Ordered any
	// Retcode is the exit status. For compound commands it is the first that is not 0.
	Retcode int
	Success bool
	// Out is the name of the outputter for the result.
	Out string
	// Load is the whole return. It is shared and must not be modified.
	Load map[string]any
	// StillRunning reports, for an order that timed out or was cancelled, whether the minion was still running
	// it when last asked.
	StillRunning bool
	// Reason explains why an order did not return.
	Reason string
}

// States returns the results of a state run in the order in which the states ran, or nil if the return is of
// another kind.
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
