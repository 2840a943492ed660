package targets

import (
	"fmt"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/growth"
	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/internal/requesttest"
)

// TestGrowth: a target among 10,000 minions costs for each minion what one among 100 does.
func TestGrowth(t *testing.T) {
	sizes := []int{100, 1000, 10_000}
	finders := map[int]*Finder{}
	pem := requesttest.Key().Public().Text()
	for _, n := range sizes {
		f := &Finder{Keys: requesttest.Keys(t)}
		var err error
		if f.Cache, err = cache.Open(""); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			id, role := fmt.Sprintf("web%05d", i), "web"
			if i%10 == 0 {
				role = "one"
			}
			if err := f.Keys.Preseed(id, pem); err != nil {
				t.Fatal(err)
			}
			d := cache.Data{Grains: map[string]any{"id": id, "role": role}}
			if err := f.Cache.Store(id, d.Ordered()); err != nil {
				t.Fatal(err)
			}
		}
		finders[n] = f
	}
	for _, target := range [][2]string{{"glob", "web*"}, {"list", "web00001,web00002"}, {"pcre", "web.*1"},
		{"grain", "role:one"}, {"compound", "G@role:one and web*"}} {
		t.Run(target[0], func(t *testing.T) {
			growth.Bound(t, growth.Linear, sizes, func(n int) func() {
				return func() {
					ids, _, err := finders[n].Expected(target[0], target[1], "")
					if err != nil || len(ids) == 0 {
						t.Fatal(ids, err)
					}
				}
			})
		})
	}
}
