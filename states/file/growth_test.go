//go:build unix

package file_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/growth"
	"github.com/brine-salt/brine/modules/cpmod"
	filemod "github.com/brine-salt/brine/modules/file"
	"github.com/brine-salt/brine/states/file"
	"github.com/brine-salt/brine/states/statestest"
)

// TestGrowth: file.recurse costs the same for each of 160 files as for each of 10, and so for links and for what is
// removed because the file server does not have it.
func TestGrowth(t *testing.T) {
	for _, c := range []struct {
		name string
		args map[string]any
		each func(h *host, i int)
	}{
		{"files", nil, func(h *host, i int) { h.write(fmt.Sprintf("srv/tree/d%d/f%d", i%100, i), fmt.Sprint(i)) }},
		{"links", map[string]any{"keep_symlinks": true}, func(h *host, i int) {
			h.write("srv/tree/target", "one")
			if err := os.Symlink("target", h.path(fmt.Sprintf("srv/tree/l%d", i))); err != nil {
				h.t.Fatal(err)
			}
		}},
		{"clean", map[string]any{"clean": true}, func(h *host, i int) {
			h.write("srv/tree/one", "one")
			h.write(fmt.Sprintf("copy/d%d/f%d", i%100, i), "old")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			growth.Bound(t, growth.Linear, []int{10, 40, 160}, func(n int) func() {
				h := newHost(t)
				for i := range n {
					c.each(h, i)
				}
				args := map[string]any{"name": h.path("copy"), "source": "salt://tree"}
				for k, v := range c.args {
					args[k] = v
				}
				return func() {
					rec := statestest.Apply(t, h.env, file.Module, "file.recurse", args, false, filemod.Module, cpmod.Module)
					if changes, _ := rec["changes"].(map[string]any); rec["result"] != true || len(changes) == 0 {
						t.Fatalf("%v %v", rec["result"], rec["comment"])
					}
				}
			})
		})
	}
}
