//go:build interop

package interop

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestBusyMinionIsAwaited checks that brine's salt never reports a stock minion that runs a state of 12 s as not
// returned, even if the machine is so busy (a load of 10 and more) that the minion needs seconds to answer that the
// job is running. It runs three times; BRINE_BUSY_RUNS sets another number.
func TestBusyMinionIsAwaited(t *testing.T) {
	runs := 3
	if text := os.Getenv("BRINE_BUSY_RUNS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("BRINE_BUSY_RUNS is %q", text)
		}
		runs = n
	}
	s := newSite(t, "zeromq", "auto_accept: true\n")
	m := &ourMaster{site: s, t: t, root: t, line: "3007", id: "web1"}
	m.up()
	mark := m.bus.mark()
	start(t, stock(t, "3007", "salt-minion"), "-c", s.minion(t, "web1", ""))
	m.bus.wait(mark, "salt/minion/web1/start")
	write(t, s.dir+"/srv/long.sls", s.sleep(12)+":\n  cmd.run: []\n")
	busy(t, 10)
	for i := range runs {
		began := time.Now()
		out, code := output(t, ours("salt"), "-c", s.dir+"/etc", "web1", "state.apply", "long")
		t.Logf("run %d: %s, %d want to run", i+1, time.Since(began).Round(100*time.Millisecond), runnable(t))
		if code != 0 || !strings.Contains(out, "Succeeded: 1 (changed=1)") || time.Since(began) < 12*time.Second {
			t.Errorf("run %d: exit code %d\n%s", i+1, code, out)
		}
	}
}

// busy keeps the processors busy with n processes until the test ends. It returns when all of them run.
func busy(t *testing.T, n int) {
	t.Helper()
	for range n {
		cmd := exec.Command("/bin/sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
	await(t, "as many processes want to run", func() bool { return runnable(t) >= n })
}

// runnable returns how many processes are ready to run at this moment. The load average is the mean of this number.
func runnable(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	now, _, _ := strings.Cut(strings.Fields(string(b))[3], "/")
	n, err := strconv.Atoi(now)
	if err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return n
}
