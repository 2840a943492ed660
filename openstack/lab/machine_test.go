//go:build openstack

package lab

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMachine boots Debian's systemd and cloud-init, and checks that nothing of a machine remains after it is powered
// off.
func TestMachine(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	root, err := DebianRoot(ctx, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Empty(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	began := time.Now()
	g, err := l.StartMachine(ctx, "machine", Machine{Root: root,
		Setup: "printf 'datasource_list: [None]\nlocale: C.UTF-8\n' >/etc/cloud/cloud.cfg.d/99-lab.cfg"})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := g.Run(ctx, "cloud-init", "status", "--wait"); err != nil || !strings.Contains(out, "status: done") {
		t.Errorf("cloud-init: %s %v\n%s", out, err, g.Journal(ctx))
	}
	t.Logf("cloud-init was done after %v", time.Since(began).Round(100*time.Millisecond))
	if out, err := g.Run(ctx, "hostname"); err != nil || out != "machine\n" {
		t.Errorf("hostname = %q %v", out, err)
	}
	procs, err := g.Processes()
	if err != nil || len(procs) == 0 {
		t.Errorf("the machine runs %v %v", procs, err)
	}
	g.PowerOff()
	for _, p := range procs {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", p.Pid)); err == nil {
			t.Errorf("the machine is off, and %s still runs", p.Command)
		}
	}
}
