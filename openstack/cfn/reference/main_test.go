//go:build openstack

package reference

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// manifestVar makes the test program print the manifest of a directory.
const manifestVar = "BRINE_TEST_MANIFEST"

// agent is the path of heat-minion, built for the tests.
var agent string

func TestMain(m *testing.M) {
	if os.Getenv(manifestVar) != "" {
		if err := manifest(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "cfn-reference")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	agent = filepath.Join(dir, "heat-minion")
	build := exec.Command("go", "build", "-o", agent, "github.com/brine-salt/brine/openstack/cmd/heat-minion")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "cannot build heat-minion: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
