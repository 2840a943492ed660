//go:build openstack

package trove

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/modules"
)

// TestTroveFreeze freezes a volume: what writes to it waits, until it is thawed.
func TestTroveFreeze(t *testing.T) {
	prereq.Root(t)
	a := replayScenario{datastore: managerMaria, volume: true}.ourAgent(t, nil)
	if got, want := a.fails("pre_create_backup", ""), "cannot freeze "+a.root+": no volume is mounted there"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	a.must("mount_volume", `{"device_path": `+quoteJSON(a.device)+`, "mount_point": `+quoteJSON(a.root)+`}`)
	a.equal("pre_create_backup", `{"kind": "snapshot"}`, "{}")
	t.Cleanup(func() { endTimers(t, a.root) })
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(filepath.Join(a.root, "file"), []byte("text"), 0o600) }()
	select {
	case err := <-written:
		t.Errorf("a frozen volume takes writes: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if got := a.fails("pre_create_backup", ""); got == "" {
		t.Error("a volume is frozen twice")
	}
	a.equal("post_create_backup", "", "{}")
	if err := <-written; err != nil {
		t.Error(err)
	}
	if got := a.fails("post_create_backup", ""); got == "" {
		t.Error("a volume is thawed twice")
	}

	// Without the call that thaws it, the volume thaws by itself.
	r := a.reg.Run(t.Context(), a.env, modules.Request{Fun: "fs.freeze", Args: []any{a.root}, Kwargs: map[string]any{"timeout": int64(1)}})
	if r.Return != true || r.Err != nil {
		t.Fatalf("fs.freeze: %+v", r)
	}
	begin := time.Now()
	if err := os.WriteFile(filepath.Join(a.root, "later"), []byte("text"), 0o600); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took < 500*time.Millisecond || took > time.Minute {
		t.Errorf("a volume that is frozen for a second takes writes after %s", took)
	}
}

// endTimers ends what would thaw a volume later.
func endTimers(t *testing.T, volume string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte("FS_VOLUME="+volume+"\x00")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
