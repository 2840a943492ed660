//go:build interop

package interop

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// output2 collects the output of a process.
type output2 struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (o *output2) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output2) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// TestInterrupted ends the commands of stock and brine with Ctrl-C and with SIGTERM while they wait, and compares
// their output and exit codes.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	m := startStockMaster(t, "3007", "zeromq", "auto_accept: False\n")
	mark := m.bus.mark()
	start(t, ours("salt-minion"), "-c", m.minion(t, "web1", ""))
	m.bus.wait(mark, "salt/auth")
	output(t, ours("salt-key"), "-c", m.dir+"/etc", "-ya", "web1")
	m.bus.wait(mark, "salt/minion/web1/start")
	start(t, ours("salt-minion"), "-c", m.minion(t, "web2", ""))
	await(t, "a key is pending", func() bool { return exists(m.dir + "/pki/minions_pre/web2") })
	local := m.minion(t, "web3", "file_client: local\n")
	// onBus returns a function that reports whether an event with a matching tag has arrived since a program started.
	onBus := func(pattern string) func(from int, shown string) bool {
		return func(from int, _ string) bool {
			for _, e := range m.bus.since(from) {
				if ok, _ := filepath.Match(pattern, e.Tag); ok {
					return true
				}
			}
			return false
		}
	}
	for _, c := range []struct {
		line  string
		waits func(from int, shown string) bool
	}{
		{"salt web1 test.sleep 4", onBus("salt/job/*/new")},
		{"salt --hard-crash web1 test.sleep 4", onBus("salt/job/*/new")},
		{"salt -b 1 web1 test.sleep 4", onBus("salt/job/*/new")},
		{"salt-run test.sleep 20", onBus("salt/run/*/new")},
		{"salt-run --hard-crash test.sleep 20", onBus("salt/run/*/new")},
		{"salt-key -a web2", func(_ int, shown string) bool { return strings.Contains(shown, "Proceed?") }},
		{"salt-call --local -l error test.sleep 20", func(int, string) bool {
			files, _ := os.ReadDir(m.dir + "/web3/cache/proc")
			return len(files) > 0
		}},
	} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			type ended struct {
				Out  string
				Code int
			}
			seen := func(program func(string) string) ended {
				os.RemoveAll(m.dir + "/web3/cache/proc")
				words := strings.Fields(c.line)
				conf := m.dir + "/etc"
				if words[0] == "salt-call" {
					conf = local
				}
				cmd := exec.Command(program(words[0]), append([]string{"-c", conf}, words[1:]...)...)
				cmd.Env = append(os.Environ(), "HOME="+homeOf(t))
				cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				var out output2
				in, keyboard, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer in.Close()
				defer keyboard.Close()
				cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = in, &out, &out, time.Second
				from := m.bus.mark()
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				await(t, c.line+" waits", func() bool { return c.waits(from, out.String()) })
				time.Sleep(time.Second) // the event is fired before stock's client stores the job's id
				_ = syscall.Kill(-cmd.Process.Pid, sig)
				_ = cmd.Wait()
				text := regexp.MustCompile(`\d{20}`).ReplaceAllString(out.String(), "JID")
				// The log of --hard-crash, which in stock has no cause.
				text = strings.Replace(text, "[ERROR   ] NoneType: None\n\n", "", 1)
				// Stock's runner client reports the exit in the signal's handler as an exception of the runner.
				text = regexp.MustCompile(`(?s)Exception occurred in runner .*?SystemExit: \d\n(\[INFO    \] Runner completed: JID\n)?`).ReplaceAllString(text, "")
				return ended{text, cmd.ProcessState.ExitCode()}
			}
			inStock := func(p string) string { return stock(t, "3007", p) }
			theirs := seen(inStock)
			// Stock's handler exits wherever the program is. Within its event loop, which cannot be closed there, it
			// fails: one signal of some hundred.
			for range 3 {
				if !strings.Contains(theirs.Out, "RuntimeError: Cannot close a running event loop") {
					break
				}
				theirs = seen(inStock)
			}
			if diff := cmp.Diff(theirs, seen(ours)); diff != "" {
				t.Errorf("%s, %v (-stock +ours):\n%s", c.line, sig, diff)
			}
		}
	}
}
