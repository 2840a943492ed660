//go:build openstack

package trove

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// TestTroveT1Recorded runs testdata/contract.py with Debian's Trove 18 and compares its output with the recorded one.
func TestTroveT1Recorded(t *testing.T) {
	compareRecorded(t, "/usr/bin/python3", "api-18.json")
}

// compareRecorded runs the extractor with a Python that has Trove installed.
func compareRecorded(t *testing.T, python, file string) {
	t.Helper()
	if err := exec.Command(python, "-c", "import trove").Run(); err != nil {
		prereq.Missing(t, "Trove for "+python+" (Debian: python3-trove)")
	}
	cmd := exec.Command(python, "testdata/contract.py")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	got, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	want, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("Trove says something else now (-kept +now): %s", diff)
	}
}
