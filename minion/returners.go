package minion

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/minion/policy"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/payload"
)

// returnerTimeout limits one returner, so that jobs do not pile up behind a database that hangs.
const returnerTimeout = 5 * time.Minute

// sendToReturners passes a return to returners, under the policy p of whoever chose them. Errors are only
// logged, as in Salt, because the master gets the return anyway.
func (m *Minion) sendToReturners(ctx context.Context, l *link, p *policy.Policy, names []string,
	ret map[string]any) {
	if len(names) == 0 {
		return
	}
	ret = payload.PlainMap(ordered.ToWire(ret).(map[string]any))
	var all []*modules.Module
	if m.o.Others != nil {
		all = m.o.Others("returners")
	}
	r := modules.NewRegistryOf(modules.Returner, all...)
	for _, s := range modules.SourcesOf(modules.KindReturners) {
		r.AddSource(s)
	}
	env := m.jobEnvironment(ctx, l, nil)
	env.Policy = p
	for _, name := range names {
		fun := name + ".returner"
		if _, err := r.Lookup(fun, env); err != nil {
			m.log.Error(fmt.Sprintf("Returner %s could not be loaded: %s", fun, err), "jid",
				ret["jid"])
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, returnerTimeout)
		res := r.Run(ctx, env, modules.Request{Fun: fun, Args: []any{maps.Clone(ret)}})
		cancel()
		if res.Err != nil {
			m.log.Error(fmt.Sprintf("The return failed for job %v: %s", ret["jid"], res.Err),
				"returner", name)
		}
	}
}

// splitReturners returns the returners named in comma-separated texts, without duplicates.
func splitReturners(texts ...string) []string {
	var names []string
	for _, text := range texts {
		for name := range strings.SplitSeq(text, ",") {
			if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// allowedReturners returns those names that the minion's policy lets others use.
func (m *Minion) allowedReturners(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		err := m.settings().policy.Refuse(modules.Returner, name+".returner")
		if err != nil {
			m.log.Warn("A returner is refused", "returner", name, "err", err)
		}
		return err != nil
	})
}

// callReturners passes a job's return to the returners named by the job and by the option return. The job's
// returner settings apply only to returners that the job may choose.
func (m *Minion) callReturners(j *job, load map[string]any) {
	asked := m.allowedReturners(splitReturners(j.Ret))
	own := splitReturners(m.settings().optional("return"))
	if len(asked)+len(own) == 0 {
		return
	}
	ret := maps.Clone(load)
	delete(ret, "cmd")
	delete(ret, "degraded")
	with := maps.Clone(ret)
	for _, k := range [...]string{"ret_config", "ret_kwargs"} {
		if v, ok := j.Raw[k]; ok {
			with[k] = v
		}
	}
	ctx := context.WithoutCancel(j.ctx)
	p := m.settings().policy
	m.sendToReturners(ctx, j.link, p, asked, with)
	for _, name := range own {
		switch {
		case slices.Contains(asked, name):
		case p.Refuse(modules.Returner, name+".returner") == nil:
			m.sendToReturners(ctx, j.link, p.Own(), []string{name}, with)
		default:
			m.sendToReturners(ctx, j.link, p.Own(), []string{name}, ret)
		}
	}
}
