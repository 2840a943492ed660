//go:build budgets

package keys_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/keys"
)

// TestBudgetOfLists: 100,000 accepted keys are listed in less than 300 ms, the best of some times.
func TestBudgetOfLists(t *testing.T) {
	const n, budget = 100_000, 300 * time.Millisecond
	id := func(i int) string { return fmt.Sprintf("minion-%06d.example", i) }
	preseed := func(t *testing.T, s *keys.Store) *keys.Store {
		var writers sync.WaitGroup
		for w := range 256 {
			writers.Go(func() {
				for i := w; i < n; i += 256 {
					if err := s.Preseed(id(i), text(0)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		writers.Wait()
		return s
	}
	for name, fill := range map[string]func(t *testing.T) *keys.Store{
		"disk": func(t *testing.T) *keys.Store {
			dir := filepath.Join(t.TempDir(), "pki")
			if err := os.MkdirAll(dir+"/minions", 0o700); err != nil {
				t.Fatal(err)
			}
			for i := range n { // as other programs do it: a file for each
				if err := os.WriteFile(dir+"/minions/"+id(i), []byte(text(0)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			return open(t, keys.Options{Dir: dir})
		},
		"memory": func(t *testing.T) *keys.Store { return preseed(t, open(t, keys.Options{})) },
		"database": func(t *testing.T) *keys.Store {
			return preseed(t, open(t, keys.Options{Shared: database(t, 1)[0], Name: "a"}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fill(t)
			best := time.Duration(1 << 62)
			for i := range 5 {
				if err := s.Preseed(id(n+i), text(0)); err != nil { // so that nothing is remembered
					t.Fatal(err)
				}
				begun := time.Now()
				ids, err := s.List(keys.Accepted)
				best = min(best, time.Since(begun))
				if err != nil || len(ids) != n+i+1 || ids[0] != id(0) || ids[n+i] != id(n+i) {
					t.Fatal(len(ids), err)
				}
			}
			t.Logf("%d keys are listed in %v", n, best.Round(time.Millisecond))
			if best > budget {
				t.Errorf("%d keys are listed in %v, more than %v", n, best, budget)
			}
		})
	}
}
