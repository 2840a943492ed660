//go:build unix

package cmdmod

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/modules"
)

// TestLiveOutput has a command wait for the file that the listener makes once the report of its first output has arrived: were the
// report not made while the command runs, the command would never end by itself.
func TestLiveOutput(t *testing.T) {
	flag := filepath.Join(t.TempDir(), "flag")
	var items []map[string]any
	q := modules.Request{Fun: "cmd.run_all", Pub: map[string]any{"jid": "20250101000000000000"},
		Args:   []any{"echo one; echo two >&2; until [ -e " + flag + " ]; do sleep 0.05; done; echo three"},
		Kwargs: map[string]any{"live_output": true, "timeout": int64(60)},
		Progress: func(item any) {
			items = append(items, item.(map[string]any))
			if err := os.WriteFile(flag, nil, 0o600); err != nil {
				t.Error(err)
			}
		}}
	res := modules.NewRegistry(Module).Run(t.Context(), host(t), q)
	got, _ := res.Return.(map[string]any)
	if got["stdout"] != "one\nthree" || got["stderr"] != "two" || res.Retcode != 0 {
		t.Fatalf("return %v, retcode %d, %v", res.Return, res.Retcode, res.Err)
	}
	if len(items) == 0 || items[0]["stdout"] != "one\n" || items[0]["stderr"] != "two\n" {
		t.Errorf("reported %v", items)
	}
}

// TestOutputLimit keeps the beginning and the end of what a command prints.
func TestOutputLimit(t *testing.T) {
	q := modules.Request{Fun: "cmd.run_all", Args: []any{"echo begin; yes | head -c 100000; echo end; echo error >&2"},
		Kwargs: map[string]any{"output_limit": int64(1000), "live_output": true, "python_shell": true}}
	res := modules.NewRegistry(Module).Run(t.Context(), host(t), q)
	got, _ := res.Return.(map[string]any)
	out, _ := got["stdout"].(string)
	if !strings.HasPrefix(out, "begin\ny\n") || !strings.HasSuffix(out, "\ny\nend") || !strings.Contains(out, "\n... 99010 bytes left out ...\n") ||
		len(out) > 1040 || got["stderr"] != "error" || got["truncated"] != true {
		t.Errorf("return %v %v", got, res.Err)
	}
}

func TestLiveOutputIsBounded(t *testing.T) {
	l := &liveOutput{left: [2]int{liveTotal, liveTotal}}
	total := 0
	for range 100 {
		l.seen(false, []byte(strings.Repeat("x", 10<<10)))
		if item := l.take(); item != nil {
			text := item["stdout"].(string)
			if len(text) > livePiece {
				t.Fatalf("a piece of %d bytes", len(text))
			}
			total += len(text)
		}
	}
	if total != liveTotal {
		t.Errorf("reported %d bytes, want %d", total, liveTotal)
	}
	if l.seen(true, []byte("a\xffb")); l.take()["stderr"] != "a\uFFFDb" {
		t.Error("a piece that is not UTF-8 was passed on as it is")
	}
}
