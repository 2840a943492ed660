//go:build budgets

package sqlite_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/growth"
	"github.com/brine-salt/brine/master/store"
)

// TestBudgetOfReturns: among 1,000,000 returns a job, its returns and the newest jobs are found as quickly as among
// 10,000, and a return is stored at the same cost.
func TestBudgetOfReturns(t *testing.T) {
	const each, writers = 1000, 64
	ids := make([]string, each)
	for i := range ids {
		ids[i] = fmt.Sprintf("minion-%04d.example", i)
	}
	begin := time.Now().Add(-time.Hour)
	job := func(i int) store.Job {
		return store.Job{JID: fmt.Sprintf("20260102000000%06d", i), Fun: "test.ping", Tgt: "*", TgtType: "glob",
			Minions: ids, Created: begin.Add(time.Duration(i) * time.Second)}
	}
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	defer s.Close()
	curves := map[string][]growth.Point{}
	note := func(what string, n int, f func()) {
		best := time.Duration(1 << 62)
		for range 5 {
			begin := time.Now()
			f()
			best = min(best, time.Since(begin))
		}
		curves[what] = append(curves[what], growth.Point{Size: n, Cost: best.Seconds()})
	}
	done := 0
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		begin, first := time.Now(), done
		for ; done < n/each; done++ {
			j := job(done)
			if err := s.SaveJob(t.Context(), j); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					for i := w; i < each; i += writers {
						r := store.Return{JID: j.JID, ID: ids[i], Received: j.Created,
							Load: map[string]any{"return": true, "retcode": int64(0), "success": true, "jid": j.JID, "id": ids[i]}}
						if isNew, err := s.SaveReturn(t.Context(), r); !isNew || err != nil {
							t.Error(isNew, err)
							return
						}
					}
				})
			}
			wg.Wait()
		}
		per := time.Since(begin).Seconds() / float64((done-first)*each)
		curves["store a return"] = append(curves["store a return"], growth.Point{Size: n, Cost: per})
		middle := job(done / 2)
		note("one return of a job", n, func() {
			if list, err := s.ReturnsOf(t.Context(), middle.JID, ids[each/2:each/2+1]); err != nil || len(list) != 1 {
				t.Fatal(len(list), err)
			}
		})
		note("all returns of a job", n, func() {
			if list, err := s.Returns(t.Context(), middle.JID); err != nil || len(list) != each {
				t.Fatal(len(list), err)
			}
		})
		note("the ten newest jobs", n, func() {
			if list, err := s.Jobs(t.Context(), store.Filter{Limit: 10}); err != nil || len(list) != 10 {
				t.Fatal(len(list), err)
			}
		})
	}
	for what, points := range curves {
		k := growth.Exponent(points)
		t.Logf("%s: exponent %.2f, seconds %v", what, k, points)
		if k > 0.3 {
			t.Errorf("%s: grows with exponent %.2f among n returns", what, k)
		}
	}
	was := time.Now()
	n, err := s.Purge(t.Context(), job(done/2).Created)
	t.Logf("%d of %d jobs are forgotten in %v", n, done, time.Since(was))
	if err != nil || n != done/2 {
		t.Error(n, err)
	}
}
