package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// TestHostItself tests against the real host: a full file system, few descriptors, directories that the user may not
// write to.
func TestHostItself(t *testing.T) {
	prereq.Root(t) // to mount a small file system
	full := t.TempDir()
	if err := syscall.Mount("tmpfs", full, "tmpfs", 0, "size=64k"); err != nil {
		prereq.Missing(t, "the right to mount: "+err.Error())
	}
	defer func() {
		if err := syscall.Unmount(full, 0); err != nil {
			t.Error(err)
		}
	}()
	if err := os.WriteFile(filepath.Join(full, "x"), make([]byte, 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := hostSpace(full)
	if err != nil || s.Free != 0 || s.Total != 64<<10 || s.ReadOnly {
		t.Errorf("a full file system: %+v, %v", s, err)
	}
	if l := room(full, s); l.State != Failure || !strings.Contains(l.Found, "the disk is full: 0 MB of 0 MB are free") {
		t.Errorf("%+v", l)
	}
	if err := syscall.Mount("", full, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if s, err := hostSpace(full); err != nil || !s.ReadOnly || room(full, s).State != Failure {
		t.Errorf("a read-only file system: %+v, %v", s, err)
	}
	if mayWrite(full) {
		t.Error("a read-only directory counts as writable")
	}
	if l := directory("cachedir", filepath.Join(full, "a", "b")); l.State != Failure || !strings.Contains(l.Found, " is missing, and cannot be created in "+full) {
		t.Errorf("%+v", l)
	}
	own, err := hostDescriptors(os.Getpid())
	if want, _ := hostDescriptors(0); err != nil || own != want || own < filesNeeded {
		t.Errorf("limit of this process %d, %v; want %d", own, err, want)
	}
}
