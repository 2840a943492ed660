//go:build interop && linux

package beacon

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
)

// TestStrace traces a shell with the real strace, and checks that the shell is no longer traced afterwards.
func TestStrace(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	sh := exec.CommandContext(t.Context(), "sh")
	in, err := sh.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(sh.Process.Pid)
	h := shellHost(t, pid, &runcmd.Runner{})
	h.Root = ""
	tracer := func() string {
		b, err := os.ReadFile("/proc/" + pid + "/status")
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(b), "TracerPid:\t")
		text, _, _ := strings.Cut(after, "\n")
		return text
	}
	await := func(what string, cond func() bool) {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); !cond(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("waited in vain until %s", what)
			}
		}
	}
	look := func() []map[string]any {
		found, err := lookShells(t.Context(), h, nil)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	look()
	await("the shell is traced", func() bool { return tracer() != "0" })
	if _, err := in.Write([]byte("/bin/echo hello 'two words' >/dev/null\n")); err != nil {
		t.Fatal(err)
	}
	var found []map[string]any
	await("the program is told", func() bool { found = append(found, look()...); return len(found) > 0 })
	want := []map[string]any{{"tag": pid, "user": "ada", "cmd": "/bin/echo", "args": []any{"/bin/echo", "hello", "two words"}}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
	shell.Close(h, nil)
	if by := tracer(); by != "0" {
		t.Errorf("the shell is still traced, by process %s", by)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := sh.Wait(); err != nil {
		t.Errorf("the shell ends with %v", err)
	}
}
