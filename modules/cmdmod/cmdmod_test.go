package cmdmod

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func run2(t *testing.T, e *modules.Env, fun string, pub bool, kwargs map[string]any, args ...any) modules.Result {
	t.Helper()
	q := modules.Request{Fun: "cmd." + fun, Args: args, Kwargs: kwargs}
	if pub {
		q.Pub = map[string]any{"jid": "20250101000000000000"}
	}
	return modules.NewRegistry(Module).Run(t.Context(), e, q)
}

// record is a runner that remembers the command.
func record(e *modules.Env) *modules.Command {
	got := new(modules.Command)
	e.Runner = modulestest.Runner(func(_ context.Context, c modules.Command) (modules.CommandResult, error) {
		*got = c
		return modules.CommandResult{Stdout: []byte("out\n"), ExitCode: 3, PID: 7}, nil
	})
	return got
}

// host is an environment on the real root directory, for tests that run programs.
func host(t *testing.T) *modules.Env {
	e := modulestest.Env(t)
	e.Root, e.Runner = "", &runcmd.Runner{}
	return e
}

// TestCommandsAreSafe: what another module runs is no shell's text unless cmd_safe is False.
func TestCommandsAreSafe(t *testing.T) {
	for safe, want := range map[any]string{true: "", false: "/bin/sh", nil: ""} {
		e := host(t)
		e.Opts = func() map[string]any { return map[string]any{"cmd_safe": safe} }
		cmd := record(e)
		if run2(t, e, "run", false, nil, "echo a"); cmd.Shell != want {
			t.Errorf("cmd_safe: %v: shell %q, want %q", safe, cmd.Shell, want)
		}
	}
}

func TestWhoInterpretsTheCommand(t *testing.T) {
	cases := map[string]struct {
		pub    bool
		kwargs map[string]any
		want   []string // Args, or shell and script
	}{
		"another module":          {false, nil, []string{"echo", "$A | x"}},
		"a job":                   {true, nil, []string{"/bin/sh", `echo '$A | x'`}},
		"a job without shell":     {true, map[string]any{"python_shell": false}, []string{"echo", "$A | x"}},
		"another module, shell":   {false, map[string]any{"python_shell": true}, []string{"/bin/sh", `echo '$A | x'`}},
		"a job with another one":  {true, map[string]any{"shell": "/bin/bash"}, []string{"/bin/bash", `echo '$A | x'`}},
		"no shell to split it by": {false, map[string]any{"shell": nil}, []string{"echo '$A | x'"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := host(t)
			cmd := record(e)
			res := run2(t, e, "run", c.pub, c.kwargs, `echo '$A | x'`)
			got := cmd.Args
			if cmd.Shell != "" {
				got = []string{cmd.Shell, cmd.Script}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (%v)", diff, res.Err)
			}
			if res.Return != "out" || res.Retcode != 3 {
				t.Errorf("got %v, %d", res.Return, res.Retcode)
			}
		})
	}
}

func TestLists(t *testing.T) {
	e := host(t)
	opts := map[string]any{"cmd_blacklist_glob": []any{"rm *", "*curl*"}, "cmd_whitelist_glob": []any{"ls*", "rm *"}}
	e.Opts = func() map[string]any { return opts }
	cases := []struct {
		cmd  any
		pub  bool
		want bool
	}{
		{"ls -l", true, true}, {"rm -rf /", true, false}, {"cat /etc/shadow", true, false}, {"ls; curl x", true, false},
		{[]any{"rm", "-rf"}, true, false}, {"rm -rf x", false, true}, {[]any{"ls", "1"}, true, true},
	}
	for _, c := range cases {
		cmd := record(e)
		res := run2(t, e, "run", c.pub, nil, c.cmd)
		ran := cmd.Shell != "" || cmd.Args != nil
		if ran != c.want {
			t.Errorf("%v: %v", c.cmd, res.Return)
		}
		if text, _ := res.Return.(string); !c.want && !strings.HasSuffix(text, "is not permitted") {
			t.Errorf("%v: %q", c.cmd, text)
		}
	}
}

// Secrets in arguments, environment or standard input must not come out in messages.
func TestSecretsStayOutOfErrors(t *testing.T) {
	e := host(t)
	res := run2(t, e, "run", true, map[string]any{"python_shell": false, "env": map[string]any{"PASSWORD": "canary"}, "stdin": "canary"}, "brine-no-such-program")
	if text, _ := res.Return.(string); !strings.HasPrefix(text, "ERROR: Unable to run command '['brine-no-such-program']' with the context '{'cwd': ") ||
		strings.Contains(text, "canary") {
		t.Errorf("got %q", text)
	}
	res = run2(t, e, "run", false, map[string]any{"output_loglevel": "quiet"}, "brine-no-such-program canary")
	if text, _ := res.Return.(string); !strings.Contains(text, "'REDACTED'") || strings.Contains(text, "canary") {
		t.Errorf("got %q", text)
	}
}

func TestTheJobsEnvironmentReachesTheCommand(t *testing.T) {
	e := host(t)
	job := &modules.Context{}
	job.Setenv("BRINE_A", "1")
	job.Unsetenv("HOME")
	res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: "cmd.run",
		Args: []any{"echo $BRINE_A ${HOME-none}"}, Kwargs: map[string]any{"python_shell": true}, Context: job})
	if res.Return != "1 none" {
		t.Errorf("got %v", res.Return)
	}
}

func TestScriptIsRemoved(t *testing.T) {
	e := host(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "s.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$0 $@\"; pwd\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	cp := &modules.Module{Name: "cp", Funcs: []modules.Def{{Name: "cache_file",
		Params: []modules.Param{{Name: "path"}, {Name: "saltenv"}},
		Run: func(_ context.Context, c *modules.Call) (any, error) {
			if c.Str("path") == "salt://s.sh" && c.Str("saltenv") == "base" {
				return script, nil
			}
			return false, nil
		}}}}
	r := modules.NewRegistry(Module, cp)
	res := r.Run(t.Context(), e, modules.Request{Fun: "cmd.script", Args: []any{"salt://s.sh", "a 'b c'"}, Kwargs: map[string]any{"cwd": work}})
	m, _ := res.Return.(map[string]any)
	lines := strings.Split(m["stdout"].(string), "\n")
	if len(lines) != 2 || !strings.HasSuffix(lines[0], ".sh a b c") || lines[1] != work || m["retcode"] != int64(0) {
		t.Errorf("got %v", m)
	}
	if left, _ := os.ReadDir(work); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	res = r.Run(t.Context(), e, modules.Request{Fun: "cmd.script", Args: []any{"salt://no.sh"}, Kwargs: map[string]any{"cwd": work}})
	if diff := cmp.Diff(cacheError(), res.Return); diff != "" {
		t.Error(diff)
	}
}

// TestScriptTemplate: the template engine expands the script with the names of the call, and leaves the command alone.
func TestScriptTemplate(t *testing.T) {
	e := host(t)
	script := filepath.Join(t.TempDir(), "s.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho NAME of FILE\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cp := &modules.Module{Name: "cp", Funcs: []modules.Def{{Name: "cache_file",
		Params: []modules.Param{{Name: "path"}, {Name: "saltenv"}},
		Run:    func(context.Context, *modules.Call) (any, error) { return script, nil }}}}
	e.Templates = func(_ context.Context, _ *modules.Call, t modules.Template) (any, error) {
		name, _ := t.Vars["name"].(string)
		file, _ := t.Vars["file"].(string)
		return strings.NewReplacer("NAME", name, "FILE", file).Replace(t.Text), nil
	}
	for _, args := range []string{"", "one two"} {
		res := modules.NewRegistry(Module, cp).Run(t.Context(), e, modules.Request{Fun: "cmd.script", Args: []any{"salt://s.sh"},
			Kwargs: map[string]any{"template": "jinja", "args": args, "python_shell": true, "name": "hidden", "file": "keyword",
				"context": map[string]any{"name": "context"}}})
		if m, _ := res.Return.(map[string]any); m["stdout"] != "context of keyword" {
			t.Errorf("with arguments %q: %v, %v", args, res.Return, res.Err)
		}
	}
}

func TestTemplates(t *testing.T) {
	e := host(t)
	e.Templates = func(_ context.Context, _ *modules.Call, t modules.Template) (any, error) {
		engine, text, vars := t.Pipe, t.Text, t.Vars
		if engine != "jinja" {
			return nil, modules.ErrEngine
		}
		return strings.ReplaceAll(text, "{{saltenv}}", vars["saltenv"].(string)), nil
	}
	cmd := record(e)
	run2(t, e, "run", false, map[string]any{"template": "jinja", "cwd": "/", "saltenv": "dev"}, "echo {{saltenv}}")
	if !slices.Equal(cmd.Args, []string{"echo", "dev"}) || cmd.Dir != "/" {
		t.Errorf("got %+v", cmd)
	}
	res := run2(t, e, "run", false, map[string]any{"template": "nosuch"}, "echo")
	if res.Return != "ERROR: Attempted to render file paths with unavailable engine nosuch" {
		t.Errorf("got %v", res.Return)
	}
}

// The expectations are what Python 3.11's bytes.decode("utf-8", "replace") gives.
func TestDecode(t *testing.T) {
	for in, want := range map[string]string{
		"a\xff": "a\ufffd", "\xe2\x82": "\ufffd", "\xe2\x82a": "\ufffda", "\xf0\x9f\x98": "\ufffd", "\xed\xa0\x80": "\ufffd\ufffd\ufffd",
		"\xc0\x80": "\ufffd\ufffd", "\xf5\x80": "\ufffd\ufffd", "\xe0\x9f\x80": "\ufffd\ufffd\ufffd", "é\ufffd": "é\ufffd",
	} {
		if got, err := decode([]byte(in), ""); err != nil || got != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	if _, err := decode(nil, "ebcdic"); err == nil || err.Error() != "LookupError: unknown encoding: ebcdic" {
		t.Errorf("got %v", err)
	}
}

func TestTTYTakesNoPaths(t *testing.T) {
	e := modulestest.Env(t)
	if err := os.MkdirAll(filepath.Join(e.Root, "dev/pts"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"dev/tty1", "dev/pts/3", "secret"} {
		if err := os.WriteFile(filepath.Join(e.Root, f), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for device, ok := range map[string]bool{"tty1": true, "pts3": true, "tty/../../secret": false, "pts/../../secret": false, "tty2": false} {
		res := run2(t, e, "tty", false, nil, device, "hello")
		if _, done := res.Return.(map[string]any)["Success"]; done != ok {
			t.Errorf("%s: %v", device, res.Return)
		}
	}
	if text, _ := os.ReadFile(filepath.Join(e.Root, "secret")); len(text) != 0 {
		t.Errorf("wrote %q", text)
	}
	if _, err := os.Stat(filepath.Join(e.Root, "dev/tty2")); err == nil {
		t.Error("made a file")
	}
}
