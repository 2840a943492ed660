package restapi

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/bootstrap"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/events"
)

// view is the master as somebody sees it: the whole of it, or a tenant's part.
type view interface {
	Run(ctx context.Context, j master.Job) (map[string]master.Result, error)
	Submit(ctx context.Context, j master.Job) (*master.Run, error)
	Publish(ctx context.Context, j master.Job) (master.Published, error)
	Match(ctx context.Context, tgtType string, tgt any) ([]string, error)
	EnsureMinion(ctx context.Context, s master.MinionSpec) (bootstrap.Bootstrap, error)
	RevokeMinion(ctx context.Context, id string) error
	Announced(ctx context.Context) ([]master.Announced, error)
	GrantEvents(ctx context.Context, id string, add, remove []string) ([]string, error)
	KeptEvents(ctx context.Context, id, tag string) ([]master.KeptEvent, error)
	ForgetEvents(ctx context.Context, id, tag string) (int, error)
	Present(ctx context.Context) ([]string, error)
	PlaceOrder(ctx context.Context, o master.Order) (master.Outcome, error)
	Order(ctx context.Context, id string) (master.Order, error)
	Orders(ctx context.Context, f master.OrderFilter) ([]master.Order, error)
	AwaitOrder(ctx context.Context, id string) (master.Outcome, error)
	OrderOutcome(ctx context.Context, id string) (master.Outcome, error)
	CancelOrder(ctx context.Context, id string) (master.Outcome, error)
	FollowMarked(ctx context.Context, every time.Duration, cursor string, tags ...string) iter.Seq[events.Logged]
}

// whole is the view of those who are of no tenant.
type whole struct{ *master.Master }

func (w whole) Match(_ context.Context, tgtType string, tgt any) ([]string, error) {
	return w.Master.Match(tgtType, tgt)
}

func (w whole) Announced(ctx context.Context) ([]master.Announced, error) {
	return w.Master.Announced(ctx, "")
}

func (w whole) Present(context.Context) ([]string, error) { return w.Master.Present(), nil }

// tenant says whose somebody is, "" for nobody's.
func (s *Server) tenant(t eauth.Token) (string, error) {
	name, err := s.o.Auth.Tenant(t)
	if err != nil {
		s.o.Log.Warn("request refused", "user", t.Name, "eauth", t.EAuth, "err", err)
		return "", errAuthZ
	}
	return name, nil
}

// view gives somebody their view.
func (s *Server) view(t eauth.Token) (view, error) {
	name, err := s.tenant(t)
	switch {
	case err != nil:
		return nil, err
	case name == "":
		return whole{s.o.Master}, nil
	}
	return s.o.Master.Tenant(name)
}

// operator is session for what sees, or changes, more than one tenant's part.
func (s *Server) operator(r *http.Request) (eauth.Token, error) {
	t, err := s.session(r)
	if err != nil {
		return t, err
	}
	name, err := s.tenant(t)
	if err == nil && name != "" {
		err = errAuthZ
	}
	return t, err
}

// ownJobs leaves of what jobs.list_jobs and jobs.list_job say what is about a tenant's minions only.
func (s *Server) ownJobs(ctx context.Context, t eauth.Token, fun string, v any) (any, error) {
	view, err := s.view(t)
	if err != nil {
		return nil, err
	}
	out, ok := v.(map[string]any)
	if !ok {
		return map[string]any{}, nil
	}
	list, err := view.Announced(ctx)
	if err != nil {
		return nil, err
	}
	own := make(map[string]bool, len(list))
	for _, x := range list {
		own[x.ID] = true
	}
	mine := func(j store.Job) bool {
		return len(j.Minions) > 0 && !slices.ContainsFunc(j.Minions, func(id string) bool { return !own[id] })
	}
	if fun == "jobs.list_job" {
		jid, _ := out["jid"].(string)
		if j, err := s.o.Master.Store().Job(ctx, jid); err == nil && mine(j) {
			return out, nil
		}
		return map[string]any{"jid": jid, "Result": map[string]any{}, "StartTime": out["StartTime"], "Error": "Cannot contact returner or no job with this jid"}, nil
	}
	jobs, err := s.o.Master.Store().Jobs(ctx, store.Filter{})
	if err != nil {
		return nil, err
	}
	kept := map[string]any{}
	for _, j := range jobs {
		if x, ok := out[j.JID]; ok && mine(j) {
			kept[j.JID] = x
		}
	}
	return kept, nil
}

// forTenants says whether a command may be given by those who are of a tenant: what runs on its minions, and looking at jobs.
func forTenants(client, fun string) bool {
	return strings.HasPrefix(client, "local") || client == "runner" && (fun == "jobs.list_jobs" || fun == "jobs.list_job")
}
