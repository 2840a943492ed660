//go:build interop

package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/master"
)

// TestOrdersReachStockMinions checks that orders wait for stock minions, which support only publishes.
func TestOrdersReachStockMinions(t *testing.T) {
	for _, line := range []string{"3006", "3007", "3008"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			m := embedded(t, master.Options{})
			s := &site{dir: tempDir(t), transport: "zeromq", pub: portOf(m.PublishAddr()), ret: portOf(m.RequestAddr())}
			conf := s.minion(t, "stock", "cache_jobs: true")
			file := filepath.Join(s.dir, "ledger")
			add := func(id, command string) master.Order {
				return master.Order{ID: id, Job: master.Job{Fun: "cmd.run", Args: []any{command}, Tgt: "stock", TgtType: "list"}}
			}
			cast := func(o master.Order) {
				t.Helper()
				if _, err := m.PlaceOrder(soon(t), o); err != nil {
					t.Fatal(err)
				}
			}
			for _, word := range []string{"a", "b", "c"} {
				cast(add(word, fmt.Sprintf("echo %s >> %s", word, file)))
			}
			short := add("expired", "echo expired >> "+file)
			short.TTL = time.Millisecond
			cast(short)
			if got := ended(t, m, "stock", "expired"); got[0] != "undeliverable" {
				t.Fatal(got)
			}
			p := start(t, stock(t, line, "salt-minion"), "-c", conf)
			if got := ended(t, m, "stock", "a", "b", "c"); !slices.Equal(got, []string{"returned", "returned", "returned"}) {
				t.Fatal(got)
			}
			if line != "3007" {
				return // the rest takes long and depends on the master only
			}
			cast(add("long", s.sleep(300)))
			await(t, "the job is under way", func() bool {
				o, err := m.OrderOutcome(soon(t), "long")
				return err == nil && o.Results["stock"].Status == master.Underway
			})
			if o, err := m.CancelOrder(soon(t), "long"); err != nil || o.Results["stock"].Status != master.Cancelled {
				t.Errorf("%+v %v", o, err)
			}
			// The minion dies during a job. The job is not run again, and its outcome is known.
			cast(add("dies", fmt.Sprintf("echo dies >> %s; %s", file, s.sleep(301))))
			await(t, "the job runs", func() bool { return strings.Contains(read(t, file), "dies") })
			p.kill()
			_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
			cast(add("d", "echo d >> "+file))
			_ = os.Remove(s.dir + "/stock/minion.pid")
			_ = os.Remove(s.dir + "/stock/process_responsibility_minion.pid")
			start(t, stock(t, line, "salt-minion"), "-c", conf)
			if got := ended(t, m, "stock", "dies", "d"); got[0] != "lost" || got[1] != "returned" {
				t.Error(got)
			}
			if got := strings.Fields(read(t, file)); !slices.Equal(got, []string{"a", "b", "c", "dies", "d"}) {
				t.Error(got)
			}
		})
	}
}

func read(t *testing.T, file string) string {
	b, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}
