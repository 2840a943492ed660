//go:build openstack

package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/openstack/lab"
)

// TestHeatNewest runs the engine and the APIs of the newest openstack-heat of the Python index: its engine has threads where Debian's has
// eventlet. It runs with BRINE_OPENSTACK=full. A stack with deployments in order is complete, and deleting it revokes its minion.
func TestHeatNewest(t *testing.T) {
	if os.Getenv("BRINE_OPENSTACK") != "full" {
		t.Skip("make openstack-scale runs it: it takes two minutes")
	}
	fetch := exec.CommandContext(testContext(t), "sh", "../python/tests/fetch-heat.sh")
	fetch.Stderr = os.Stderr
	out, err := fetch.Output()
	if err != nil {
		t.Fatal(err)
	}
	opts := labOptions()
	opts.HeatPython = strings.TrimSpace(string(out))
	// The package is installed as the page says, from a copy: building it writes beside the sources. Only where it goes, and that pip fetches
	// nothing to build it with, is the test's.
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "openstack/python"), os.DirFS("../python")); err != nil {
		t.Fatal(err)
	}
	opts.Python = filepath.Join(dir, "site")
	pip := exec.CommandContext(testContext(t), "sh", "-ec", snippet(t, "install-venv"))
	pip.Dir = dir
	pip.Env = append(os.Environ(), "PATH="+filepath.Dir(opts.HeatPython)+":/usr/bin:/bin", "PIP_TARGET="+opts.Python, "PIP_NO_DEPS=1",
		"PIP_NO_BUILD_ISOLATION=0", "PIP_QUIET=1")
	if out, err := pip.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l := startLab(t, opts)
	name := stackOf(t, l, stackTemplate(1, "OS::Salt::Minion", "OS::Salt::SoftwareDeployment", plainSteps), lab.StackArgs{})
	g := joinMinion(t, l, name, "s0", ours("brine-minion"))
	checkSteps(t, waitStack(t, l, name, "CREATE_COMPLETE"), []*lab.Guest{g}, plainSteps)
	deleteStack(t, l, name)
	awaitPresent(t, testContext(t), l.MasterSocket(0), 0)
}
