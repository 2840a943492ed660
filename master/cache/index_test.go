package cache_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/store/sqlite"
	"github.com/brine-salt/brine/protocol/target"
)

// pairs are two caches over the same directory and over the same database, as two programs have them.
func pairs(t *testing.T, f func(t *testing.T, a, b *cache.Cache)) {
	t.Run("disk", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "cache")
		var both [2]*cache.Cache
		for i := range both {
			c, err := cache.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			both[i] = c
		}
		f(t, both[0], both[1])
	})
	t.Run("memory", func(t *testing.T) {
		c, err := cache.Open("")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		f(t, c, c)
	})
	t.Run("database", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "db")
		var both [2]*cache.Cache
		for i := range both {
			db, err := sqlite.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			both[i] = cache.OpenShared(db)
		}
		f(t, both[0], both[1])
	})
}

// only returns some keys of a map, nil of nil.
func only(m map[string]any, keys []string) map[string]any {
	if m == nil && len(keys) > 0 {
		return nil
	}
	out := map[string]any{}
	for _, k := range keys {
		if v, ok := m[k]; ok {
			out[k] = v
		}
	}
	return out
}

// TestParts: a Reader of some keys returns the values stored at that moment, whichever master changed them and
// however often it was read before.
func TestParts(t *testing.T) {
	pairs(t, func(t *testing.T, a, b *cache.Cache) {
		r := rand.New(rand.NewPCG(1, 2))
		ids := make([]string, 300)
		for i := range ids {
			ids[i] = fmt.Sprintf("m%03d", i)
		}
		value := func() any {
			return []any{"web", "db", int64(r.IntN(3)), []any{"a", "b"}, map[string]any{"x": "y"}, nil}[r.IntN(6)]
		}
		some := func() map[string]any {
			if r.IntN(10) == 0 {
				return nil
			}
			m := map[string]any{}
			for _, k := range []string{"role", "os", "ipv4", "other"} {
				if r.IntN(3) > 0 {
					m[k] = value()
				}
			}
			return m
		}
		for range 12 {
			for range 60 {
				id, c := ids[r.IntN(len(ids))], []*cache.Cache{a, b}[r.IntN(2)]
				var err error
				if r.IntN(4) == 0 {
					err = c.Delete(id)
				}
				if err == nil && r.IntN(4) > 0 {
					err = c.Store(id, cache.Data{Grains: some(), Pillar: some()}.Ordered())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for _, n := range []target.Needs{{Grains: []string{"role"}}, {Grains: []string{"ipv4", "role"}, Pillar: []string{"os"}}, {Pillar: []string{"none"}}} {
				parts, all := a.Parts(ids, n), a.Reader(ids)
				for _, id := range ids {
					if r.IntN(10) == 0 {
						continue // ids may be left out
					}
					got, ok := parts.Data(id)
					whole, known := all.Data(id)
					want := cache.Data{Grains: only(whole.Grains, n.Grains), Pillar: only(whole.Pillar, n.Pillar)}
					if !known {
						want = cache.Data{}
					}
					if d := cmp.Diff(want, got); d != "" || ok != known {
						t.Fatalf("%s %+v: %v %v %s", id, n, ok, known, d)
					}
				}
				if parts.Err() != nil || all.Err() != nil {
					t.Fatal(parts.Err(), all.Err())
				}
			}
		}
	})
}

// TestPartsAreBounded: more keys than are remembered, and values that are too large for that, by several at once.
func TestPartsAreBounded(t *testing.T) {
	pairs(t, func(t *testing.T, a, _ *cache.Cache) {
		var ids []string
		for i := range 5 {
			id := fmt.Sprintf("m%d", i)
			g := map[string]any{"large": strings.Repeat(id, 5<<20)}
			for k := range 18 {
				g[fmt.Sprintf("k%d", k)] = id
			}
			if err := a.Store(id, cache.Data{Grains: g}.Ordered()); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		var wg sync.WaitGroup
		for w := range 2 {
			wg.Go(func() {
				for k := range 18 {
					key := fmt.Sprintf("k%d", (k+9*w)%18)
					r := a.Parts(ids, target.Needs{Grains: []string{key, "large"}})
					for _, id := range ids {
						d, ok := r.Data(id)
						if large, _ := d.Grains["large"].(string); !ok || d.Grains[key] != id || len(large) != 10<<20 {
							t.Error(key, id, ok, len(large))
						}
					}
				}
			})
		}
		wg.Wait()
	})
}
