package requests

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/internal/requesttest"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/target"
)

// fakeMinions are minions that a target matches by their id, or all for "*".
type fakeMinions struct {
	ids     []string
	asked   []string // types of targets
	borders map[string]string
}

func (f *fakeMinions) Match(tgtType string, tgt any) ([]string, error) {
	f.asked = append(f.asked, tgtType)
	if tgt == "bad" {
		return nil, errors.New("cannot match")
	}
	return slices.DeleteFunc(slices.Clone(f.ids), func(id string) bool { return !f.Means(tgtType, tgt, id) }), nil
}

func (f *fakeMinions) Neighbours(_ context.Context, id string, ids []string) ([]string, error) {
	if id == "lost" {
		return nil, errors.New("cannot read tenants")
	}
	return slices.DeleteFunc(ids, func(other string) bool { return f.borders[id] != f.borders[other] }), nil
}

func (f *fakeMinions) Means(_ string, tgt any, id string) bool { return tgt == "*" || tgt == id }

type object = map[string]any

// TestMine: minions fill, read and empty the mine.
func TestMine(t *testing.T) {
	c, err := cache.Open("")
	if err != nil {
		t.Fatal(err)
	}
	minions := &fakeMinions{ids: []string{"a", "b", "c"}, borders: map[string]string{"c": "tenant"}}
	access, err := CompileAccess("MineGet", map[string][]string{".*": {"."}})
	if err != nil {
		t.Fatal(err)
	}
	m := &Mine{Cache: c, Minions: minions, Access: access, Log: slog.New(slog.DiscardHandler)}
	r := requesttest.NewSender(t)
	limited := func(tgt string) object {
		return object{mineACL: true, mineData: "seen", "allow_tgt": tgt}
	}
	many := object{}
	for i := range maxMineFunctions + 1 {
		many[strconv.Itoa(i)] = int64(i)
	}
	for _, c := range []struct {
		name string
		do   func(context.Context, protocol.Verified) (any, error)
		id   string
		load object
		want any
		err  bool
	}{
		{"nothing to store", m.Store, "a", object{"data": "x"}, false, false},
		{"store", m.Store, "a", object{"data": object{"f": "1", "g": "2", "secret": "3", "h": limited("b")}}, true, false},
		{"store of another", m.Store, "b", object{"data": object{"f": "4"}}, true, false},
		{"store of a tenant", m.Store, "c", object{"data": object{"f": "5"}}, true, false},
		{"too much", m.Store, "c", object{"data": many}, true, false},
		{"one", m.Get, "b", object{"fun": "f", "tgt": "*"}, object{"a": "1", "b": "4"}, false},
		{"behind a border", m.Get, "c", object{"fun": "f", "tgt": "*"}, object{"c": "5"}, false},
		{"several", m.Get, "b", object{"fun": "f,g", "tgt": "*"}, object{"f": object{"a": "1", "b": "4"}, "g": object{"a": "2"}}, false},
		{"a list of one", m.Get, "b", object{"fun": []any{"g"}, "tgt": "*"}, object{"g": object{"a": "2"}}, false},
		{"denied", m.Get, "b", object{"fun": "secret", "tgt": "*"}, object{}, false},
		{"for this minion", m.Get, "b", object{"fun": "h", "tgt": "a"}, object{"a": "seen"}, false},
		{"for another minion", m.Get, "a", object{"fun": "h", "tgt": "a"}, object{}, false},
		{"no target", m.Get, "b", object{"fun": "f"}, object{}, false},
		{"a bad target", m.Get, "b", object{"fun": "f", "tgt": "bad"}, object{}, false},
		{"no store", m.Get, "lost", object{"fun": "f", "tgt": "*"}, object{}, true},
		{"no function to delete", m.Delete, "a", object{}, false, false},
		{"delete", m.Delete, "a", object{"fun": "f"}, true, false},
		{"deleted", m.Get, "b", object{"fun": "f", "tgt": "a"}, object{}, false},
		{"replace", m.Store, "b", object{"data": object{"g": "6"}, "clear": true}, true, false},
		{"replaced", m.Get, "b", object{"fun": "f,g", "tgt": "b"}, object{"g": object{"b": "6"}}, false},
		{"flush", m.Flush, "b", object{}, true, false},
		{"flush what is empty", m.Flush, "b", object{}, false, false},
	} {
		got, err := c.do(t.Context(), r.From(c.id, c.load))
		if d := cmp.Diff(c.want, got); d != "" || (err != nil) != c.err {
			t.Errorf("%s: %v %s", c.name, err, d)
		}
	}
	if mine := c.Mine("c"); len(mine) != 1 {
		t.Errorf("%d functions of c are kept: too many were not refused", len(mine))
	}
	ignoring := &Mine{Cache: c, Minions: minions, Log: m.Log, Ignore: true}
	if got, err := ignoring.Store(t.Context(), r.From("a", object{"data": object{"new": "x"}})); got != true || err != nil {
		t.Error(got, err)
	}
	if _, kept := c.Mine("a")["new"]; kept {
		t.Error("what is to be ignored is kept")
	}
}

// TestMineTargets: a target on pillar matches exactly, whatever kind is requested, so that patterns reveal nothing.
func TestMineTargets(t *testing.T) {
	minions := &fakeMinions{}
	m := &Mine{Minions: minions, Log: slog.New(slog.DiscardHandler)}
	r := requesttest.NewSender(t)
	for _, c := range []struct {
		field, asked, want string
	}{
		{"tgt_type", "", target.TypeGlob},
		{"tgt_type", "list", target.TypeList},
		{"expr_form", "grain", target.TypeGrain},
		{"tgt_type", "pillar", target.TypePillarExact},
		{"tgt_type", "Pillar_PCRE", target.TypePillarExact},
		{"tgt_type", "compound", target.TypeCompoundPillarExact},
	} {
		minions.asked = nil
		if _, err := m.Get(t.Context(), r.From("a", object{"fun": "f", "tgt": "*", c.field: c.asked})); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{c.want}, minions.asked); d != "" {
			t.Errorf("%s %q: %s", c.field, c.asked, d)
		}
	}
}
