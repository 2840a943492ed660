//go:build budgets

package main

import (
	"bytes"
	"fmt"
	"net"
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
	maxSize = 20 << 20 // stripped
	maxIdle = 8 << 20  // with the beacon, without a master
)

// TestBudgets builds the program as for a release and lets it idle with the beacon trove, whose heartbeats it cannot
// send.
func TestBudgets(t *testing.T) {
	program := filepath.Join(t.TempDir(), "trove-minion")
	build := exec.CommandContext(t.Context(), "go", append(append([]string{"build", "-o", program}, buildflags.Release()...), ".")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build trove-minion: %v\n%s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("size: %.2f MB of %.2f", float64(info.Size())/(1<<20), float64(maxSize)/(1<<20)); info.Size() > maxSize {
		t.Errorf("the program has %d bytes, more than the budget of %d", info.Size(), maxSize)
	}

	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "minion"), []byte(fmt.Sprintf("id: budget\nroot_dir: %[1]s\nbeacons: {trove: [{interval: 10}]}\n"+
		"trove: {datastore_manager: mariadb, state_dir: %[1]s/state, socket: %[1]s/none}\n", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "state"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "state/.guestagent.prepare.end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	call := exec.CommandContext(t.Context(), program, "call", "-c", dir, "--local", "--out=json", "trove.rpc_ping")
	if out, err := call.Output(); err != nil || string(bytes.Join(bytes.Fields(out), nil)) != `{"local":true}` {
		t.Fatalf("trove-minion call: %v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program, "minion", "-c", dir)
	cmd.Stderr = os.Stderr
	ready, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: filepath.Join(dir, "ready")})
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(dir, "ready"))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}()
	said := make([]byte, 1<<10)
	for !bytes.Contains(said, []byte("READY=1")) {
		if err := ready.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := ready.Read(said); err != nil {
			t.Fatalf("the program does not start: %v", err)
		}
	}
	// It returns memory to the system after some idle seconds. The beacon runs every ten.
	least := int64(1) << 62
	for end := time.Now().Add(25 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		least = min(least, rss(t, cmd.Process.Pid))
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
