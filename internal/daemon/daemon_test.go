//go:build unix

package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	addr := &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"}
	supervisor, err := net.ListenUnixgram("unixgram", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer supervisor.Close()
	heard := func() string {
		t.Helper()
		buf := make([]byte, 200)
		n, err := supervisor.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
	pidfile := filepath.Join(dir, "run", "pid")
	reloaded, dumped := make(chan struct{}), make(chan []byte)
	failure := errors.New("ended")
	var log bytes.Buffer
	err = Run(t.Context(), Options{
		PIDFile: pidfile, Notify: addr.Name, Watchdog: "200000",
		Reload: func() { close(reloaded) }, Dump: func(b []byte) { dumped <- b }, Name: "Minion",
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	}, func(ctx context.Context, n *Notifier) error {
		if _, err := os.Stat(pidfile); err == nil {
			t.Error("there is a pid file before the work has what it needs")
		}
		n.Started()
		if b, _ := os.ReadFile(pidfile); string(b) != strconv.Itoa(os.Getpid()) {
			t.Errorf("pid file has %q", b)
		}
		n.Ready()
		for got := heard(); got != "READY=1"; got = heard() {
			if got != "WATCHDOG=1" {
				t.Errorf("supervisor heard %q", got)
			}
		}
		for heard() != "WATCHDOG=1" {
		}
		signalSelf(t, syscall.SIGHUP)
		<-reloaded
		signalSelf(t, dumpSignal)
		if b := <-dumped; !strings.Contains(string(b), "TestRun") {
			t.Errorf("the dump does not show this goroutine:\n%s", b)
		}
		signalSelf(t, syscall.SIGTERM)
		<-ctx.Done()
		return failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("Run gave %v", err)
	}
	if !strings.Contains(log.String(), "Minion received a SIGTERM. Exiting.") {
		t.Errorf("the log has %q", &log)
	}
	if _, err := os.Stat(pidfile); err == nil {
		t.Error("the pid file is still there")
	}
}

// TestAgain: the supervisor learns that the program stops, unless the program starts again in the same process.
func TestAgain(t *testing.T) {
	failure := errors.New("ended")
	for _, again := range []bool{false, true} {
		addr := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"}
		supervisor, err := net.ListenUnixgram("unixgram", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer supervisor.Close()
		o := Options{Notify: addr.Name, Again: func(err error) bool { return again && err == failure }}
		if err := Run(t.Context(), o, func(context.Context, *Notifier) error { return failure }); err != failure {
			t.Error(err)
		}
		n := newNotifier(addr.Name)
		n.send("end")
		n.Close()
		buf := make([]byte, 200)
		size, err := supervisor.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		want := "STOPPING=1"
		if again {
			want = "end"
		}
		if got := string(buf[:size]); got != want {
			t.Errorf("again %v: the supervisor hears %q, not %q", again, got, want)
		}
	}
}

// TestRunWithoutPIDFile: if the pid file cannot be written, the error is logged and the work starts.
func TestRunWithoutPIDFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	worked := false
	err := Run(t.Context(), Options{PIDFile: filepath.Join(file, "pid"), Log: slog.New(slog.NewTextHandler(&log, nil))},
		func(_ context.Context, n *Notifier) error { n.Started(); worked = true; return nil })
	if err != nil || !worked || !strings.Contains(log.String(), "cannot write pid file") {
		t.Errorf("worked: %v, error: %v, log: %s", worked, err, &log)
	}
}

// TestRefusedStart: a start that is refused does not remove the pid file of the running process, even if both have
// the same process id in different containers.
func TestRefusedStart(t *testing.T) {
	refused := errors.New("refused")
	for name, text := range map[string]string{"another's": "1", "the same id": strconv.Itoa(os.Getpid())} {
		pidfile := filepath.Join(t.TempDir(), "pid")
		if err := os.WriteFile(pidfile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Run(t.Context(), Options{PIDFile: pidfile}, func(context.Context, *Notifier) error { return refused })
		if b, _ := os.ReadFile(pidfile); err != refused || string(b) != text {
			t.Errorf("%s: %v, the pid file has %q", name, err, b)
		}
	}
}

// TestAwaitStart: only the complete text at the end of the output counts as started.
func TestAwaitStart(t *testing.T) {
	for text, want := range map[string]bool{"": false, "started\n": true, "a line\nstarted\n": true, "started\nfailed": false} {
		if got := awaitStart(strings.NewReader(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func signalSelf(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), sig); err != nil {
		t.Fatal(err)
	}
}
