package cache_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/store/sqlite"
	"github.com/brine-salt/brine/protocol/payload"
)

func both(t *testing.T, f func(t *testing.T, c *cache.Cache)) {
	for name, dir := range map[string]string{"disk": filepath.Join(t.TempDir(), "cache"),
		"memory": ""} {
		t.Run(name, func(t *testing.T) {
			c, err := cache.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			f(t, c)
		})
	}
	t.Run("database", func(t *testing.T) {
		db, err := sqlite.Open(filepath.Join(t.TempDir(), "db"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		f(t, cache.OpenShared(db))
	})
}

func TestData(t *testing.T) {
	both(t, func(t *testing.T, c *cache.Cache) {
		if _, ok := c.Data("m"); ok {
			t.Fatal("data from nowhere")
		}
		want := cache.Data{Grains: map[string]any{"os": "Debian", "n": int64(3)},
			Pillar: map[string]any{"secret": []any{"x"}}}
		if err := c.Store("m", want.Ordered()); err != nil {
			t.Fatal(err)
		}
		got, ok := c.Data("m")
		if d := cmp.Diff(want, got); d != "" || !ok {
			t.Fatal(ok, d)
		}
		if ids, err := c.IDs(); err != nil || !cmp.Equal(ids, []string{"m"}) {
			t.Fatal(ids, err)
		}
		if err := c.Delete("m"); err != nil {
			t.Fatal(err)
		}
		if _, ok := c.Data("m"); ok {
			t.Fatal("forgotten data is back")
		}
	})
}

// TestOrder: grains and pillar keep their order at every depth, and after a part was removed.
func TestOrder(t *testing.T) {
	both(t, func(t *testing.T, c *cache.Cache) {
		inner := payload.OrderedMap{{Key: "z", Value: "1"}, {Key: "a", Value: []any{payload.OrderedMap{{Key: "y", Value: nil}, {Key: "b", Value: nil}}}}}
		want := cache.Ordered{Grains: payload.OrderedMap{{Key: "os", Value: "Debian"}, {Key: "faces", Value: inner}, {Key: "id", Value: "m"}},
			Pillar: payload.OrderedMap{{Key: "web", Value: inner}, {Key: "app", Value: int64(2)}}}
		for range 2 {
			if err := c.Store("m", want); err != nil {
				t.Fatal(err)
			}
			got, ok := c.Ordered("m")
			if d := cmp.Diff(want, got); d != "" || !ok {
				t.Fatal(ok, d)
			}
			r := c.Reader([]string{"m"})
			if got, ok = r.Ordered("m"); !ok || cmp.Diff(want, got) != "" || r.Err() != nil {
				t.Fatal(ok, cmp.Diff(want, got), r.Err())
			}
			if d, _ := c.Data("m"); d.Grains["faces"].(map[string]any)["z"] != "1" || (d.Pillar == nil) != (want.Pillar == nil) {
				t.Fatal(d)
			}
			want.Pillar = nil
		}
		if _, ok := c.Ordered("other"); ok {
			t.Error("data from nowhere")
		}
	})
}

func TestMineChangesAreNotLost(t *testing.T) {
	both(t, func(t *testing.T, c *cache.Cache) {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if err := c.ChangeMine("m", func(m map[string]any) bool {
					m[fmt.Sprint("f", i)] = int64(i)
					return true
				}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if m := c.Mine("m"); len(m) != 20 || m["f7"] != int64(7) {
			t.Fatal(m)
		}
		if m := c.Mine("other"); len(m) != 0 || m == nil {
			t.Fatal(m)
		}
	})
}

// TestBanks: what the tools of Salt 3008 read is there for each minion, follows every change, and goes with the minion.
func TestBanks(t *testing.T) {
	dir := t.TempDir()
	c, err := cache.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	bank := func(name string) any {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, name, "m.p"))
		if err != nil {
			return nil
		}
		v, err := payload.UnmarshalDisk(b, payload.Limits{Bytes: cache.MaxEntry})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	all := func() []any { return []any{bank("grains"), bank("pillar"), bank("mine")} }
	entry := func(k string) any { return map[string]any{k: int64(1)} }
	if err := c.Store("m", cache.Data{Grains: map[string]any{"g": int64(1)}}.Ordered()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]any{entry("g"), map[string]any{}, nil}, all()); d != "" {
		t.Fatal(d)
	}
	os.RemoveAll(filepath.Join(dir, "pillar")) // as salt-run cache.flush does with a bank
	if err := c.Store("m", cache.Data{Grains: map[string]any{"h": int64(1)},
		Pillar: map[string]any{"p": int64(1)}}.Ordered()); err != nil {
		t.Fatal(err)
	}
	if err := c.ChangeMine("m", func(m map[string]any) bool { m["f"] = int64(1); return true }); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]any{entry("h"), entry("p"), entry("f")}, all()); d != "" {
		t.Fatal(d)
	}
	if err := c.Delete("m"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]any{nil, nil, nil}, all()); d != "" {
		t.Fatal(d)
	}
}

func TestLimitsAndDamage(t *testing.T) {
	dir := t.TempDir()
	c, err := cache.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	big := map[string]any{"x": strings.Repeat("y", cache.MaxEntry)}
	if err := c.Store("m", cache.Data{Grains: big}.Ordered()); err == nil {
		t.Fatal("an entry over the limit was stored")
	}
	os.MkdirAll(filepath.Join(dir, "minions", "m"), 0o700)
	os.WriteFile(filepath.Join(dir, "minions", "m", "data.p"), []byte("\xc1garbage"), 0o600)
	if _, ok := c.Data("m"); ok {
		t.Fatal("garbage was taken")
	}
	if err := c.Store("m", cache.Ordered{}); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Data("m"); !ok {
		t.Fatal("a damaged entry was not replaced")
	}
}

// TestCVE_2025_22238_CacheTraversal: an id never leads out of the cache.
func TestCVE_2025_22238_CacheTraversal(t *testing.T) {
	dir := t.TempDir()
	c, err := cache.Open(filepath.Join(dir, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, id := range []string{"..", "../x", "a/b", "", ".", "a\x00", `..\x`} {
		if c.Store(id, cache.Ordered{}) == nil || c.Delete(id) == nil ||
			c.ChangeMine(id, func(map[string]any) bool { return true }) == nil {
			t.Errorf("%q was taken", id)
		}
		if _, ok := c.Data(id); ok || len(c.Mine(id)) != 0 {
			t.Errorf("%q has data", id)
		}
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Fatal(list)
	}
}
