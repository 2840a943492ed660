//go:build budgets && linux

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/internal/buildflags"
)

// maxSize is the size limit of the released program.
const maxSize = 12 << 20

func TestSize(t *testing.T) {
	out := filepath.Join(t.TempDir(), "program")
	goBuild(t, ".", out, append(buildflags.Release(), ".")...)
	info, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.2f MB of %.2f", float64(info.Size())/(1<<20), float64(maxSize)/(1<<20))
	if info.Size() > maxSize {
		t.Errorf("brine-update has %d bytes, more than %d", info.Size(), maxSize)
	}
}
