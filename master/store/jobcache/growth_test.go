package jobcache_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/growth"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
)

// TestGrowth: jobs, and the returns of one job, are listed at the same cost for each of 160 as for each of 10. A
// return is found and stored at the same cost whatever the others.
func TestGrowth(t *testing.T) {
	sizes := []int{10, 40, 160}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	jid := func(i int) string { return begin.Add(time.Duration(i)*time.Second).Format("20060102150405") + "000000" }
	save := func(t *testing.T, s store.Store, jid string) {
		t.Helper()
		err := s.SaveJob(t.Context(), store.Job{JID: jid, Fun: "test.ping", Tgt: "*", TgtType: "glob", Minions: []string{"m"}})
		if err != nil {
			t.Fatal(err)
		}
	}
	returned := func(t *testing.T, s store.Store, jid, id string) {
		t.Helper()
		r := store.Return{JID: jid, ID: id, Load: map[string]any{"return": true, "retcode": int64(0)}}
		if isNew, err := s.SaveReturn(t.Context(), r); !isNew || err != nil {
			t.Fatal(isNew, err)
		}
	}
	t.Run("jobs", func(t *testing.T) {
		growth.Bound(t, growth.Linear, sizes, func(n int) func() {
			s := open(t, filepath.Join(t.TempDir(), "jobs"))
			t.Cleanup(func() { s.Close() })
			for i := range n {
				save(t, s, jid(i))
				returned(t, s, jid(i), "m")
			}
			return func() {
				list, err := s.Jobs(t.Context(), store.Filter{Limit: n})
				if err != nil || len(list) != n || list[0].JID != jid(n-1) {
					t.Fatal(len(list), err)
				}
				middle, _ := protocol.JID(jid(n / 2)).Time()
				if gone, err := s.Purge(t.Context(), middle); err != nil || gone != n/2 {
					t.Fatal(gone, err)
				}
			}
		})
	})
	t.Run("returns", func(t *testing.T) {
		var one []growth.Point
		growth.Bound(t, growth.Linear, sizes, func(n int) func() {
			s := open(t, filepath.Join(t.TempDir(), "jobs"))
			t.Cleanup(func() { s.Close() })
			save(t, s, jid(0))
			for i := range n {
				returned(t, s, jid(0), fmt.Sprintf("m%05d", i))
			}
			bytes, _ := growth.Allocated(func() { returned(t, s, jid(0), "last") })
			one = append(one, growth.Point{Size: n, Cost: bytes})
			return func() {
				if list, err := s.Returns(t.Context(), jid(0)); err != nil || len(list) != n+1 {
					t.Fatal(len(list), err)
				}
			}
		})
		// The first is for the run that growth.Bound does not count.
		if k := growth.Exponent(one[1:]); k > growth.Constant {
			t.Errorf("to store a return grows with exponent %.2f among n: %v", k, one)
		}
	})
}
