//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/minion/program"
)

// interruptedCall is the environment variable with the command line for the copy of the test.
const interruptedCall = "BRINE_INTERRUPTED_CALL"

// TestInterruptedCall ends salt-call by signals while a function runs a program. salt-call ends at once; the program
// finishes by itself.
func TestInterruptedCall(t *testing.T) {
	if line := os.Getenv(interruptedCall); line != "" {
		os.Exit(run(context.Background(), program.OSConsole(), strings.Split(line, "\n")))
	}
	for _, c := range []struct {
		sig  syscall.Signal
		flag string
		code int
		err  string
	}{
		{syscall.SIGINT, "--local", 0, "\nExiting gracefully on Ctrl-c\n"},
		{syscall.SIGTERM, "--local", 0, ""},
		{syscall.SIGTERM, "--hard-crash", 1, "\nExiting with hard crash on Ctrl-c\n"},
	} {
		dir := minionTree(t, "file_client: local\n")
		begun, ended := filepath.Join(dir, "begun"), filepath.Join(dir, "ended")
		cmd := exec.Command(os.Args[0], "-test.run=^TestInterruptedCall$")
		cmd.Env = append(os.Environ(), interruptedCall+"="+strings.Join([]string{"salt-call", "-c",
			dir, "-l", "quiet", c.flag, "cmd.run",
			"touch " + begun + "; while [ ! -e " + dir + "/go ]; do sleep .05; done; touch " + ended},
			"\n"))
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		awaitFile(t, begun)
		if err := cmd.Process.Signal(c.sig); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != c.code || out.String() != "" ||
			errs.String() != c.err {
			t.Errorf("%v %s: exit code %d, output %q, errors %q", c.sig, c.flag, code, &out, &errs)
		}
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		awaitFile(t, ended)
	}
}

// awaitFile waits until a file exists.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal("there is no " + path)
		}
	}
}
