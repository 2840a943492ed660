//go:build interop

package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSecondStart checks that a daemon that finds another one running ends with stock's exit code, also in the
// background, for each line of stock. Stock removes the pid file of the running daemon; brine must not.
func TestSecondStart(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"salt-minion", "salt-master"} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			ours := secondStart(t, program, ours(program))
			for name, want := range map[string]any{"pid file while it runs": "its own", "pid file after it": ""} {
				if ours[name] != want {
					t.Errorf("%s: %v", name, ours[name])
				}
				delete(ours, name)
			}
			for _, line := range []string{"3006", "3007", "3008"} {
				theirs := secondStart(t, program, stock(t, line, program))
				t.Logf("stock %s: %v", line, theirs)
				delete(theirs, "pid file while it runs")
				delete(theirs, "pid file after it")
				if diff := cmp.Diff(theirs, ours); diff != "" {
					t.Errorf("%s (-stock +ours)\n%s", line, diff)
				}
			}
		})
	}
}

// secondStart returns the results of two more starts of a running daemon, with the state of its pid file and the
// result of its end.
func secondStart(t *testing.T, program, path string) map[string]any {
	s := newSite(t, "zeromq", "")
	conf, pidfile := filepath.Dir(s.config()), s.dir+"/master.pid"
	if program == "salt-minion" {
		conf = s.minion(t, "web1", "master_type: disable\n")
		pidfile = filepath.Dir(conf) + "/minion.pid"
	}
	first := start(t, path, "-c", conf)
	pid := ""
	await(t, "the first has its pid file", func() bool {
		b, _ := os.ReadFile(pidfile)
		pid = string(b)
		return pid != "" && (program == "salt-minion" || listening(s.ret))
	})
	seen := map[string]any{}
	_, seen["second"] = output(t, path, "-c", conf)
	_, seen["second in the background"] = output(t, path, "-c", conf, "--daemon")
	b, err := os.ReadFile(pidfile)
	seen["pid file while it runs"] = fmt.Sprint(err)
	if err == nil && string(b) == pid {
		seen["pid file while it runs"] = "its own"
	}
	if err := syscall.Kill(first.cmd.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	seen["first"] = first.wait()
	b, _ = os.ReadFile(pidfile)
	seen["pid file after it"] = string(b)
	return seen
}
