//go:build interop

package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/master"
)

// TestOrderIsLostWithTheJournal checks that a minion that returns with its key but without its cache, which contains
// the record of its jobs, does not get an earlier job again: it cannot know that the job ran.
func TestOrderIsLostWithTheJournal(t *testing.T) {
	m := embedded(t, master.Options{Jobs: master.JobOptions{Timeout: time.Second,
		GatherTimeout: time.Second}})
	home := tempDir(t)
	runs := filepath.Join(home, "runs")
	write(t, home+"/minion", fmt.Sprintf("id: one\nroot_dir: %s\nmaster: 127.0.0.1\nmaster_port: %d\npublish_port: %d\n", home, portOf(m.RequestAddr()), portOf(m.PublishAddr())))
	p := start(t, ours("salt-minion"), "-c", home)
	if _, err := m.PlaceOrder(soon(t), master.Order{ID: "wait", Job: master.Job{Fun: "cmd.run", Args: []any{"echo run >>" + runs + "; sleep 60"}, Tgt: []string{"one"}}}); err != nil {
		t.Fatal(err)
	}
	await(t, "the job runs", func() bool { return exists(runs) })
	p.kill()
	if err := os.RemoveAll(filepath.Join(home, "var/cache/salt")); err != nil {
		t.Fatal(err)
	}
	start(t, ours("salt-minion"), "-c", home)
	out, err := m.AwaitOrder(soon(t), "wait")
	if res := out.Results["one"]; err != nil || res.Status != master.Lost || !strings.HasPrefix(res.Reason, "the minion knows nothing of it") {
		t.Errorf("%+v %v", out, err)
	}
	if b, err := os.ReadFile(runs); err != nil || string(b) != "run\n" {
		t.Errorf("it ran %q %v", b, err)
	}
}
