//go:build openstack && trove

package trove

import (
	"os"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// TestTroveT1Newest runs testdata/contract.py with the newest Trove of the Python package index and compares its output with the recorded
// one.
func TestTroveT1Newest(t *testing.T) {
	python := os.Getenv("BRINE_NEWEST_TROVE")
	if python == "" {
		prereq.Missing(t, "BRINE_NEWEST_TROVE, a Python with the newest Trove (make openstack-trove)")
	}
	compareRecorded(t, python, "api-26.json")
}
