package requests

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/internal/requesttest"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/target"
)

// fleet are minions with their grains and pillar, to which jobs are published: each returns its id.
type fleet struct {
	minions   []target.Subject // sorted by id
	forbidden string           // function
	jobs      []PeerJob
	waits     []time.Duration
	attempts  []PeerAttempt
}

func (f *fleet) add(id string, grains, pillar map[string]any) {
	f.minions = append(f.minions, target.Subject{ID: id,
		Grains: func() map[string]any { return grains }, Pillar: func() map[string]any { return pillar }})
}

func (f *fleet) Match(tgtType string, tgt any) (ids []string, err error) {
	for _, m := range f.minions {
		ok, err := target.Match(tgtType, tgt, "", m)
		if err != nil {
			return nil, err
		}
		if ok {
			ids = append(ids, m.ID)
		}
	}
	return ids, nil
}

func (f *fleet) ByID(tgtType string, tgt any, _ string) (string, any, error) {
	if target.OfIDs(tgtType) {
		return tgtType, tgt, nil
	}
	ids, err := f.Match(tgtType, tgt)
	return target.TypeList, nested.Anys(ids), err
}

func (f *fleet) Forbids(funs ...string) error {
	if slices.Contains(funs, f.forbidden) {
		return errors.New("forbidden to all")
	}
	return nil
}

func (f *fleet) Account(a PeerAttempt) { f.attempts = append(f.attempts, a) }

func (f *fleet) PublishFor(_ context.Context, j PeerJob) (jid string, minions []string, err error) {
	if j.Tgt == "breaks" {
		return "", nil, errors.New("cannot publish")
	}
	f.jobs = append(f.jobs, j)
	ids, err := f.Match(j.TgtType, j.Tgt)
	if len(ids) == 0 {
		return "", nil, err
	}
	return "20260101000000000000", ids, err
}

func (f *fleet) GatherFor(ctx context.Context, j PeerJob,
	wait time.Duration) (jid string, returns []PeerReturn, err error) {
	f.waits = append(f.waits, wait)
	jid, ids, err := f.PublishFor(ctx, j)
	for _, id := range ids {
		r := PeerReturn{ID: id, Value: "of " + id}
		if id == "web1" {
			r.Out = "txt"
		}
		returns = append(returns, r)
	}
	return jid, returns, err
}

func (f *fleet) RunFor(_ context.Context, id, fun string, args []any, kwargs map[string]any) (any, error) {
	return []any{id, fun, args, kwargs}, nil
}

// newPeers returns a Peers for a fleet of two.
func newPeers(t *testing.T, rules map[string][]any) (*Peers, *fleet) {
	t.Helper()
	f := &fleet{forbidden: "cmd.run"}
	f.add("a", object{}, object{})
	f.add("db1", object{"kind": "db1"}, object{"secret": "of-db1"})
	f.add("web1", object{"kind": "web1"}, object{"secret": "of-web1"})
	auth, err := eauth.New(eauth.Options{Match: f.Match})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPeers(PeerOptions{Rules: rules, Runs: map[string][]string{"a": {"ours.*"}}, Auth: auth, Publisher: f,
		Targets: f, Runner: f, Store: store.NewMemory(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return p, f
}

// TestNarrowPeer: a rule for some minions covers these only, and the arguments that its conditions allow. No caller
// finds pillar values by patterns.
func TestNarrowPeer(t *testing.T) {
	p, f := newPeers(t, map[string][]any{"a": {"test.ping", "cmd.run", object{"web* or G@kind:web9": []any{"test.arg",
		object{"test.echo": []any{object{"args": []any{"ok.*"}}}}}}}})
	r := requesttest.NewSender(t)
	for _, c := range []struct {
		fun, tgtType, tgt, arg string
		want                   []any // nil is refused
	}{
		{"test.ping", "glob", "*", "", []any{"a", "db1", "web1"}},
		{"test.arg", "glob", "web*", "x", []any{"web1"}},
		{"test.arg", "glob", "*", "x", nil},
		{"test.arg", "glob", "db1", "x", nil},
		{"test.arg", "grain", "kind:web1", "x", []any{"web1"}},
		{"test.arg", "grain", "kind:*", "x", nil},
		{"test.echo", "glob", "web1", "okay", []any{"web1"}},
		{"test.echo", "glob", "web1", "not ok", nil},
		{"test.ping,test.arg", "glob", "web1", "", []any{"web1"}},
		{"test.ping,test.arg", "glob", "*", "", nil},
		{"saltutil.find_job", "glob", "web1", "", nil},
		{"test.ping", "pillar", "secret:of-web1", "", []any{"web1"}},
		{"test.ping", "pillar", "secret:of-w*", "", nil},
		{"test.ping", "pillar_pcre", "secret:of-w.*", "", nil},
		{"test.ping", "compound", "I@secret:*web1", "", nil},
		{"test.ping", "compound", "I@secret:of-web1", "", []any{"web1"}},
		{"cmd.run", "glob", "web1", "", nil},
		{"test.ping,cmd.run", "glob", "web1", "", nil},
		{"publish.publish", "glob", "web1", "", nil},
		{"test.ping,", "glob", "web1", "", nil},
	} {
		got, err := p.Publish(t.Context(), r.From("a", object{"fun": c.fun, "arg": []any{c.arg}, "tgt": c.tgt,
			"tgt_type": c.tgtType, "ret": ""}))
		want := object{}
		if c.want != nil {
			want = object{"jid": "20260101000000000000", "minions": c.want}
		}
		if d := cmp.Diff(any(want), got); d != "" || err != nil {
			t.Errorf("%s %s %s %q: %v %s", c.fun, c.tgtType, c.tgt, c.arg, err, d)
		}
		if last := f.attempts[len(f.attempts)-1]; last.Allowed != (c.want != nil) || last.Minion != "a" || last.Kind != "local" {
			t.Errorf("%s %s %s: accounted as %+v", c.fun, c.tgtType, c.tgt, last)
		}
	}
	if got, err := p.Publish(t.Context(), r.From("db1", object{"fun": "test.ping", "arg": []any{}, "tgt": "*",
		"ret": ""})); err != nil || !cmp.Equal(got, any(object{})) {
		t.Error("a minion without a rule publishes:", got, err)
	}
}

// TestPeerJobs: a job is what the minion requested, under the minion's name. A request with a missing part is
// refused.
func TestPeerJobs(t *testing.T) {
	p, f := newPeers(t, map[string][]any{"a": {".*"}})
	r := requesttest.NewSender(t)
	whole := object{"fun": "test.arg", "arg": []any{"1", "k=2", "text"}, "tgt": "web1", "tgt_type": "glob", "ret": "redis",
		"tmo": int64(5)}
	if got, err := p.PublishAndWait(t.Context(), r.From("a", whole)); err != nil ||
		!cmp.Equal(got, any(object{"web1": "of web1"})) {
		t.Error(got, err)
	}
	want := PeerJob{Asker: "a", Tgt: "web1", TgtType: "glob", Ret: "redis", Timeout: 5 * time.Second,
		Calls: []PeerCall{{"test.arg", []any{int64(1), "text"}, object{"k": int64(2)}}}}
	if d := cmp.Diff(want, f.jobs[0]); d != "" || f.waits[0] != peerTimeout {
		t.Error(d, f.waits)
	}
	many := object{"fun": "test.ping,test.arg", "arg": []any{"", "x y"}, "tgt": "*", "ret": "", "form": "full",
		"timeout": int64(3600)}
	returns := object{}
	for _, id := range []string{"a", "db1", "web1"} {
		returns[id] = object{"ret": "of " + id, "jid": "20260101000000000000"}
	}
	returns["web1"].(object)["out"] = "txt"
	if got, err := p.PublishAndWait(t.Context(), r.From("a", many)); err != nil || cmp.Diff(any(returns), got) != "" {
		t.Error(cmp.Diff(any(returns), got), err)
	}
	want = PeerJob{Asker: "a", Tgt: "*", Timeout: peerTimeout,
		Calls: []PeerCall{{Fun: "test.ping"}, {Fun: "test.arg", Args: []any{"x", "y"}}}}
	if d := cmp.Diff(want, f.jobs[1]); d != "" {
		t.Error(d)
	}
	for _, missing := range []string{"fun", "arg", "tgt", "ret"} {
		load := object{}
		for k, v := range whole {
			if k != missing {
				load[k] = v
			}
		}
		for _, do := range []func(context.Context, protocol.Verified) (any, error){p.Publish, p.PublishAndWait} {
			if got, err := do(t.Context(), r.From("a", load)); err != nil || !cmp.Equal(got, any(object{})) {
				t.Errorf("without %s: %v %v", missing, got, err)
			}
		}
	}
	whole["tgt"] = "nobody"
	if got, err := p.PublishAndWait(t.Context(), r.From("a", whole)); err != nil || !cmp.Equal(got, any(object{})) {
		t.Error(got, err)
	}
	if got, err := p.Publish(t.Context(), r.From("a", whole)); err != nil ||
		!cmp.Equal(got, any(object{"jid": nil, "minions": []any{}})) {
		t.Error(got, err)
	}
	whole["tgt"] = "breaks"
	if got, err := p.Publish(t.Context(), r.From("a", whole)); err == nil {
		t.Error(got)
	}
}

// TestPeerRules: rules that cannot be understood are errors.
func TestPeerRules(t *testing.T) {
	for name, peer := range map[string]map[string][]any{"minions": {"(": {".*"}}, "functions": {"a": {"("}},
		"two": {"a": {object{"x": nil, "y": nil}}}, "number": {"a": {7}}} {
		if _, err := NewPeers(PeerOptions{Rules: peer}); err == nil || !strings.Contains(err.Error(), "peer: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, rules := range map[string]map[string][]string{"minions": {"(": {".*"}}, "functions": {"a": {"("}}} {
		if _, err := NewPeers(PeerOptions{Runs: rules}); err == nil || !strings.HasPrefix(err.Error(), "PeerRun: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPeerRunners: a minion runs the runners that its rules name, in full.
func TestPeerRunners(t *testing.T) {
	p, f := newPeers(t, nil)
	r := requesttest.NewSender(t)
	for _, c := range []struct {
		id, fun string
		may     bool
	}{{"a", "ours.do", true}, {"ab", "ours.do", false}, {"db1", "ours.do", false}, {"a", "other.do", false},
		{"a", "not.ours.do", false}} {
		got, err := p.Run(t.Context(), r.From(c.id, object{"fun": c.fun, "arg": []any{"x", "k=1"}}))
		want := any(object{})
		if c.may {
			want = []any{c.id, c.fun, []any{"x"}, object{"k": int64(1)}}
		}
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s %s: %v %s", c.id, c.fun, err, d)
		}
		if last := f.attempts[len(f.attempts)-1]; last.Allowed != c.may || last.Kind != "runner" {
			t.Errorf("%s %s: accounted as %+v", c.id, c.fun, last)
		}
	}
	p.Runner = nil
	if got, err := p.Run(t.Context(), r.From("a", object{"fun": "ours.do", "arg": []any{}})); err != nil ||
		!cmp.Equal(got, any(object{})) {
		t.Error("no program:", got, err)
	}
}

// TestReturnsForTheAsker: the returns of a job are for the minion that published it.
func TestReturnsForTheAsker(t *testing.T) {
	p, _ := newPeers(t, nil)
	const jid = "20260101000000000000"
	if err := p.Store.SaveJob(t.Context(), store.Job{JID: jid, Minions: []string{"b", "c"}, Created: time.Now(),
		Load: object{"id": "a"}}); err != nil {
		t.Fatal(err)
	}
	for id, load := range map[string]object{"b": {"return": "x"}, "c": {"return": "y", "out": "txt"}} {
		if _, err := p.Store.SaveReturn(t.Context(), store.Return{JID: jid, ID: id, Load: load}); err != nil {
			t.Fatal(err)
		}
	}
	r := requesttest.NewSender(t)
	all := object{"b": object{"ret": "x"}, "c": object{"ret": "y", "out": "txt"}}
	for _, c := range []struct {
		id   string
		jid  any
		want object
	}{{"a", jid, all}, {"b", jid, object{}}, {"a", "20260101000000000001", object{}}, {"a", "../x", object{}},
		{"a", int64(1), object{}}} {
		got, err := p.Returns(t.Context(), r.From(c.id, object{"jid": c.jid}))
		if d := cmp.Diff(any(c.want), got); d != "" || err != nil {
			t.Errorf("%s %v: %v %s", c.id, c.jid, err, d)
		}
	}
}

// TestRevocation: a minion deletes its own key, with what is remembered of it unless it wants that kept.
func TestRevocation(t *testing.T) {
	ks := requesttest.Keys(t)
	c, err := cache.Open("")
	if err != nil {
		t.Fatal(err)
	}
	v := &Revocation{Keys: ks, Cache: c}
	r := requesttest.NewSender(t)
	for _, x := range []struct {
		off, keep, kept bool
	}{{off: true, kept: true}, {keep: true, kept: true}, {}} {
		for _, id := range []string{"a", "b"} {
			if err := ks.Preseed(id, requesttest.Key().Public().Text()); err != nil {
				t.Fatal(err)
			}
			if err := c.Store(id, cache.Data{Grains: object{"x": "y"}}.Ordered()); err != nil {
				t.Fatal(err)
			}
		}
		v.Off = x.off
		if got, err := v.Revoke(t.Context(), r.From("a", object{"preserve_minion_cache": x.keep})); err != nil || got == x.off {
			t.Errorf("%+v: %v %v", x, got, err)
		}
		if _, err := ks.Accepted("a"); (err == nil) != x.off {
			t.Errorf("%+v: %v", x, err)
		}
		if _, kept := c.Data("a"); kept != x.kept {
			t.Errorf("%+v: remembered: %v", x, kept)
		}
		if _, err := ks.Accepted("b"); err != nil {
			t.Errorf("%+v: another minion's key: %v", x, err)
		}
	}
}
