package targets

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/internal/requesttest"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/store/sqlite"
)

// realGrains returns as many grains as a minion on Debian sends, 10 KB.
func realGrains(i int) map[string]any {
	g := map[string]any{"id": fmt.Sprintf("web%05d", i), "role": "web", "os": "Debian", "osmajorrelease": int64(12)}
	if i%100 == 0 {
		g["role"] = "one"
	}
	var flags []any
	for f := range 150 {
		flags = append(flags, fmt.Sprintf("flag%d", f))
	}
	g["cpu_flags"] = flags
	for k := range 60 {
		g[fmt.Sprintf("grain%02d", k)] = fmt.Sprintf("the value of grain %d", k)
	}
	faces := map[string]any{}
	for k := range 8 {
		faces[fmt.Sprintf("eth%d", k)] = []any{fmt.Sprintf("10.%d.%d.%d", k, i/250, i%250), "fe80::1"}
	}
	g["ip_interfaces"] = faces
	return g
}

// BenchmarkExpected resolves targets among 10,000 and 100,000 minions whose data is on disk and in a database: warm is the
// second target on the same grain, cold the first one of a new master, which reads the grains of all minions.
func BenchmarkExpected(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkExpected(b, n) })
	}
}

func benchmarkExpected(b *testing.B, n int) {
	for name, open := range map[string]func(b *testing.B) (*keys.Store, func() *cache.Cache){
		"disk": func(b *testing.B) (*keys.Store, func() *cache.Cache) {
			dir := b.TempDir()
			return requesttest.Keys(b), func() *cache.Cache {
				c, err := cache.Open(dir)
				if err != nil {
					b.Fatal(err)
				}
				return c
			}
		},
		"database": func(b *testing.B) (*keys.Store, func() *cache.Cache) {
			db, err := sqlite.Open(filepath.Join(b.TempDir(), "db"))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { db.Close() })
			return requesttest.Keys(b), func() *cache.Cache { return cache.OpenShared(db) }
		},
	} {
		b.Run(name, func(b *testing.B) {
			f := &Finder{}
			ks, reopen := open(b)
			f.Keys, f.Cache = ks, reopen()
			pem := requesttest.Key().Public().Text()
			for i := range n {
				g := realGrains(i)
				id := g["id"].(string)
				if err := f.Keys.Preseed(id, pem); err != nil {
					b.Fatal(err)
				}
				if err := f.Cache.Store(id, cache.Data{Grains: g, Pillar: map[string]any{"a": "b"}}.Ordered()); err != nil {
					b.Fatal(err)
				}
			}
			for _, t := range [][2]string{{"glob", "web*"}, {"grain", "role:one"}, {"compound", "G@role:one and web*"}} {
				for _, cold := range []bool{false, true} {
					b.Run(fmt.Sprintf("%s/cold=%v", t[0], cold), func(b *testing.B) {
						if _, _, err := f.Expected(t[0], t[1], ""); err != nil { // warms the index
							b.Fatal(err)
						}
						b.ReportAllocs()
						b.ResetTimer()
						for range b.N {
							if cold {
								f.Cache.Close()
								f.Cache = reopen()
							}
							if _, _, err := f.Expected(t[0], t[1], ""); err != nil {
								b.Fatal(err)
							}
						}
					})
				}
			}
		})
	}
}
