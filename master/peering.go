package master

import (
	"context"
	"time"

	"github.com/brine-salt/brine/master/requests"
	"github.com/brine-salt/brine/master/targets"
)

// peerHost implements the interfaces with which minions publish and run runners.
type peerHost struct{ m *Master }

var (
	_ requests.Publisher     = peerHost{}
	_ requests.RunnerProgram = peerHost{}
)

// job returns the Job that a minion asks to publish, restricted to its tenant.
func (h peerHost) job(ctx context.Context, p requests.PeerJob) (Job, error) {
	own, _, err := h.m.tenants.Of(ctx, p.Asker)
	if err != nil {
		return Job{}, err
	}
	j := Job{Tgt: p.Tgt, TgtType: p.TgtType, Ret: p.Ret, Asker: p.Asker, User: peerUser,
		Timeout: p.Timeout, border: &border{tenant: own}}
	if len(p.Calls) == 1 {
		j.Fun, j.Args, j.Kwargs = p.Calls[0].Fun, p.Calls[0].Args, p.Calls[0].Kwargs
		return j, nil
	}
	for _, c := range p.Calls {
		j.Steps = append(j.Steps, Step(c))
	}
	return j, nil
}

// peerUser is the user of jobs that minions publish, as in Salt.
const peerUser = "root"

// PublishFor implements requests.Publisher.
func (h peerHost) PublishFor(ctx context.Context,
	p requests.PeerJob) (jid string, minions []string, err error) {
	j, err := h.job(ctx, p)
	if err != nil {
		return "", nil, err
	}
	out, err := h.m.Publish(ctx, j)
	if targets.IsNoMinions(err) {
		err = nil
	}
	return out.JID, out.Minions, err
}

// GatherFor implements requests.Publisher.
func (h peerHost) GatherFor(ctx context.Context, p requests.PeerJob,
	wait time.Duration) (jid string, returns []requests.PeerReturn, err error) {
	j, err := h.job(ctx, p)
	if err != nil {
		return "", nil, err
	}
	r, err := h.m.Submit(ctx, j)
	if targets.IsNoMinions(err) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		res, err := r.Next(ctx)
		if err != nil {
			return r.JID, returns, nil // all results, or wait is over
		}
		if res.Status == Returned {
			r := requests.PeerReturn{ID: res.ID, Value: res.Ordered, Out: res.Out}
			returns = append(returns, r)
		}
	}
}

// Forbids implements requests.Publisher.
func (h peerHost) Forbids(funs ...string) error {
	if h.m.Denied(peerUser, funs...) {
		return ErrDenied
	}
	return nil
}

// Account implements requests.Publisher.
func (h peerHost) Account(a requests.PeerAttempt) {
	e := AuditEntry{Via: "peer", User: a.Minion, Kind: a.Kind, Fun: a.Funs, TgtType: a.TgtType,
		Tgt: a.Tgt, Outcome: AuditDenied}
	if a.Allowed {
		e.Outcome = AuditAllowed
	}
	h.m.Audit(e)
}

// RunFor implements requests.RunnerProgram. It requires MinionOptions.Runner.
func (h peerHost) RunFor(ctx context.Context, id, fun string, args []any,
	kwargs map[string]any) (any, error) {
	return h.m.opts.Minions.Runner(ctx, id, fun, args, kwargs)
}
