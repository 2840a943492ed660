package ansiblegate

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

// host is an environment that has the programs of Ansible; run answers for them.
func host(t *testing.T, run modulestest.Runner) *modules.Env {
	t.Helper()
	e := modulestest.Env(t)
	e.Runner = run
	t.Setenv("PATH", "/usr/bin")
	dir := filepath.Join(e.Root, "usr", "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range [...]string{"ansible", "ansible-doc", "ansible-playbook"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

func TestDiscover(t *testing.T) {
	listing := `{"ansible.builtin.ping": "try", "ansible.builtin._old": "x", "ansible.windows.ping": "w", "a.b.c": "own", "ansible.builtin.call": "no"}`
	e := host(t, func(_ context.Context, c modules.Command) (modules.CommandResult, error) {
		if want := []string{"/usr/bin/ansible-doc", "--list", "--json", "--type=module"}; !slices.Equal(c.Args, want) {
			return modules.CommandResult{}, modules.Errorf("unexpected %v", c.Args)
		}
		return modules.CommandResult{Stdout: []byte(listing)}, nil
	})
	r := modules.NewRegistry(Module)
	want := []string{"ansible.a.b.c", "ansible.builtin._old", "ansible.builtin.call", "ansible.builtin.ping", "ansible.call",
		"ansible.discover_playbooks", "ansible.help", "ansible.list", "ansible.ping", "ansible.playbooks", "ansible.targets", "ansible.windows.ping"}
	if diff := cmp.Diff(want, r.Functions(e)); diff != "" {
		t.Error(diff)
	}
	def, err := r.Lookup("ansible.ping", e)
	if err != nil || def.Doc != "try" {
		t.Errorf("ansible.ping: %v, %v", def, err)
	}
}

func TestDiscoverFails(t *testing.T) {
	for _, c := range []struct {
		name string
		res  modules.CommandResult
		want string
	}{
		{"exit", modules.CommandResult{ExitCode: 1, Stderr: []byte("broken")},
			"'ansible' __virtual__ returned False: Failed to get the listing of ansible modules:\nbroken"},
		{"words", modules.CommandResult{Stdout: []byte("no modules")},
			"'ansible' __virtual__ returned False: cannot read the listing of ansible modules: ansible-doc printed no JSON object"},
		{"list", modules.CommandResult{Stdout: []byte("[1]")},
			"'ansible' __virtual__ returned False: cannot read the listing of ansible modules: ansible-doc printed no JSON object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := host(t, func(context.Context, modules.Command) (modules.CommandResult, error) { return c.res, nil })
			if _, err := modules.NewRegistry(Module).Lookup("ansible.ping", e); err == nil || err.Error() != c.want {
				t.Errorf("error %q, want %q", err, c.want)
			}
		})
	}
}

func TestAnswer(t *testing.T) {
	const failed = "Command '['ansible']' "
	for _, c := range []struct {
		name, stdout, stderr string
		code                 int
		want                 map[string]any
	}{
		{"json", "localhost | SUCCESS => {\n \"changed\": false, \"ping\": \"pong\", \"invocation\": {}\n}\n", "", 0, map[string]any{"ping": "pong"}},
		{"text", "localhost | CHANGED | rc=0 >>\r\none\ntwo\n", "", 0, map[string]any{"output": "one\ntwo"}},
		{"other", "nothing said\n", "", 0, map[string]any{"output": "nothing said\n"}},
		{"cut", "x => {\n \"a\": 1\n", "warned", 0, map[string]any{"Error": "warned", "Output": "x => {\n \"a\": 1\n"}},
		{"failed", "", "", 2, map[string]any{"Exitcode": int64(2), "Error": failed + "returned non-zero exit status 2."}},
		{"killed", "half", "", -9, map[string]any{"Exitcode": int64(-9), "Error": failed + "died with signal 9.", "Given JSON output": "half"}},
		{"reason", "{}", "why", 4, map[string]any{"Exitcode": int64(4), "Error": "why", "Given JSON output": "{}"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := answer([]string{"ansible"}, modules.CommandResult{Stdout: []byte(c.stdout), Stderr: []byte(c.stderr), ExitCode: c.code})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := answer(nil, modules.CommandResult{}); err == nil {
		t.Error("no output is no error")
	}
}

// TestTimeout: the option bounds a module, and the error names it.
func TestTimeout(t *testing.T) {
	e := host(t, func(_ context.Context, c modules.Command) (modules.CommandResult, error) {
		if c.Args[0] != "/usr/bin/ansible" {
			return modules.CommandResult{Stdout: []byte("{}")}, nil
		}
		return modules.CommandResult{TimedOut: c.Timeout.Seconds() == 1.5}, nil
	})
	opts := map[string]any{"ansible_timeout": 1.5}
	e.Opts = func() map[string]any { return opts }
	res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: "ansible.call", Args: []any{"pause"}})
	if name, text := modules.Exception(res.Err); name != "subprocess.TimeoutExpired" || text[len(text)-len("timed out after 1.5 seconds"):] != "timed out after 1.5 seconds" {
		t.Errorf("error %s %q", name, text)
	}
}
