package master

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/cliargs"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/pyre"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// peerTimeout bounds minion_publish: the minion's own request ends after a minute.
const peerTimeout = 50 * time.Second

// peerRule is one entry of Options.Peer.
type peerRule struct {
	id    *pyre.Regexp
	rules []any
}

// compilePeer checks and compiles rules.
func (m *Master) compilePeer(peer map[string][]any) ([]peerRule, error) {
	var err error
	if m.rules, err = eauth.New(eauth.Options{Match: m.Match}); err != nil {
		return nil, err
	}
	var out []peerRule
	for id, rules := range peer {
		r := peerRule{rules: rules}
		if r.id, err = pyre.Compile(id, 0); err != nil {
			return nil, fmt.Errorf("peer: minion pattern %q: %w", id, err)
		}
		for _, rule := range rules {
			switch rule := rule.(type) {
			case string:
				if _, err := pyre.Compile(rule, 0); err != nil {
					return nil, fmt.Errorf("peer: function pattern %q: %w", rule, err)
				}
			case map[string]any:
				if len(rule) != 1 {
					return nil, fmt.Errorf("peer: a rule of %q has %d targets, not one", id, len(rule))
				}
			default:
				return nil, fmt.Errorf("peer: a rule of %q is %T, neither a pattern nor a map", id, rule)
			}
		}
		out = append(out, r)
	}
	return out, nil
}

// allowsPeer reports whether a minion may publish a job. A rule for some minions binds the job to those that its target means here.
func (m *Master) allowsPeer(id string, j *Job) bool {
	var rules []any
	for _, r := range m.peer {
		if ok, err := r.id.FullMatch(id); ok && err == nil {
			rules = append(rules, r.rules...)
		}
	}
	calls := j.Steps
	if len(calls) == 0 {
		calls = []Step{{Fun: j.Fun, Args: j.Args, Kwargs: j.Kwargs}}
	}
	allowed := func(rules []any, tgtType string, tgt any) bool {
		return !slices.ContainsFunc(calls, func(c Step) bool {
			args := slices.Clone(c.Args)
			if len(c.Kwargs) > 0 {
				kw := maps.Clone(c.Kwargs)
				kw["__kwarg__"] = true
				args = append(args, kw)
			}
			return !m.rules.Allows(rules, c.Fun, args, tgtType, tgt)
		})
	}
	tgtType := cmp.Or(j.TgtType, target.TypeGlob)
	// guard: CVE-2025-22236 @peer TestCVE_2025_22236_MinionsDoNotPublish
	if len(rules) == 0 || m.probes(tgtType, j.Tgt) {
		return false
	}
	if allowed(eauth.Everywhere(rules), tgtType, j.Tgt) {
		return true
	}
	tgtType, tgt, err := m.byID(tgtType, j.Tgt, "")
	// guard: CVE-2022-22941,CVE-2025-22236 @peer TestCVE_2022_22941_RuleBoundsTheTarget
	if err != nil || !allowed(rules, tgtType, tgt) {
		return false
	}
	j.TgtType, j.Tgt = tgtType, tgt
	return true
}

// probes reports whether a target finds minions by patterns of pillar values, by which one minion could guess those of another.
func (m *Master) probes(tgtType string, tgt any) bool {
	exact := ""
	switch strings.ToLower(tgtType) {
	case target.TypePillar, target.TypePillarPCRE:
		exact = target.TypePillarExact
	case target.TypeCompound:
		exact = target.TypeCompoundPillarExact
	default:
		return false
	}
	meant, _, err := m.expected(tgtType, tgt, "")
	if err != nil {
		return false // which the publish will say
	}
	known, _, err := m.expected(exact, tgt, "")
	return err != nil || slices.ContainsFunc(meant, func(id string) bool { return !slices.Contains(known, id) })
}

// peerJob judges what a minion wants to publish (Salt's peer option). Every function of a compound command must be allowed,
// and none may publish in turn.
func (m *Master) peerJob(v protocol.Verified) (Job, bool) {
	j, ok := m.readPeerJob(v)
	m.auditPeer(v, "local", ok)
	return j, ok
}

// auditPeer accounts for what a minion asks to be run elsewhere.
func (m *Master) auditPeer(v protocol.Verified, kind string, ok bool) {
	e := AuditEntry{Via: "peer", User: v.ID(), Kind: kind, Fun: fields.Functions(v.Load()["fun"]), TgtType: fields.Text(v.Load(), "tgt_type"), Tgt: v.Load()["tgt"], Outcome: AuditDenied}
	if ok {
		e.Outcome = AuditAllowed
	}
	m.Audit(e)
}

// readPeerJob is peerJob without account.
func (m *Master) readPeerJob(v protocol.Verified) (Job, bool) {
	load := v.Load()
	fun, isText := payload.Text(load["fun"])
	tgt, hasTgt := load["tgt"]
	_, hasArg := load["arg"]
	_, hasRet := load["ret"]
	if !isText || !hasTgt || !hasArg || !hasRet {
		return Job{}, false
	}
	j := Job{Tgt: tgt, TgtType: fields.Text(load, "tgt_type"), Ret: fields.Text(load, "ret"), Asker: v.ID(), User: "root"}
	args, _ := payload.List(load["arg"])
	if s, ok := payload.Text(load["arg"]); ok {
		args = []any{s}
	}
	names := strings.Split(fun, ",")
	if m.Denied(j.User, names...) {
		m.log.Warn("minion may not publish this", "minion", v.ID(), "fun", fields.Brief(fun), "err", ErrDenied)
		return Job{}, false
	}
	for _, f := range names {
		// guard: CVE-2013-4435 TestT3CompoundAndWrappedCalls
		if f == "" || strings.HasPrefix(f, "publish.") {
			m.log.Warn("minion may not publish this", "minion", v.ID(), "fun", fields.Brief(f))
			return Job{}, false
		}
	}
	if len(names) == 1 {
		j.Fun = fun
		j.Args, j.Kwargs = cliargs.Values(args, load["no_parse"])
		return m.peerMay(j)
	}
	// Each member of arg is the arguments of one function, separated by spaces: "cat /proc/cpuinfo".
	for i, f := range names {
		c := Step{Fun: f}
		if i < len(args) {
			if s, ok := payload.Text(args[i]); ok {
				for _, w := range strings.Fields(s) {
					c.Args = append(c.Args, w)
				}
			}
		}
		j.Steps = append(j.Steps, c)
	}
	return m.peerMay(j)
}

func (m *Master) peerMay(j Job) (Job, bool) {
	fun := j.Fun
	for _, c := range j.Steps {
		fun += c.Fun + " "
	}
	if !m.allowsPeer(j.Asker, &j) {
		m.log.Warn("minion may not publish this", "minion", j.Asker, "fun", fields.Brief(strings.TrimSpace(fun)))
		return Job{}, false
	}
	return j, true
}

// reqMinionPub publishes a job for a minion and answers with its id and the minions expected.
func (m *Master) reqMinionPub(ctx context.Context, v protocol.Verified) (any, error) {
	j, ok := m.peerJob(v)
	if !ok {
		return map[string]any{}, nil
	}
	own, _, err := m.tenantOf(ctx, v.ID())
	if err != nil {
		return map[string]any{}, err
	}
	j.border = &border{tenant: own}
	p, err := m.Publish(ctx, j)
	if isNoMinions(err) {
		return map[string]any{"jid": nil, "minions": []any{}}, nil
	}
	if err != nil {
		return map[string]any{}, err
	}
	return map[string]any{"jid": p.JID, "minions": nested.Anys(p.Minions)}, nil
}

// reqMinionPublish publishes a job for a minion and answers with what came back in time. Stock masters mean this and fail.
func (m *Master) reqMinionPublish(ctx context.Context, v protocol.Verified) (any, error) {
	j, ok := m.peerJob(v)
	if !ok {
		return map[string]any{}, nil
	}
	own, _, err := m.tenantOf(ctx, v.ID())
	if err != nil {
		return map[string]any{}, err
	}
	j.border = &border{tenant: own}
	for _, key := range []string{"tmo", "timeout"} {
		if n, ok := payload.Int(v.Load()[key]); ok && n > 0 {
			j.Timeout = min(time.Duration(n)*time.Second, peerTimeout)
		}
	}
	r, err := m.Submit(ctx, j)
	if isNoMinions(err) {
		return map[string]any{}, nil
	}
	if err != nil {
		return map[string]any{}, err
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	out := make(map[string]any)
	full := fields.Text(v.Load(), "form") == "full"
	for {
		res, err := r.Next(ctx)
		if err != nil {
			return out, nil // the end, or the time for it
		}
		if res.Status != Returned {
			continue
		}
		out[res.ID] = res.Ordered
		if full {
			f := map[string]any{"ret": res.Ordered, "jid": r.JID}
			if res.Out != "" {
				f["out"] = res.Out
			}
			out[res.ID] = f
		}
	}
}

// reqPubRet answers with the returns of a job, to the minion that published it.
func (m *Master) reqPubRet(ctx context.Context, v protocol.Verified) (any, error) {
	jid, ok := payload.Text(v.Load()["jid"])
	if !ok || !protocol.ValidJID(jid) {
		return map[string]any{}, nil
	}
	job, err := m.store.Job(ctx, jid)
	if err != nil || fields.Text(job.Load, "id") != v.ID() {
		return map[string]any{}, nil
	}
	returns, err := m.store.Returns(ctx, jid)
	if err != nil {
		return map[string]any{}, err
	}
	out := make(map[string]any, len(returns))
	for _, r := range returns {
		one := map[string]any{"ret": r.Load["return"]}
		if o, ok := r.Load["out"]; ok {
			one["out"] = o
		}
		out[r.ID] = one
	}
	return out, nil
}

// reqMinionRunner runs a function of the embedding program for a minion (Salt's peer_run).
func (m *Master) reqMinionRunner(ctx context.Context, v protocol.Verified) (any, error) {
	fun, ok := payload.Text(v.Load()["fun"])
	args, isList := payload.List(v.Load()["arg"])
	may := ok && isList && m.opts.Runner != nil && m.peerRun.allows(v.ID(), fun)
	m.auditPeer(v, "runner", may)
	if !may {
		return map[string]any{}, nil
	}
	pos, kw := cliargs.Values(args, v.Load()["no_parse"])
	return m.opts.Runner(ctx, v.ID(), fun, pos, kw)
}

// reqRevokeAuth deletes the minion's own key.
func (m *Master) reqRevokeAuth(_ context.Context, v protocol.Verified) (any, error) {
	if m.opts.NoKeyRevoke {
		return false, nil
	}
	if err := m.keys.Delete(v.ID()); err != nil {
		return false, err
	}
	if !pytext.Truth(v.Load()["preserve_minion_cache"]) {
		if err := m.cache.Delete(v.ID()); err != nil {
			return true, errors.Join(errors.New("key is deleted"), err)
		}
	}
	return true, nil
}
