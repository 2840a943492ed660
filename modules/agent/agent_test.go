package agent

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/version"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// TestProgram has what the program is asked, and what becomes of its answers.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, program), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	var asked []string
	answer := ""
	env := modulestest.Env(t)
	env.Root = ""
	conf := env.Opts()["conf_file"].(string)
	env.Runner = modulestest.Runner(func(_ context.Context, c modules.Command) (modules.CommandResult, error) {
		asked = c.Args
		return modules.CommandResult{Stdout: []byte(answer)}, nil
	})
	r := modules.NewRegistry(Module)
	first := []string{dir + "/" + program, "--config-dir=" + filepath.Dir(conf) + "/"}
	for _, c := range []struct {
		fun, answer string
		args        []string
		err         string
		params      []any
		want        any
	}{
		{"agent.update", `{"from":"1.0.0","to":"1.1.0","result":true,"comment":"in place"}`, []string{"order", "--jid", "2026"}, "", nil,
			map[string]any{"from": "1.0.0", "to": "1.1.0", "result": true, "comment": "in place"}},
		{"agent.update", `{"result":false,"comment":"updates are switched off on this host"}`, []string{"order", "--jid", "2026", "--to", "1.1.0"},
			"updates are switched off on this host", []any{"1.1.0"}, nil},
		{"agent.update", "", []string{"order", "--jid", "2026"}, "cannot read the answer of brine-update: ", nil, nil},
		{"agent.status", `{"version":"1.0.0"}`, []string{"status", "--json"}, "", nil, map[string]any{"version": "1.0.0"}},
	} {
		answer = c.answer
		got := r.Run(t.Context(), env, modules.Request{Fun: c.fun, JID: "2026", Args: c.params})
		if c.err != "" {
			if text, _ := got.Return.(string); got.Success || !strings.Contains(text, c.err) {
				t.Errorf("%s: %+v, want the error %q", c.fun, got, c.err)
			}
		} else if d := cmp.Diff(c.want, got.Return); d != "" || !got.Success {
			t.Errorf("%s: %+v:\n%s", c.fun, got, d)
		}
		if d := cmp.Diff(append(first[:2:2], c.args...), asked); d != "" {
			t.Errorf("%s: asked\n%s", c.fun, d)
		}
	}
	t.Setenv("PATH", "")
	for _, fun := range []string{"agent.status", "agent.update"} {
		got := r.Run(t.Context(), env, modules.Request{Fun: fun})
		if text, _ := got.Return.(string); got.Success || text != "ERROR: cannot run "+fun+": brine-update is not installed" {
			t.Errorf("%s without the program: %+v", fun, got)
		}
	}
}

// TestDiagnostics has the values of this process, with or without brine-update.
func TestDiagnostics(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	t.Setenv("PATH", "")
	got := modules.NewRegistry(Module).Run(t.Context(), modulestest.Env(t), modules.Request{Fun: "agent.diagnostics"})
	d, _ := got.Return.(map[string]any)
	if !got.Success || len(d) != 7 || d["version"] != version.Brine() {
		t.Fatalf("%+v", got)
	}
	for name, least := range map[string]int64{"fd_size": 1, "threads": 1, "vm_rss": 1000, "vm_hwm": 1000, "vm_size": 1000, "vm_peak": 1000} {
		if n, ok := d[name].(int64); !ok || n < least {
			t.Errorf("%s is %v, less than %d", name, d[name], least)
		}
	}
}
