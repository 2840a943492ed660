package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	if ok, why := available(env); ok || why != "brine-update is not installed" {
		t.Errorf("without the program: %v %q", ok, why)
	}
}
