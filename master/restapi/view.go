package restapi

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/brine-salt/brine/master/restapi/internal/exchange"
	"github.com/brine-salt/brine/master/restapi/internal/scope"

	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/store"
)

// tenantOf returns the tenant that a caller belongs to, "" if the caller sees the whole master. A caller whose tenant
// cannot be determined is refused rather than shown everything.
func (s *Server) tenantOf(t eauth.Token) (string, error) {
	name, err := s.o.Auth.Tenant(t)
	if err != nil {
		s.o.Log.Warn("Request refused", "user", t.Name, "eauth", t.EAuth, "err", err)
		return "", exchange.ErrRefused
	}
	return name, nil
}

// viewOf returns the part of the master that a caller may see and use.
func (s *Server) viewOf(t eauth.Token) (scope.View, error) {
	name, err := s.tenantOf(t)
	switch {
	case err != nil:
		return nil, err
	case name == "":
		return scope.Whole{Master: s.o.Master}, nil
	}
	return s.o.Master.Tenant(name)
}

// operator is session for requests that concern more than one tenant, such as hooks and counters: callers that belong
// to a tenant are refused.
func (s *Server) operator(r *http.Request) (eauth.Token, error) {
	t, err := s.session(r)
	if err != nil {
		return t, err
	}
	name, err := s.tenantOf(t)
	if err == nil && name != "" {
		err = exchange.ErrRefused
	}
	return t, err
}

// ownJobs removes from the answer of jobs.list_jobs or jobs.list_job what a tenant may not see. A job is shown if all
// of its minions belong to the tenant. A job of others gets the answer for a job that does not exist.
func (s *Server) ownJobs(ctx context.Context, t eauth.Token, fun string, v any) (any, error) {
	seen, err := s.viewOf(t)
	if err != nil {
		return nil, err
	}
	out, ok := v.(map[string]any)
	if !ok {
		return map[string]any{}, nil
	}
	list, err := seen.Announced(ctx)
	if err != nil {
		return nil, err
	}
	own := make(map[string]bool, len(list))
	for _, x := range list {
		own[x.ID] = true
	}
	mine := func(j store.Job) bool {
		return len(j.Minions) > 0 &&
			!slices.ContainsFunc(j.Minions, func(id string) bool { return !own[id] })
	}
	if fun == "jobs.list_job" {
		jid, _ := out["jid"].(string)
		if j, err := s.o.Master.Store().Job(ctx, jid); err == nil && mine(j) {
			return out, nil
		}
		return map[string]any{"jid": jid, "Result": map[string]any{}, "StartTime": out["StartTime"],
			"Error": "Cannot contact returner or no job with this jid"}, nil
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

// forTenants reports whether callers that belong to a tenant may use a client and function: everything that runs on
// their own minions, and the two functions that list jobs.
func forTenants(client, fun string) bool {
	return strings.HasPrefix(client, "local") || client == "runner" &&
		(fun == "jobs.list_jobs" || fun == "jobs.list_job")
}
