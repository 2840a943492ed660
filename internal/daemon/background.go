package daemon

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// detachedEnv marks the background process of --daemon.
const detachedEnv = "BRINE_DETACHED"

// startedText is the message that the background process writes to its standard output once it has started.
const startedText = "started\n"

// InBackground reports whether env belongs to a process that [Background] started.
func InBackground(env func(string) string) bool { return env(detachedEnv) != "" }

// Background starts the program again without a terminal, in a new session, and waits until it has started
// ([Notifier.Started]) or ended. Until then its messages go to this terminal, like stock's before the fork. The
// result is the exit code for this process: 0, or the exit code of a background process that did not start.
func Background() (int, error) {
	program, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("cannot start the daemon: %w", err)
	}
	code, err := detachAndWait(program, os.Args, append(os.Environ(), detachedEnv+"=1"))
	if err != nil {
		return 0, fmt.Errorf("cannot start the daemon: %w", err)
	}
	return code, nil
}

// awaitStart reads the standard output of the background process until the process closes it, which happens when it
// has started or ended.
func awaitStart(out io.Reader) (started bool) {
	b, _ := io.ReadAll(io.LimitReader(out, 1<<20))
	return strings.HasSuffix(string(b), startedText)
}
