package keys_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/growth"
	"github.com/brine-salt/brine/master/keys"
)

// TestGrowth: keys are listed, matched and read at the same cost for each of 1,000 as for each of 50.
func TestGrowth(t *testing.T) {
	id := func(i int) string { return fmt.Sprintf("m%05d", i) }
	preseed := func(t *testing.T, s *keys.Store, n int) *keys.Store {
		for i := range n {
			if err := s.Preseed(id(i), text(0)); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	for name, fill := range map[string]func(t *testing.T, n int) *keys.Store{
		"disk": func(t *testing.T, n int) *keys.Store {
			dir := filepath.Join(t.TempDir(), "pki")
			s := open(t, keys.Options{Dir: dir})
			for i := range n { // without waiting for the disk
				file := filepath.Join(dir, keys.Accepted.Folder(), id(i))
				if err := os.WriteFile(file, []byte(text(0)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			return s
		},
		"memory": func(t *testing.T, n int) *keys.Store { return preseed(t, open(t, keys.Options{}), n) },
	} {
		t.Run(name, func(t *testing.T) {
			growth.Bound(t, growth.Linear, []int{50, 200, 1000}, func(n int) func() {
				s := fill(t, n)
				return func() {
					all, err := s.List(keys.Accepted)
					matched, merr := s.Match("m*", keys.Accepted)
					if err != nil || merr != nil || len(all) != n || len(matched) != n {
						t.Fatal(len(all), err, len(matched), merr)
					}
					for _, id := range all {
						if _, err := s.Accepted(id); err != nil {
							t.Fatal(err)
						}
					}
				}
			})
		})
	}
}
