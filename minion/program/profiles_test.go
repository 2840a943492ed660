package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/minion/policy"
	"github.com/brine-salt/brine/modules"
)

const pkgDir = "../../pkg"

func profile(t *testing.T, name string) *policy.Seal {
	t.Helper()
	path := filepath.Join(pkgDir, "seal", name+".yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := policy.ParseSeal(text, path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestProfiles: each profile in pkg/seal can be used, permits only its owner's masters, and enforces what its table
// in docs/sealed.md promises.
func TestProfiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(pkgDir, "seal", "*.yaml"))
	if err != nil || len(files) != 4 {
		t.Fatalf("%d profiles, %v", len(files), err)
	}
	opts := map[string]any{"conf_file": "/etc/salt/minion", "cachedir": "/var/cache/salt/minion", "sock_dir": "/var/run/salt/minion",
		"pki_dir": "/etc/salt/pki/minion", "log_file": "/var/log/salt/minion"}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		s := profile(t, name)
		rules, err := kernelRules(s, opts, "/usr/bin/brine-minion")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s.NamesMasters() || s.Update || s.KernelOptional {
			t.Errorf("%s: masters %v, update %v, kernel optional %v", name, s.Masters, s.Update, s.KernelOptional)
		}
		if rules.NoLocalSockets != (name != "database") {
			t.Errorf("%s: local sockets %v", name, s.LocalSockets)
		}
		if quiet := name == "core" || name == "observe"; quiet != (len(rules.Execute) == 0) || quiet && len(s.Read)+len(s.Write) > 0 {
			t.Errorf("%s: %v %v %v", name, rules.Execute, s.Read, s.Write)
		}
		for _, fun := range []string{"cmd.run", "cmd.script", "state.apply", "state.single", "file.write", "file.read", "saltutil.sync_all", "saltutil.update",
			"saltutil.regen_keys", "grains.setval", "grains.get_or_set_hash", "cp.get_file", "cp.push", "pkg.install", "schedule.add", "beacons.add", "module.run",
			"config.manage_mode", "event.fire", "ps.kill_pid", "mount.mount", "http.query", "environ.setval", "publish.publish", "system.reboot"} {
			if err := s.Refuse(modules.Execution, fun); err == nil {
				t.Errorf("%s leaves %s", name, fun)
			}
		}
		for _, fun := range []string{"test.ping", "sys.list_functions", "saltutil.find_job", "grains.get"} {
			if err := s.Refuse(modules.Execution, fun); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := s.Refuse(modules.State, "test.nop"); err == nil {
			t.Errorf("%s leaves states", name)
		}
	}
}

// TestSealedExposure: the systemd drop-in for observe and core removes the rights that systemd can remove.
func TestSealedExposure(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		prereq.Missing(t, "systemd-analyze")
	}
	unit, err := os.ReadFile(filepath.Join(pkgDir, "systemd/salt-minion.service"))
	if err != nil {
		t.Fatal(err)
	}
	drop, err := os.ReadFile(filepath.Join(pkgDir, "systemd/brine-minion-sealed.conf"))
	if err != nil {
		t.Fatal(err)
	}
	merged := filepath.Join(t.TempDir(), "sealed.service")
	if err := os.WriteFile(merged, append(unit, drop...), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", merged).CombinedOutput()
	m := regexp.MustCompile(`Overall exposure level for sealed.service: ([0-9.]+)`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("%v: %s", err, out)
	}
	if score, err := strconv.ParseFloat(string(m[1]), 64); err != nil || score > 3.0 {
		t.Errorf("exposure %s, %v", m[1], err)
	}
	page, err := os.ReadFile("../../docs/sealed.md")
	if says := "rates the exposure of the minion at " + string(m[1]) + " of 10"; err != nil || !strings.Contains(string(page), says) {
		t.Errorf("docs/sealed.md does not say %q (%v)", says, err)
	}
}
