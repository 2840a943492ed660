//go:build unix

package brine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFuzzShortNeedsExecutions: make fuzz-short ends with an error where a target makes too few executions, the time for more
// included, where it fails, and not where Go took the end of the time for a failure.
func TestFuzzShortNeedsExecutions(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a_test.go"), []byte("package a\n\nfunc FuzzA(f *testing.F) {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, says string
		status     string
		ok         bool
	}{
		{"enough", "fuzz: elapsed: 10s, execs: 10000 (1000/sec)", "0", true},
		{"enough with more time", "fuzz: elapsed: 10s, execs: 5000 (500/sec)", "0", true},
		{"too few", "fuzz: elapsed: 60s, execs: 4999 (83/sec)", "0", false},
		{"none", "ok", "0", false},
		{"a finding", "fuzz: elapsed: 1s, execs: 20000\n    Failing input written to testdata", "1", false},
		{"the end of the time", "fuzz: elapsed: 10s, execs: 20000\n    context deadline exceeded", "1", true},
		{"a panic at the end", "fuzz: elapsed: 10s, execs: 20000\npanic: x\n    context deadline exceeded", "1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "go")
			script := "#!/bin/sh\nif [ \"$1\" = list ]; then echo '" + dir + "'; exit; fi\ncase \"$*\" in *-fuzzminimizetime\\ 1x*) ;; *) exit 9;; esac\n" +
				"cat <<'X'\n" + c.says + "\nX\nexit " + c.status + "\n"
			if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("make", "--no-print-directory", "fuzz-short", "GO="+program)
			cmd.Env = append(os.Environ(), "MAKEFLAGS=")
			out, err := cmd.CombinedOutput()
			if (err == nil) != c.ok || !strings.Contains(string(out), "FuzzA") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
