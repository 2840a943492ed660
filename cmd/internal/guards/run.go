package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// verdict is the outcome of a test.
type verdict string

const (
	passes   verdict = "passes"  // for a removed guard: nothing detects it
	fails    verdict = "fails"   // the missing guard is detected
	hangs    verdict = "hangs"   // it did not end within its time limit
	skipped  verdict = "skipped" // it proves nothing
	notThere verdict = "no such test"
)

// outcome is a verdict, with the test's duration and output.
type outcome struct {
	verdict verdict
	took    time.Duration
	output  string
}

// runTest runs one test of a test program. removed is the guard to switch off, or "".
func runTest(ctx context.Context, root string, t testName, program, overlay, removed string,
	limit time.Duration) (outcome, error) {
	// The test program ends itself after its limit and reports where it hangs. It is killed if it does not.
	ctx, cancel := context.WithTimeout(ctx, limit+5*time.Second)
	defer cancel()
	parts := strings.Split(t.name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	cmd := exec.CommandContext(ctx, program, "-test.run", strings.Join(parts, "/"), "-test.v",
		"-test.timeout", limit.String())
	cmd.Dir = filepath.Join(root, filepath.FromSlash(t.dir))
	// The guard is also removed from programs that the test builds.
	cmd.Env = append(os.Environ(), switchEnv+"="+removed, "GOFLAGS="+
		strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second
	ownGroup(cmd)
	begin := time.Now()
	err := cmd.Run()
	o := outcome{took: time.Since(begin), output: out.String()}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil || strings.Contains(o.output, "panic: test timed out after"):
		o.verdict = hangs
	case errors.As(err, &exit):
		o.verdict = fails
	case err != nil:
		return o, fmt.Errorf("cannot run %s: %w", t, err)
	case strings.Contains(o.output, "testing: warning: no tests to run") ||
		!strings.Contains(o.output, "=== RUN   "+t.name+"\n"):
		o.verdict = notThere
	case !strings.Contains(o.output, "--- PASS: "+t.name+" "):
		o.verdict = skipped
	default:
		o.verdict = passes
	}
	return o, nil
}
