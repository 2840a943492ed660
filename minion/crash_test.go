//go:build !windows

package minion

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/tcp"
)

// The test binary runs itself as a minion that dies at a step of a job.
const (
	crashDirEnv  = "BRINE_TEST_CRASH_DIR"
	crashStepEnv = "BRINE_TEST_CRASH_STEP"
	crashAddrEnv = "BRINE_TEST_CRASH_MASTER"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDirEnv); dir != "" {
		if err := crashChild(dir, os.Getenv(crashAddrEnv), os.Getenv(crashStepEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// crashChild is a minion that kills itself, as kill -9 does, at the step.
func crashChild(dir, addr, step string) error {
	failpoint = func(at string) {
		if at == step {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	effect := &modules.Module{Name: "effect", Funcs: []modules.Def{{Name: "once", Run: func(_ context.Context, c *modules.Call) (any, error) {
		f, err := os.OpenFile(filepath.Join(dir, "effects"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		_, err = fmt.Fprintln(f, c.JID)
		return "done", err
	}}}}
	m, err := New(Options{Opts: map[string]any{"id": "alpha", "pki_dir": filepath.Join(dir, "pki"), "cachedir": filepath.Join(dir, "cache"),
		"master": addr, "transport": "tcp", "mine_enabled": false},
		Dialers: map[string]transport.Dialer{"tcp": tcp.New()}, Registry: modules.NewRegistry(testModule, effect),
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	return m.Run(context.Background())
}

// R2: a minion that is killed at any step of a job runs it at most once and always reports it, at least once.
func TestKilledAtEveryStep(t *testing.T) {
	for _, step := range []string{"journalled", "running", "ran", "spooled", "sent", "acknowledged"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			f := newFakeOn(t, tcp.Listen, "127.0.0.1:0", 0)
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "pki"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "pki", "minion.pem"), testKey(t, minionKey).PEM(), 0o400); err != nil {
				t.Fatal(err)
			}
			start := func(step string) *exec.Cmd {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), crashDirEnv+"="+dir, crashStepEnv+"="+step, crashAddrEnv+"="+f.addr)
				cmd.Stderr = os.Stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { cmd.Process.Kill() })
				return cmd
			}
			present := func() {
				t.Helper()
				deadline := time.Now().Add(2 * time.Minute)
				for f.srv.Subscribers() == 0 {
					if time.Now().After(deadline) {
						t.Fatal("the minion does not connect")
					}
					time.Sleep(5 * time.Millisecond)
				}
			}
			cmd := start(step)
			present()
			f.publish(jobMap(jidAt(1), "effect.once", nil))
			if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
				t.Fatalf("the minion ended by itself: %v", err)
			}
			for f.srv.Subscribers() > 0 {
				time.Sleep(5 * time.Millisecond)
			}
			cmd = start("none")
			present()
			got := f.await("return", isReturn(jidAt(1)))
			text, _ := got["return"].(string)
			ran := effects(t, dir)
			if len(ran) > 1 {
				t.Errorf("the job ran %d times", len(ran))
			}
			switch step {
			case "journalled", "running":
				if len(ran) != 0 || !strings.HasPrefix(text, "ERROR: the job was interrupted") {
					t.Errorf("ran %d times, returned %q", len(ran), text)
				}
			case "ran":
				if len(ran) != 1 || !strings.HasPrefix(text, "ERROR: the job was interrupted") {
					t.Errorf("ran %d times, returned %q", len(ran), text)
				}
			default:
				if len(ran) != 1 || text != "done" {
					t.Errorf("ran %d times, returned %q", len(ran), text)
				}
			}
			// Published again, as by a replay: it does not run.
			f.publish(jobMap(jidAt(1), "effect.once", nil))
			f.publish(jobMap(jidAt(2), "test.ping", nil))
			f.await("return", isReturn(jidAt(2)))
			if again := effects(t, dir); len(again) != len(ran) {
				t.Errorf("the job ran again: %v", again)
			}
			cmd.Process.Kill()
			cmd.Wait()
		})
	}
}

func effects(t *testing.T, dir string) []string {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "effects"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []string
	for s := bufio.NewScanner(f); s.Scan(); {
		lines = append(lines, s.Text())
	}
	return lines
}
