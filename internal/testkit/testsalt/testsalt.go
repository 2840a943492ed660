// Package testsalt runs scripts in stock Salt's Python, for tests that compare with stock Salt. It is for tests only.
package testsalt

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Python returns the interpreter of stock Salt 3007's virtual environment, whose path is in the variable
// BRINE_SALT_3007.
func Python(t testing.TB) string {
	t.Helper()
	venv := os.Getenv("BRINE_SALT_3007")
	if venv == "" {
		t.Fatal("BRINE_SALT_3007 must name a virtual environment with stock Salt 3007")
	}
	return filepath.Join(venv, "bin", "python")
}

// Ask runs a script that reads a question and writes an answer, both in JSON.
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
