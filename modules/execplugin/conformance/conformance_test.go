//go:build unix

package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/gobuild"
	"github.com/brine-salt/brine/internal/testkit/prereq"
)

const examples = "../../../examples/plugins/"

// TestExamples holds the example programs to the protocol.
func TestExamples(t *testing.T) {
	t.Run("shell", func(t *testing.T) { Run(t, examples+"hello.sh") })
	t.Run("Python", func(t *testing.T) {
		if _, err := exec.LookPath("python3"); err != nil {
			prereq.Missing(t, "python3")
		}
		Run(t, examples+"deploy.py")
	})
	t.Run("Go", func(t *testing.T) {
		program := filepath.Join(t.TempDir(), "counter")
		if err := gobuild.Build("", program, examples+"counter"); err != nil {
			t.Fatal(err)
		}
		Run(t, program)
	})
}

func TestProblems(t *testing.T) {
	program := filepath.Join(t.TempDir(), "bad")
	text := `#!/bin/sh
if [ $1 = describe ]; then
  echo '{"protocol": 1, "doc": "'$$'", "functions": {
    "bare": {}, "loud": {"doc": "x", "params": [{"name": "pw", "secret": true}], "examples": [{"args": ["hunter2"], "return": {"a": "b"}}]},
    "code": {"doc": "x", "examples": [{"retcode": 3}, {"error": "no disk"}]}, "late": {"doc": "x", "examples": [{"cancel": true}]}}}'
  exit
fi
[ $2 = late ] && echo on >&2
[ $2 = loud ] && cat >&2
echo 1
`
	if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	problems, err := Check(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"describe: two descriptions differ", "unknown function: the program answers for a function that it does not have",
		"bare: it has no documentation", "bare: it has no example", "loud, example 1: the secret pw is written to standard error",
		`loud, example 1: it returned 1, not {"a": "b"}`, "code, example 1: the return code is 0, not 3",
		`code, example 2: it returned 1, not an error with "no disk"`,
	} {
		if !slices.ContainsFunc(problems, func(p Problem) bool { return strings.HasPrefix(p.String(), want) }) {
			t.Errorf("no %q in %v", want, problems)
		}
	}
	if _, err := Check(t.Context(), "/bin/false"); err == nil {
		t.Error("a program without a description is taken")
	}
}

// TestSecondDescription: what goes wrong after the first description names the program and the cause.
func TestSecondDescription(t *testing.T) {
	program := filepath.Join(t.TempDir(), "once")
	text := `#!/bin/sh
[ -e "$0.done" ] && { echo "no second time" >&2; exit 3; }
touch "$0.done"
echo '{"protocol": 1, "functions": {"f": {"doc": "x", "examples": [{"return": {"a": "b"}}]}}}'
`
	if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	want := "cannot use " + program + ": describe ended with exit status 3: no second time"
	if _, err := Check(t.Context(), program); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
