package requests

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/cliargs"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// peerTimeout limits minion_publish, because the minion's own request ends after a minute.
const peerTimeout = 50 * time.Second

// PeerCall is a function, with arguments, that a minion asks others to run.
type PeerCall struct {
	Fun    string
	Args   []any
	Kwargs map[string]any
}

// PeerJob is a job that a minion asks to publish.
type PeerJob struct {
	// Asker is the minion that asks.
	Asker string
	// Calls is one function, or the functions of a compound command.
	Calls   []PeerCall
	TgtType string
	Tgt     any
	// Ret names returners on the minions that run the job.
	Ret string
	// Timeout is how long to wait before asking whether the job still runs; 0 means the master's.
	Timeout time.Duration
}

// PeerReturn is a minion's return for a PeerJob.
type PeerReturn struct {
	ID    string
	Value any
	// Out is the name of the outputter, or "".
	Out string
}

// PeerAttempt is a minion's request to run something elsewhere, and whether it was allowed.
type PeerAttempt struct {
	Minion, Kind string
	Funs         []string
	TgtType      string
	Tgt          any
	Allowed      bool
}

// Publisher publishes jobs for minions.
type Publisher interface {
	// PublishFor publishes a job to those targeted minions that the asker may see. The job id is empty if there
	// are none.
	PublishFor(ctx context.Context, j PeerJob) (jid string, minions []string, err error)
	// GatherFor is PublishFor, and returns the returns received until all have arrived or wait is over.
	GatherFor(ctx context.Context, j PeerJob,
		wait time.Duration) (jid string, returns []PeerReturn, err error)
	// Forbids returns an error if one of the functions is denied to all users.
	Forbids(funs ...string) error
	// Account writes a minion's request to the audit log.
	Account(a PeerAttempt)
}

// Targets resolves targets.
type Targets interface {
	// Match returns the accepted minions that a target matches.
	Match(tgtType string, tgt any) ([]string, error)
	// ByID returns an equivalent target that matches by id alone, as far as the master can tell.
	ByID(tgtType string, tgt any, delimiter string) (string, any, error)
}

// RunnerProgram runs runners in the embedding program.
type RunnerProgram interface {
	// RunFor runs a runner for a minion.
	RunFor(ctx context.Context, id, fun string, args []any, kwargs map[string]any) (any, error)
}

// PeerOptions configure Peers. Fields that may be nil say so.
type PeerOptions struct {
	// Rules define which minions, by regular expressions of ids, may publish what (Salt's peer).
	Rules map[string][]any
	// Runs define which minions may run which runners (Salt's peer_run).
	Runs map[string][]string
	// Auth evaluates rules.
	Auth      *eauth.Auth
	Publisher Publisher
	Targets   Targets
	// Runner runs runners; nil refuses them.
	Runner RunnerProgram
	Store  store.Store
	Log    *slog.Logger
}

// Peers lets minions publish jobs and run runners (Salt's peer and peer_run).
type Peers struct {
	PeerOptions
	rules []peerRule
	runs  *Access
}

// peerRule is one entry of PeerOptions.Rules.
type peerRule struct {
	id    *pyre.Regexp
	rules []any
}

// NewPeers validates and compiles the rules.
func NewPeers(o PeerOptions) (*Peers, error) {
	runs, err := CompileAccess("PeerRun", o.Runs)
	if err != nil {
		return nil, err
	}
	p := &Peers{PeerOptions: o, runs: runs}
	for id, rules := range o.Rules {
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
					return nil, fmt.Errorf("peer: a rule of %q has %d targets, not one", id,
						len(rule))
				}
			default:
				return nil, fmt.Errorf("peer: a rule of %q is %T, neither a pattern nor a map", id,
					rule)
			}
		}
		p.rules = append(p.rules, r)
	}
	return p, nil
}

// allowsJob reports whether a minion may publish a job. A rule for certain minions changes the job's target to
// the list of those that it matches here.
func (p *Peers) allowsJob(j *PeerJob) bool {
	var rules []any
	for _, r := range p.rules {
		if ok, err := r.id.FullMatch(j.Asker); ok && err == nil {
			rules = append(rules, r.rules...)
		}
	}
	allowed := func(rules []any, tgtType string, tgt any) bool {
		return !slices.ContainsFunc(j.Calls, func(c PeerCall) bool {
			args := slices.Clone(c.Args)
			if len(c.Kwargs) > 0 {
				kw := maps.Clone(c.Kwargs)
				kw["__kwarg__"] = true
				args = append(args, kw)
			}
			return !p.Auth.Allows(rules, c.Fun, args, tgtType, tgt)
		})
	}
	tgtType := cmp.Or(j.TgtType, target.TypeGlob)
	// guard: CVE-2025-22236 @peer master:TestCVE_2025_22236_MinionsDoNotPublish
	if len(rules) == 0 || p.probesPillar(tgtType, j.Tgt) {
		return false
	}
	if allowed(eauth.Everywhere(rules), tgtType, j.Tgt) {
		return true
	}
	tgtType, tgt, err := p.Targets.ByID(tgtType, j.Tgt, "")
	// guard: CVE-2022-22941,CVE-2025-22236 @peer master:TestCVE_2022_22941_RuleBoundsTheTarget,TestT23RandomTargets
	if err != nil || !allowed(rules, tgtType, tgt) {
		return false
	}
	j.TgtType, j.Tgt = tgtType, tgt
	return true
}

// probesPillar reports whether a target matches patterns of pillar values, with which a minion could guess
// those of others.
func (p *Peers) probesPillar(tgtType string, tgt any) bool {
	exact := ""
	switch strings.ToLower(tgtType) {
	case target.TypePillar, target.TypePillarPCRE:
		exact = target.TypePillarExact
	case target.TypeCompound:
		exact = target.TypeCompoundPillarExact
	default:
		return false
	}
	meant, err := p.Targets.Match(tgtType, tgt)
	if err != nil {
		return false // publishing will return the error
	}
	known, err := p.Targets.Match(exact, tgt)
	return err != nil || slices.ContainsFunc(meant,
		func(id string) bool { return !slices.Contains(known, id) })
}

// judgeJob returns the job that a minion asks to publish, and whether it may. It writes the audit log.
func (p *Peers) judgeJob(v protocol.Verified) (PeerJob, bool) {
	j, ok := p.readJob(v)
	if ok {
		ok = p.mayPublish(&j)
	}
	p.account(v, "local", ok)
	return j, ok
}

// account writes a minion's request to the audit log.
func (p *Peers) account(v protocol.Verified, kind string, ok bool) {
	load := v.Load()
	p.Publisher.Account(PeerAttempt{Minion: v.ID(), Kind: kind, Funs: fields.Functions(load["fun"]),
		TgtType: fields.Text(load, "tgt_type"), Tgt: load["tgt"], Allowed: ok})
}

// readJob parses a job. Its functions must not themselves publish.
func (p *Peers) readJob(v protocol.Verified) (PeerJob, bool) {
	load := v.Load()
	fun, isText := payload.Text(load["fun"])
	tgt, hasTgt := load["tgt"]
	_, hasArg := load["arg"]
	_, hasRet := load["ret"]
	if !isText || !hasTgt || !hasArg || !hasRet {
		return PeerJob{}, false
	}
	j := PeerJob{Asker: v.ID(), Tgt: tgt, TgtType: fields.Text(load, "tgt_type"),
		Ret: fields.Text(load, "ret")}
	args, _ := payload.List(load["arg"])
	if s, ok := payload.Text(load["arg"]); ok {
		args = []any{s}
	}
	names := strings.Split(fun, ",")
	if err := p.Publisher.Forbids(names...); err != nil {
		p.Log.Warn("Minion may not publish this", "minion", v.ID(), "fun", fields.Brief(fun),
			"err", err)
		return PeerJob{}, false
	}
	for _, f := range names {
		// guard: CVE-2013-4435 master:TestT3CompoundAndWrappedCalls
		if f == "" || strings.HasPrefix(f, "publish.") {
			p.Log.Warn("Minion may not publish this", "minion", v.ID(), "fun", fields.Brief(f))
			return PeerJob{}, false
		}
	}
	if len(names) == 1 {
		c := PeerCall{Fun: fun}
		c.Args, c.Kwargs = cliargs.Values(args, load["no_parse"])
		j.Calls = []PeerCall{c}
		return j, true
	}
	// Each item of arg holds one function's arguments, separated by spaces: "cat /proc/cpuinfo".
	for i, f := range names {
		c := PeerCall{Fun: f}
		if i < len(args) {
			if s, ok := payload.Text(args[i]); ok {
				for _, w := range strings.Fields(s) {
					c.Args = append(c.Args, w)
				}
			}
		}
		j.Calls = append(j.Calls, c)
	}
	return j, true
}

// mayPublish is allowsJob, and logs a refusal.
func (p *Peers) mayPublish(j *PeerJob) bool {
	if p.allowsJob(j) {
		return true
	}
	funs := make([]string, len(j.Calls))
	for i, c := range j.Calls {
		funs[i] = c.Fun
	}
	p.Log.Warn("Minion may not publish this", "minion", j.Asker,
		"fun", fields.Brief(strings.Join(funs, " ")))
	return false
}

// Publish answers minion_pub: it publishes a job for a minion, and returns its id and the expected minions.
// Every function of a compound command must be allowed, and none may itself publish.
func (p *Peers) Publish(ctx context.Context, v protocol.Verified) (any, error) {
	j, ok := p.judgeJob(v)
	if !ok {
		return map[string]any{}, nil
	}
	jid, minions, err := p.Publisher.PublishFor(ctx, j)
	if err != nil {
		return map[string]any{}, err
	}
	if jid == "" {
		return map[string]any{"jid": nil, "minions": []any{}}, nil
	}
	return map[string]any{"jid": jid, "minions": nested.Anys(minions)}, nil
}

// PublishAndWait answers minion_publish: it publishes a job for a minion and returns the returns received in
// time. Stock masters intend that and fail at it.
func (p *Peers) PublishAndWait(ctx context.Context, v protocol.Verified) (any, error) {
	j, ok := p.judgeJob(v)
	if !ok {
		return map[string]any{}, nil
	}
	for _, key := range []string{"tmo", "timeout"} {
		if n, ok := payload.Int(v.Load()[key]); ok && n > 0 {
			j.Timeout = min(time.Duration(n)*time.Second, peerTimeout)
		}
	}
	jid, returns, err := p.Publisher.GatherFor(ctx, j, peerTimeout)
	if err != nil {
		return map[string]any{}, err
	}
	out := make(map[string]any)
	full := fields.Text(v.Load(), "form") == "full"
	for _, r := range returns {
		out[r.ID] = r.Value
		if full {
			f := map[string]any{"ret": r.Value, "jid": jid}
			if r.Out != "" {
				f["out"] = r.Out
			}
			out[r.ID] = f
		}
	}
	return out, nil
}

// Returns answers pub_ret: it returns a job's returns to the minion that published it.
func (p *Peers) Returns(ctx context.Context, v protocol.Verified) (any, error) {
	jid, ok := payload.Text(v.Load()["jid"])
	if !ok || !protocol.ValidJID(jid) {
		return map[string]any{}, nil
	}
	job, err := p.Store.Job(ctx, jid)
	if err != nil || fields.Text(job.Load, "id") != v.ID() {
		return map[string]any{}, nil
	}
	returns, err := p.Store.Returns(ctx, jid)
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

// Run answers minion_runner: it runs a runner for a minion (Salt's peer_run).
func (p *Peers) Run(ctx context.Context, v protocol.Verified) (any, error) {
	fun, ok := payload.Text(v.Load()["fun"])
	args, isList := payload.List(v.Load()["arg"])
	may := ok && isList && p.Runner != nil && p.runs.Allows(v.ID(), fun)
	p.account(v, "runner", may)
	if !may {
		return map[string]any{}, nil
	}
	pos, kw := cliargs.Values(args, v.Load()["no_parse"])
	return p.Runner.RunFor(ctx, v.ID(), fun, pos, kw)
}
