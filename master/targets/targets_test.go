package targets

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/internal/requesttest"
	"github.com/brine-salt/brine/protocol/target"
)

// newFinder returns a Finder of three minions with accepted keys, of which two have sent their grains.
func newFinder(t *testing.T) *Finder {
	t.Helper()
	told := func(id, role string) *cache.Data {
		return &cache.Data{Grains: map[string]any{"id": id, "role": role, "ipv4": []any{"192.0.2.1"}},
			Pillar: map[string]any{"secret": role}}
	}
	ks, c := requesttest.Told(t, map[string]*cache.Data{"db1": told("db1", "db"),
		"web1": told("web1", "web"), "new": nil})
	return &Finder{Keys: ks, Cache: c, Nodegroups: map[string]any{"all": "web* or db*", "web": "web*"}}
}

// TestExpected: the minions that a target matches, and the ids of a list that are unknown. A minion without grains
// matches addresses only.
func TestExpected(t *testing.T) {
	f := newFinder(t)
	for _, c := range []struct {
		kind         string
		tgt          any
		ids, missing []string
		bad          bool
	}{
		{"glob", "*", []string{"db1", "new", "web1"}, nil, false},
		{"grain", "role:w*", []string{"web1"}, nil, false},
		{"pillar", "secret:db", []string{"db1"}, nil, false},
		{"ipcidr", "192.0.2.0/24", []string{"db1", "new", "web1"}, nil, false},
		{"list", "web1, gone,web1,,db1", []string{"web1", "db1"}, []string{"gone"}, false},
		{"list", []any{"db1", "gone"}, []string{"db1"}, []string{"gone"}, false},
		{"list", []any{int64(1)}, nil, nil, true},
		{"list", 1, nil, nil, true},
		{"pcre", "(", nil, nil, true},
	} {
		ids, missing, err := f.Expected(c.kind, c.tgt, "")
		if d := cmp.Diff(c.ids, ids) + cmp.Diff(c.missing, missing); d != "" || (err != nil) != c.bad {
			t.Errorf("%s %v: %v %s", c.kind, c.tgt, err, d)
		}
	}
	if !f.Means("grain", "role:db", "db1") || f.Means("grain", "role:db", "web1") || f.Means("grain", "role:db", "new") {
		t.Error("who is meant")
	}
}

// TestOnWire: node groups are expanded, lists become lists of ids, and a user who may reach only some minions gets
// a target of ids.
func TestOnWire(t *testing.T) {
	f := newFinder(t)
	for _, c := range []struct {
		kind     string
		tgt      any
		wantKind string
		want     any
	}{
		{"", "*", "glob", "*"},
		{"", []string{"a", "b"}, "list", []any{"a", "b"}},
		{"list", "a, b,", "list", []any{"a", "b"}},
		{"nodegroup", "all", "compound", "web* or db*"},
		{"compound", "N@web and G@x:y", "compound", "web* and G@x:y"},
		{"grain", "x:y", "grain", "x:y"},
	} {
		kind, tgt, err := f.OnWire(c.kind, c.tgt)
		if d := cmp.Diff(c.want, tgt); d != "" || kind != c.wantKind || err != nil {
			t.Errorf("%s %v: %s %v %s", c.kind, c.tgt, kind, err, d)
		}
	}
	for _, bad := range []any{"none", 1} {
		if _, _, err := f.OnWire(target.TypeNodegroup, bad); err == nil {
			t.Errorf("node group %v", bad)
		}
	}
	if kind, tgt, err := f.ByID("glob", "web*", ""); kind != "glob" || tgt != "web*" || err != nil {
		t.Error(kind, tgt, err)
	}
	if kind, tgt, err := f.ByID("grain", "role:w*", ""); kind != "list" || !cmp.Equal(tgt, any([]any{"web1"})) || err != nil {
		t.Error(kind, tgt, err)
	}
}
