package fileserver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/growth"
	"github.com/brine-salt/brine/master/fileserver"
)

// TestGrowth: a directory is listed at the same cost for each of 1,250 entries as for each of 50, with and without
// links to follow. A file in it is found and read at the same cost whatever the others.
func TestGrowth(t *testing.T) {
	sizes := []int{50, 250, 1250}
	for _, follow := range []bool{false, true} {
		t.Run(fmt.Sprint("follow ", follow), func(t *testing.T) {
			var one []growth.Point
			growth.Bound(t, growth.Linear, sizes, func(n int) func() {
				dir := t.TempDir()
				plant(t, dir, map[string]string{"large/f0": "x", "deep/d0/f": "x"})
				for i := 1; i < n; i++ {
					name := fmt.Sprintf("%s/large/f%d", dir, i)
					switch {
					case i%100 == 0:
						plant(t, dir, map[string]string{fmt.Sprintf("deep/d%d/f", i): "x"})
					case i%10 == 0:
						if err := os.Symlink("f0", name); err != nil {
							t.Fatal(err)
						}
					default: // as another name of the same file, which is made soonest
						if err := os.Link(filepath.Join(dir, "large/f0"), name); err != nil {
							t.Fatal(err)
						}
					}
				}
				s := serve(t, roots(fileserver.RootsOptions{Roots: map[string][]string{"base": {dir}}, FollowSymlinks: follow}))
				find := func() {
					if c, err := s.Read("large/f1", "base", 0, 0); err != nil || string(c.Data) != "x" {
						t.Fatal(c, err)
					}
				}
				find()
				bytes, _ := growth.Allocated(find)
				one = append(one, growth.Point{Size: n, Cost: bytes})
				return func() {
					list, err := s.List(t.Context(), "base")
					if err != nil || len(list.Files) != n+1 {
						t.Fatal(len(list.Files), err)
					}
				}
			})
			// The first is for the run that growth.Bound does not count.
			if k := growth.Exponent(one[1:]); k > growth.Constant {
				t.Errorf("to read a file grows with exponent %.2f among n: %v", k, one)
			}
		})
	}
}
