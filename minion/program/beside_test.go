package program

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/modules"
)

// TestBeside: Beside runs next to a minion without a master, and both end with the context.
func TestBeside(t *testing.T) {
	dir := t.TempDir()
	text := "id: web1\nroot_dir: " + dir + "\nsock_dir: s\n"
	if err := os.WriteFile(filepath.Join(dir, "minion"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var errs bytes.Buffer
	var fired error
	o := Options{
		Console:         &Console{Out: &errs, Err: &errs, Env: func(string) string { return "" }},
		NoDefaultMaster: true,
		Beside: func(ctx context.Context, m *minion.Minion, opts map[string]any, _ *slog.Logger, ended <-chan struct{}, _ func()) {
			if opts["master_type"] != "disable" {
				t.Errorf("a minion without the option master has the master_type %v", opts["master_type"])
			}
			fired = m.Fire(ctx, "some/tag", "data")
			cancel()
			<-ended
		},
	}
	if code := Minion(ctx, []string{"-c", dir, "--pid-file", filepath.Join(dir, "pid")}, o); code != 0 {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	if fired != minion.ErrNotConnected {
		t.Errorf("an event without a master: %v", fired)
	}
}

// TestDeclaredOptions: an option that a module of the agent declares is not reported as unknown.
func TestDeclaredOptions(t *testing.T) {
	modules.RegisterOptions("shop_hours")
	dir := t.TempDir()
	text := "id: web1\nroot_dir: " + dir + "\nsock_dir: s\nlog_level: info\nshop_hours: {open: 8}\nshop_huors: 3\nother: 1\n"
	if err := os.WriteFile(filepath.Join(dir, "minion"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var errs bytes.Buffer
	o := Options{
		Console:         &Console{Out: &errs, Err: &errs, Env: func(string) string { return "" }},
		NoDefaultMaster: true,
		Beside: func(_ context.Context, _ *minion.Minion, _ map[string]any, _ *slog.Logger, ended <-chan struct{}, _ func()) {
			cancel()
			<-ended
		},
	}
	if code := Minion(ctx, []string{"-c", dir, "--pid-file", filepath.Join(dir, "pid")}, o); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for want, count := range map[string]int{"'shop_hours' is unknown": 0, "'shop_huors' is unknown; did you mean 'shop_hours'?": 1, "'other' is unknown": 1} {
		if n := strings.Count(errs.String(), want); n != count {
			t.Errorf("%q is in the log %d times:\n%s", want, n, errs.String())
		}
	}
}
