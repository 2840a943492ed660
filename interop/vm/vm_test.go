//go:build chaos

package vm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/interop/vm"
)

// TestMachine boots one, and does to it what the package promises.
func TestMachine(t *testing.T) {
	year := time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)
	m := vm.Boot(t, vm.Options{Files: map[string]string{"/etc/told": "debian-packages.txt"}, Clock: year})
	if d := m.Clock().Sub(year); d < 0 || d > time.Minute {
		t.Errorf("the clock is %v after the one it was started with", d)
	}
	if got := m.Must("cat /etc/told"); !strings.Contains(got, "busybox-static") {
		t.Errorf("file: %q", got)
	}
	if out, code, err := m.Run("echo out; echo err >&2; exit 7"); out != "out\nerr\n" || code != 7 || err != nil {
		t.Errorf("Run = %q, %d, %v", out, code, err)
	}
	m.SetClock(year.Add(-time.Hour))
	if d := year.Sub(m.Clock()); d < 58*time.Minute || d > time.Hour {
		t.Errorf("the clock is %v before", d)
	}
	before := m.Must("cat /proc/uptime")
	m.Pause()
	m.Continue()
	if after := m.Must("cat /proc/uptime"); after <= before && len(after) <= len(before) {
		t.Errorf("uptime %s, then %s", before, after)
	}
}
