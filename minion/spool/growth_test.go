package spool

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/growth"
	"github.com/brine-salt/brine/protocol/payload"
)

// TestGrowth: with 10,000 pending returns, after a week without a master, a minion reads and sends each at the same
// cost as with 100.
func TestGrowth(t *testing.T) {
	sizes := []int{100, 1000, 10_000}
	var took []growth.Point
	growth.Bound(t, growth.Linear, sizes, func(n int) func() {
		dir := t.TempDir()
		for i := range n { // as Put does, without waiting for the disk
			path := fmt.Sprintf("%s/%020d%s", dir, i+1, suffix)
			if err := writeReturn(path, i); err != nil {
				t.Fatal(err)
			}
		}
		return func() {
			begin := time.Now()
			s := open(t, Options{Dir: dir})
			for _, it := range s.Pending() {
				if _, err := s.Load(it); err != nil {
					t.Fatal(err)
				}
				s.Done(it)
			}
			took = append(took, growth.Point{Size: n, Cost: time.Since(begin).Seconds()})
			if left := s.Pending(); len(left) > 0 || len(s.Expired()) > 0 {
				t.Fatal(len(left))
			}
		}
	})
	t.Logf("seconds: %v", took)
}

// writeReturn writes a file as Put does, without waiting for the disk.
func writeReturn(path string, i int) error {
	b, err := payload.MarshalBin([]any{1, "master", fmt.Sprint(i), time.Now().Unix(), load(i)})
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

// TestGrowthBackwards: acknowledgements may come in any order.
func TestGrowthBackwards(t *testing.T) {
	const n = 10_000
	s := open(t, Options{Dir: t.TempDir()})
	for i := range n {
		if _, err := s.Memory("m", fmt.Sprint(i), map[string]any{"n": int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	all := s.Pending()
	begin := time.Now()
	for i := range all {
		s.Done(all[n-1-i])
	}
	t.Logf("%d returns are forgotten in %v", n, time.Since(begin))
	if left := s.Pending(); len(left) > 0 {
		t.Fatal(len(left))
	}
}
