// Package testsalt asks stock Salt, for tests that compare with it: scripts beside a test run in its Python. It is for tests only.
package testsalt

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Python returns the interpreter of the virtual environment with stock Salt 3007, which the variable BRINE_SALT_3007
// names.
func Python(t testing.TB) string {
	t.Helper()
	venv := os.Getenv("BRINE_SALT_3007")
	if venv == "" {
		t.Fatal("BRINE_SALT_3007 must name a virtual environment with stock Salt 3007")
	}
	return filepath.Join(venv, "bin", "python")
}

// Ask runs a script, which gets a question as JSON and answers in JSON.
func Ask(t testing.TB, question, answer any, script string, args ...string) {
	t.Helper()
	in, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(Python(t), append([]string{"-B", script}, args...)...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if err := json.Unmarshal(out, answer); err != nil {
		t.Fatalf("%v: %.2000s", err, out)
	}
}
