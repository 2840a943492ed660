package daemon

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// fileMemory is how much of the program file is in memory, in kB.
func fileMemory(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb
}

func TestTrim(t *testing.T) {
	before := fileMemory(t)
	Trim()
	after := fileMemory(t)
	if after >= before {
		t.Errorf("%d kB of the program were in memory before, %d after", before, after)
	}
}
