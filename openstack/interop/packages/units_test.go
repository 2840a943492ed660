//go:build packages

package packages

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestExposure compares systemd's exposure rating of the units (of 10) with the limits: the master's is a goal, the
// minion's is the number in docs/security.md.
func TestExposure(t *testing.T) {
	tools(t, "systemd-analyze")
	page, err := os.ReadFile("../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	for unit, c := range map[string]struct {
		most float64
		says string // the text on the page before the number
	}{"salt-master": {2.0, "rates the master's exposure at "}, "salt-minion": {9.4, "so that little can be taken from it ("}} {
		out := output(t, "systemd-analyze", "security", "--no-pager", "--offline=true", "../../../pkg/systemd/"+unit+".service")
		m := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("%s: %s", unit, out)
		}
		score, err := strconv.ParseFloat(m[1], 64)
		if err != nil || score > c.most {
			t.Errorf("the exposure of %s is %s, more than %v (%v)", unit, m[1], c.most, err)
		}
		t.Logf("%s: %s, at most %v", unit, m[1], c.most)
		if !strings.Contains(string(page), c.says+m[1]) {
			t.Errorf("docs/security.md does not say %q", c.says+m[1])
		}
	}
}

// TestWheelInstalled installs the wheel with pip, and runs the program that the sidecar finds.
func TestWheelInstalled(t *testing.T) {
	tools(t, "python3")
	dir := t.TempDir()
	output(t, "python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--target", dir,
		built(t, "out/brine_openstack-"+first+"-*x86_64.whl"))
	t.Setenv("PYTHONPATH", dir)
	program := strings.TrimSpace(output(t, "python3", "-c", "import brine_openstack.heat; from brine_openstack import sidecar; print(sidecar.find_program())"))
	if program != filepath.Join(dir, "brine_openstack/bin/brine-master") {
		t.Errorf("the sidecar's program is %s", program)
	}
	if out := output(t, program, "--version"); !strings.Contains(out, "v"+first) {
		t.Errorf("its version is %s", out)
	}
}
