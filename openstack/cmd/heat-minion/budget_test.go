//go:build budgets

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/buildflags"
)

// Budgets of the program. They are raised only for a reason.
const (
	maxSize = 22 << 20 // stripped, with all modules and states
	maxIdle = 6 << 20  // polling, without a master and without deployments
)

// TestBudgets builds the program as for a release and lets it poll metadata that does not change.
func TestBudgets(t *testing.T) {
	program := filepath.Join(t.TempDir(), "heat-minion")
	build := exec.CommandContext(t.Context(), "go", append(append([]string{"build", "-o", program}, buildflags.Release()...), ".")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build heat-minion: %v\n%s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("size: %.2f MB of %.2f", float64(info.Size())/(1<<20), float64(maxSize)/(1<<20)); info.Size() > maxSize {
		t.Errorf("the program has %d bytes, more than the budget of %d", info.Size(), maxSize)
	}

	polls := make(chan struct{}, 100)
	heat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"deployments": []}`)
		select {
		case polls <- struct{}{}:
		default:
		}
	}))
	defer heat.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"collect.conf": "[DEFAULT]\ncollectors = request\npolling_interval = 6\n[request]\nmetadata_url = " + heat.URL + "\n",
		"minion":       fmt.Sprintf("id: budget\nroot_dir: %[1]s\nheat: {config_files: [/collect.conf], write_config: false, root: %[1]s}\n", dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), program, "minion", "-c", dir)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}()
	// The polls are 1, 2, 4 and then 6 seconds apart. If the next poll is at least 5 seconds away, the program returns
	// memory to the system.
	for range 7 {
		select {
		case <-polls:
		case <-time.After(time.Minute):
			t.Fatal("it does not poll")
		}
	}
	// Use the smallest of several values: the program may be polling.
	least := int64(1) << 62
	for range 20 {
		least = min(least, rss(t, cmd.Process.Pid))
		time.Sleep(200 * time.Millisecond)
	}
	if t.Logf("idle memory: %.2f MB of %.2f", float64(least)/(1<<20), float64(maxIdle)/(1<<20)); least > maxIdle {
		t.Errorf("the idle program has %d bytes in memory, more than the budget of %d", least, maxIdle)
	}
}

// rss returns the size of a process in memory.
func rss(t *testing.T, pid int) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}
