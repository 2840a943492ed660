//go:build openstack

package original

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestInstall checks that the set is complete: each program runs, and everything that the image elements install
// exists.
func TestInstall(t *testing.T) {
	s, err := Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]string{"os-collect-config": "14.1.0", "os-apply-config": "14.1.0"} {
		if out, err := exec.Command(s.Program(program), "--version").CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s --version: %v %s, want %s", program, err, out, want)
		}
	}
	if out, err := exec.Command(s.Program("os-refresh-config"), "--print-base").CombinedOutput(); err != nil || string(out) != "/usr/libexec/os-refresh-config\n" {
		t.Errorf("os-refresh-config --print-base: %v %s", err, out)
	}
	root := t.TempDir()
	if err := s.LayOut(root, "/usr/bin/python3"); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{
		"usr/bin/heat-config-notify": 0o755, "var/lib/heat-config/hooks/script": 0o755, "var/lib/heat-config/hooks/salt": 0o755,
		"usr/libexec/os-refresh-config/configure.d/20-os-apply-config": 0o755, "usr/libexec/os-refresh-config/configure.d/55-heat-config": 0o755,
		"usr/libexec/os-apply-config/templates/etc/os-collect-config.conf": 0o644, "usr/libexec/os-apply-config/templates/var/run/heat-config/heat-config": 0o644,
	} {
		if info, err := os.Stat(filepath.Join(root, path)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v, want mode %o", path, info, err, mode)
		}
	}
	if n, err := s.Size(); err != nil || n < 20e6 || n > 300e6 {
		t.Errorf("size %d %v", n, err)
	}
}
