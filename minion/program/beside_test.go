package program

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/minion"
)

// TestBeside runs work next to a minion without a master, and ends both with the context.
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
