//go:build packages

package packages

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/openstack/lab"
)

// These are the versions of the packages that "make packages-test" builds. The second version exists for amd64 only.
const first, second = "0.1.0", "0.2.0"

// built returns a file below bin/packages that matches the pattern. A missing file fails the test.
func built(t *testing.T, pattern string) string {
	t.Helper()
	abs, err := filepath.Abs("../../../bin/packages/" + pattern)
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(abs)
	if err != nil || len(names) != 1 {
		t.Fatalf("%s is %v, not one file (%v): make packages-test builds it", abs, names, err)
	}
	return names[0]
}

// tools fails the test if a program is missing.
func tools(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			prereq.Missing(t, name)
		}
	}
}

// output runs a program and returns its standard output and standard error; it fails the test if the program fails.
func output(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}

// A master is the package's brine-master on this host, for machines in the host's network.
type master struct {
	dir, program string
	pub, ret     int
}

// startMaster starts a master that accepts every key.
func startMaster(t *testing.T) *master {
	t.Helper()
	return startMasterProgram(t, built(t, "linux-amd64/brine-master"))
}

// startMasterProgram is like startMaster, with another program.
func startMasterProgram(t *testing.T, program string) *master {
	t.Helper()
	dir, err := os.MkdirTemp("", "p") // short, for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &master{dir: dir, program: program, pub: freeport.Port(t), ret: freeport.Port(t)}
	conf := fmt.Sprintf("root_dir: %[1]s\npki_dir: %[1]s/pki\ncachedir: %[1]s/cache\nsock_dir: %[1]s/run\npidfile: %[1]s/pid\nlog_file: %[1]s/log\n"+
		"file_roots: {base: [%[1]s/srv/salt]}\npillar_roots: {base: [%[1]s/srv/pillar]}\ninterface: 127.0.0.1\npublish_port: %[2]d\nret_port: %[3]d\nuser: root\nauto_accept: true\ntimeout: 15\n", dir, m.pub, m.ret)
	if err := os.WriteFile(filepath.Join(dir, "master"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(m.program, "master", "-c", dir, "-l", "warning")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if t.Failed() {
			t.Logf("master: %s", log.String())
		}
	})
	await(t, "the master", func() error { _, err := m.try(t, "run", "manage.up"); return err })
	return m
}

// minionConf returns the lines that configure a minion for the master.
func (m *master) minionConf() string {
	return fmt.Sprintf("master: 127.0.0.1\npublish_port: %d\nmaster_port: %d\n", m.pub, m.ret)
}

func (m *master) try(t *testing.T, command string, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), m.program, append([]string{command, "-c", m.dir}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", command, strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return string(out), err
}

// call returns the result of a function on a minion.
func (m *master) call(t *testing.T, id string, args ...string) (any, error) {
	out, err := m.try(t, "salt", append([]string{"--out=json", "--static", id}, args...)...)
	var ret map[string]any
	if jerr := json.Unmarshal([]byte(out), &ret); jerr != nil {
		return nil, fmt.Errorf("%w: %q %w", jerr, out, err)
	}
	v, ok := ret[id]
	if !ok {
		return nil, fmt.Errorf("%s did not answer: %s %w", id, out, err)
	}
	return v, nil
}

// awaitPing waits until a minion answers.
func (m *master) awaitPing(t *testing.T, id string) {
	t.Helper()
	await(t, id, func() error {
		v, err := m.call(t, id, "test.ping")
		if err == nil && v != true {
			err = fmt.Errorf("test.ping = %v", v)
		}
		return err
	})
}

// await calls f until it returns nil, for at most two minutes.
func await(t *testing.T, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) || t.Context().Err() != nil {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// A host is a booted machine.
type host struct {
	*testing.T
	*lab.Guest
}

// boot starts a machine with Debian 12. It first runs the shell script setup in the machine's file system.
func boot(t *testing.T, name string, files map[string]string, setup string) *host {
	t.Helper()
	prereq.Root(t)
	tools(t, "systemd-nspawn", "mmdebstrap")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	root, err := lab.DebianRoot(ctx, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Empty(lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	g, err := l.StartMachine(ctx, name, lab.Machine{Root: root, Files: files, Setup: setup})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(g.Journal(context.WithoutCancel(ctx)))
		}
		g.Close()
	})
	h := &host{t, g}
	h.booted()
	return h
}

// booted waits until systemd has started everything.
func (h *host) booted() {
	h.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		out, err := h.Guest.Run(h.Context(), "systemctl", "is-system-running", "--wait")
		if state, _, _ := strings.Cut(strings.TrimSpace(out), "\n"); err == nil || state == "degraded" {
			return
		}
		if time.Now().After(deadline) { // before that, systemd does not listen yet
			h.Fatalf("systemd: %s %v", out, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// sh runs a shell script in the machine and returns its output; it fails the test if the script fails.
func (h *host) sh(format string, args ...any) string {
	h.Helper()
	script := fmt.Sprintf(format, args...)
	out, err := h.Guest.Run(h.Context(), "sh", "-ec", "export DEBIAN_FRONTEND=noninteractive\n"+script)
	if err != nil {
		h.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out
}

// want fails the test unless a shell script in the machine prints the given text.
func (h *host) want(want, script string) {
	h.Helper()
	if got := strings.TrimSpace(h.sh("%s", script)); got != want {
		h.Errorf("%s prints %q, not %q", script, got, want)
	}
}

// wantNoUnits waits until systemd knows no unit with such a name. It forgets a unit whose file is gone a moment after
// the last other unit that names it.
func (h *host) wantNoUnits(patterns string) {
	h.Helper()
	await(h.T, "units of removed packages", func() error {
		if got := h.sh("systemctl list-units --all --plain --no-legend %s", patterns); strings.TrimSpace(got) != "" {
			return fmt.Errorf("systemd knows %q", got)
		}
		return nil
	})
}

// freePorts returns two ports for a master in a machine.
func freePorts(t *testing.T) (pub, ret int) { return freeport.Port(t), freeport.Port(t) }

// page returns the commands of a page in docs: the first block that begins with the given text, without indentation.
func page(t *testing.T, name, begin string) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n\n    "+begin)
	if !found {
		t.Fatalf("docs/%s has no block that begins with %q", name, begin)
	}
	block, _, _ := strings.Cut(begin+rest, "\n\n")
	return strings.ReplaceAll(block, "\n    ", "\n")
}
