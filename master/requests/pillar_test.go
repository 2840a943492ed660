package requests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/fileserver"
	"github.com/brine-salt/brine/master/internal/requesttest"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
)

// program is an embedding program that builds pillars and top files.
type program struct {
	made  int64
	asked pillar.Request
	data  object
}

func (p *program) MakePillar(_ context.Context, r pillar.Request) (map[string]any, error) {
	p.made, p.asked = p.made+1, r
	switch r.ID {
	case "fails":
		return nil, errors.New("secret reason")
	case "panics":
		panic("oops")
	}
	out := object{"made": p.made, "given": len(r.Override)}
	for k, v := range p.data {
		out[k] = v
	}
	return out, nil
}

func (p *program) MakeTops(_ context.Context, id string, opts map[string]any) (map[string]any, error) {
	switch id {
	case "fails":
		return nil, errors.New("secret reason")
	case "none":
		return nil, nil
	}
	return object{"base": []any{id, opts["k"]}}, nil
}

// fakeTenants are the tenants of some minions; minion "lost" is of a store that does not answer.
type fakeTenants map[string]string

func (f fakeTenants) TenantOf(_ context.Context, id string) (string, error) {
	if id == "lost" {
		return "", errors.New("cannot read tenants")
	}
	return f[id], nil
}

func (f fakeTenants) KnownTenant(ctx context.Context, id string) (string, error) {
	return f.TenantOf(ctx, id)
}

// heardOf holds the grains that minions sent with their pillar requests.
type heardOf map[string]map[string]any

func (h heardOf) AsksPillar(id string, grains map[string]any) { h[id] = grains }

func newPillar(t *testing.T) (*Pillar, *program, heardOf) {
	t.Helper()
	c, err := cache.Open("")
	if err != nil {
		t.Fatal(err)
	}
	own, heard := &program{}, heardOf{}
	return &Pillar{Key: requesttest.Key(), Program: own, Tenants: fakeTenants{"b": "tenant"}, Clones: heard, Cache: c,
		Events: events.New(nil), Log: slog.New(slog.DiscardHandler)}, own, heard
}

// TestPillar: a minion gets its own pillar merged with the request's overrides. The pillar without them is stored
// with the grains.
func TestPillar(t *testing.T) {
	p, own, heard := newPillar(t)
	own.data = object{"n": object{"b": int64(2)}}
	sub := p.Events.Subscribe(events.SubscribeOptions{})
	defer sub.Close()
	r := requesttest.NewSender(t)
	v, e, nonce := r.Pack("b", object{"cmd": "_pillar", "grains": object{"os": "Debian", "id": "forged"},
		"pillar_override": object{"n": object{"a": int64(9)}}, "saltenv": "base", "pillarenv": "dev",
		"extra_minion_data": object{"k": "v"}})
	minion := requesttest.Key()
	got, err := protocol.OpenPillar(p.Reply(t.Context(), v, e, minion.Public()), minion, p.Key.Public(), "", "", nonce)
	want := object{"n": object{"a": int64(9), "b": int64(2)}, "made": int64(1), "given": int64(1)}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Fatal(d, err)
	}
	q := own.asked
	grains := object{"os": "Debian", "id": "b"}
	if d := cmp.Diff(grains, q.Grains); d != "" {
		t.Error(d)
	}
	if q.ID != "b" || q.Tenant != "tenant" || q.Saltenv != "base" || q.Pillarenv != "dev" || q.Extra["k"] != "v" {
		t.Errorf("the program was asked %+v", q)
	}
	if d := cmp.Diff(grains, heard["b"]); d != "" {
		t.Error("the search for clones:", d)
	}
	mine := cache.Data{Grains: grains, Pillar: object{"n": object{"b": int64(2)}, "made": int64(1), "given": int64(1)}}
	if d, ok := p.Cache.Data("b"); !ok || cmp.Diff(mine.Grains, d.Grains) != "" || cmp.Diff(mine.Pillar, d.Pillar) != "" {
		t.Error(ok, cmp.Diff(mine.Grains, d.Grains), cmp.Diff(mine.Pillar, d.Pillar))
	}
	if e, err := sub.Next(t.Context()); err != nil || e.Tag != "minion/refresh/b" {
		t.Error(e, err)
	}
	e.EncAlgo = "XOR"
	if got := p.Reply(t.Context(), v, e, minion.Public()); got != "Some exception handling minion payload" {
		t.Error(got)
	}
}

// TestPillarThatFails: a minion is not told why its pillar could not be compiled, and gets no part of it.
func TestPillarThatFails(t *testing.T) {
	p, own, _ := newPillar(t)
	r := requesttest.NewSender(t)
	for _, id := range []string{"fails", "panics", "lost"} {
		got := plainPillar(p.fetchPillar(t.Context(), r.From(id, object{"grains": object{}})))
		list, _ := got["_errors"].([]any)
		if len(list) != 1 || len(got) != 1 || strings.Contains(fmt.Sprint(list), "secret") {
			t.Errorf("%s: %v", id, got)
		}
	}
	own.made = 0
	if got := p.fetchPillar(t.Context(), r.From("a", object{"grains": nil})); len(got) != 0 || own.made != 0 {
		t.Error("a pillar without grains:", got)
	}
	if _, err := p.Make(t.Context(), pillar.Request{ID: "fails"}); err == nil {
		t.Error("a program is not told that its pillar failed")
	}
}

// TestGrainsKeepTheirOrder: the master remembers grains in the order in which the minion sent them, and pillar files see
// them so.
func TestGrainsKeepTheirOrder(t *testing.T) {
	p, own, _ := newPillar(t)
	faces := payload.OrderedMap{{Key: "lo", Value: "::"}, {Key: "eth1", Value: "b"}, {Key: "eth0", Value: "a"}}
	grains := payload.OrderedMap{{Key: "id", Value: "forged"}, {Key: "faces", Value: faces}, {Key: "cpus", Value: int64(2)}, {Key: "id", Value: "victim"}}
	p.fetchPillar(t.Context(), requesttest.NewSender(t).From("a", object{"grains": grains}))
	want := payload.OrderedMap{{Key: "id", Value: "a"}, {Key: "faces", Value: faces}, {Key: "cpus", Value: int64(2)}, {Key: "id", Value: "a"}}
	if d, _ := p.Cache.Data("a"); d.Grains["id"] != "a" {
		t.Errorf("the grain id is %v", d.Grains["id"])
	}
	if d, _ := p.Cache.Ordered("a"); cmp.Diff(want, d.Grains) != "" {
		t.Error(cmp.Diff(want, d.Grains))
	}
	if d := cmp.Diff(want, own.asked.GrainsOrder); d != "" {
		t.Error(d)
	}
}

// keysOf returns the keys of a map in their order.
func keysOf(m payload.OrderedMap) (out []any) {
	for _, p := range m {
		out = append(out, p.Key)
	}
	return out
}

// TestPillarIsForgotten: what is not to be remembered is not.
func TestPillarIsForgotten(t *testing.T) {
	p, _, _ := newPillar(t)
	r := requesttest.NewSender(t)
	p.ForgetPillar = true
	p.fetchPillar(t.Context(), r.From("a", object{"grains": object{"os": "Debian"}}))
	if d, ok := p.Cache.Data("a"); !ok || d.Grains["os"] != "Debian" || len(d.Pillar) != 0 {
		t.Error(d, ok)
	}
	p.Forget = true
	p.fetchPillar(t.Context(), r.From("b", object{"grains": object{"os": "Debian"}}))
	if d, ok := p.Cache.Data("b"); ok {
		t.Error(d)
	}
}

// TestKeptPillar: a pillar is given again until a minion asks for a clean one; what came with a command is no part of
// it.
func TestKeptPillar(t *testing.T) {
	p, _, _ := newPillar(t)
	var err error
	if p.Kept, err = pillar.OpenCache("", time.Hour, p.Log); err != nil {
		t.Fatal(err)
	}
	defer p.Kept.Close()
	r := requesttest.NewSender(t)
	for i, c := range []struct {
		extra object
		made  int64
	}{{nil, 1}, {object{"grains": object{"os": "Debian"}}, 1}, {object{"pillar_override": object{"made": int64(9)}}, 9},
		{object{"clean_cache": false}, 1}, {object{"clean_cache": true}, 2}, {nil, 2}, {object{"pillarenv": "dev"}, 3},
		{nil, 2}, {object{"pillarenv": "dev"}, 3}} {
		load := object{"grains": object{}}
		for k, v := range c.extra {
			load[k] = v
		}
		got := plainPillar(p.fetchPillar(t.Context(), r.From("a", load)))
		if d := cmp.Diff(object{"made": c.made, "given": int64(0)}, got); d != "" {
			t.Errorf("%d: %s", i, d)
		}
	}
	if got, err := p.Make(t.Context(), pillar.Request{ID: "a"}); err != nil || got["made"] != int64(4) {
		t.Error("a program's question was answered with what is kept:", got, err)
	}
	p.Drop("a")
	if got, ok := p.Kept.Shown("a", "dev"); ok {
		t.Error("kept after it was dropped:", got)
	}
}

// TestConfig: a minion gets Salt's defaults and the options that are set, but no directories.
func TestConfig(t *testing.T) {
	s, err := fileserver.New(fileserver.Options{HashType: "md5", BufferSize: 4,
		Backends: []fileserver.Backend{fileserver.NewFS("base", fstest.MapFS{"f": {}})}})
	if err != nil {
		t.Fatal(err)
	}
	c := &Config{Server: s, Nodegroups: object{"g": "a*"}, Set: object{"failhard": true, "file_roots": "x"}}
	r := requesttest.NewSender(t)
	envs := object{"file_roots": object{"base": []any{}}, "top_file_merging_strategy": "merge", "env_order": []any{},
		"default_top": "base"}
	all := object{"failhard": true, "renderer": "jinja|yaml", "state_top": "top.sls", "state_top_saltenv": nil,
		"state_auto_order": true, "state_events": false, "state_aggregate": false, "jinja_env": object{},
		"jinja_sls_env": object{}, "jinja_lstrip_blocks": false, "jinja_trim_blocks": false,
		"nodegroups": object{"g": "a*"}}
	for k, v := range envs {
		all[k] = v
	}
	for _, x := range []struct {
		load object
		want object
	}{{object{}, all}, {object{"env_only": true}, envs}} {
		if got, err := c.Options(t.Context(), r.From("m", x.load)); err != nil || cmp.Diff(any(x.want), got) != "" {
			t.Errorf("%v: %v %s", x.load, err, cmp.Diff(any(x.want), got))
		}
	}
	opts := object{"opts": object{"k": "v"}}
	if got, err := c.TopFiles(t.Context(), r.From("m", opts)); err != nil || !cmp.Equal(got, any(object{})) {
		t.Error("without a program:", got, err)
	}
	c.Tops = &program{}
	if got, err := c.TopFiles(t.Context(), r.From("m", opts)); err != nil ||
		!cmp.Equal(got, any(object{"base": []any{"m", "v"}})) {
		t.Error(got, err)
	}
	if got, err := c.TopFiles(t.Context(), r.From("none", opts)); err != nil || !cmp.Equal(got, any(object{})) {
		t.Error("nothing:", got, err)
	}
	if _, err := c.TopFiles(t.Context(), r.From("fails", opts)); err == nil {
		t.Error("no error")
	}
}
