package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/modules"
)

func parse(t *testing.T, text string) *Seal {
	t.Helper()
	s, err := ParseSeal([]byte(text), "seal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDamagedSeals: each damaged seal is an error with the line, and never a more permissive seal.
func TestDamagedSeals(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "seal.yaml:1: it is empty",
		"functions: [test.ping\n": "cannot read the seal: ",
		"functions: [test.ping]\nfunctions: [cmd.run]\n":                 "functions",
		"functions: [test.ping]\nprogram: [/bin/ls]\n":                   "seal.yaml:2: unknown key program",
		"states: [file.managed]\n":                                       "seal.yaml:1: it has no functions",
		"functions: test.ping\n":                                         "seal.yaml:1: it must be a list",
		"functions:\n  - test\n":                                         `seal.yaml:2: "test" is not a function`,
		"functions:\n  - test.\n":                                        `seal.yaml:2: "test." is not a function`,
		"functions:\n  - cmd.run:\n":                                     "seal.yaml:2: a function is a name",
		"functions:\n  - cmd.run: [ls]\n":                                "seal.yaml:2: a function is a name",
		"functions:\n  - cmd.run: {}\n":                                  "seal.yaml:2: cmd.run has no conditions",
		"functions:\n  - cmd.run: {cmd: ls}\n    test.echo: {text: a}\n": "seal.yaml:2: a function is a name",
		"functions:\n  - cmd.run:\n      cmd: {ls: true}\n":              "seal.yaml:3: the condition of cmd must be globs",
		"functions:\n  - cmd.run:\n      cmd: [[ls]]\n":                  "seal.yaml:3: the condition of cmd must be globs",
		"functions: []\nprograms:\n  - bin/ls\n":                         `seal.yaml:3: "bin/ls" is not an absolute path`,
		"functions: []\nwrite:\n  - /srv/../etc\n":                       `seal.yaml:3: "/srv/../etc" is not an absolute path`,
		"functions: []\nread: /srv\n":                                    "seal.yaml:2: it must be a list",
		"functions: []\nupdate: maybe\n":                                 `seal.yaml:2: a switch is true or false, not "maybe"`,
		"functions: []\nlocal_sockets: yes\n":                            `seal.yaml:2: a switch is true or false, not "yes"`,
		"functions: []\nkernel: none\n":                                  "seal.yaml:2: kernel is required or optional, not none",
		"functions: []\nmasters: [aa:bb]\n":                              `seal.yaml:2: "aa:bb" is not a SHA-256 fingerprint`,
		"- functions\n":                                                  "seal.yaml:1: it is empty",
		"functions: &a [test.ping]\nstates: *a\n":                        "seal.yaml:2: it must be a list",
		"\x00": "cannot read the seal",
	} {
		s, err := ParseSeal([]byte(text), "seal.yaml")
		if err == nil || s != nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "seal.yaml") {
			t.Errorf("%q: %v, %v, want %q", text, s, err, want)
		}
	}
}

// TestConditions: which arguments a condition permits.
func TestConditions(t *testing.T) {
	for _, c := range []struct {
		condition string
		args      map[string]any
		want      bool
	}{
		{"path: [/var/log/*]", map[string]any{"path": "/var/log/syslog"}, true},
		{"path: [/var/log/*]", map[string]any{"path": "/var/log/apt/term.log"}, true},
		{"path: [/var/log/*]", map[string]any{"path": "/etc/shadow"}, false},
		{"path: [/var/log/*]", map[string]any{"path": "/var/log/../../etc/shadow"}, false},
		{"path: [/var/log/*]", map[string]any{"path": "/var/log/.."}, false},
		{"path: [/var/log/*]", map[string]any{"path": "/var/log//../x"}, false},
		{"path: [/var/log/*]", map[string]any{"path": "/var/log//x"}, false},
		{"path: [/var/log/*]", map[string]any{"path": "/var/log/./x"}, false},
		{"path: [/var/log/*]", map[string]any{"path": "/var/log/x/"}, true},
		{"path: [/var/log/*]", map[string]any{"path": "/var/log/x\n/etc/shadow"}, false},
		{"path: [/var/log/*]", map[string]any{"path": "/var/log/x\x00"}, false},
		{"path: [/var/log/*]", map[string]any{"path": "var/log/x"}, false},
		{"path: [/var/log/*]", map[string]any{}, false},
		{"path: [/var/log/*, '']", map[string]any{}, true},
		{"path: [/var/log/*]", map[string]any{"path": nil}, false},
		{"path: [/var/log/*]", map[string]any{"path": []any{"/var/log/a", "/var/log/b"}}, true},
		{"path: [/var/log/*]", map[string]any{"path": []any{"/var/log/a", "/etc/shadow"}}, false},
		{"path: [/var/log/*]", map[string]any{"path": []any{}}, false},
		{"path: [/var/log/*]", map[string]any{"path": map[string]any{"/var/log/a": "/etc/shadow"}}, false},
		{"path: [/var/log/*]", map[string]any{"path": map[any]any{int64(1): "/var/log/a"}}, false},
		{"source: ['salt://app/*']", map[string]any{"source": "salt://app/x"}, true},
		{"source: ['salt://app/*']", map[string]any{"source": "salt://app/../secret"}, false},
		{"source: ['salt://app/*']", map[string]any{"source": []any{"salt://app/x", map[string]any{"/etc/shadow": "md5"}}}, false},
		{"text: ['../x']", map[string]any{"text": "../x"}, true},
		{"n: ['5']", map[string]any{"n": int64(5)}, true},
		{"n: ['True']", map[string]any{"n": true}, true},
		{"runas: []", map[string]any{}, true},
		{"runas: []", map[string]any{"runas": "root"}, false},
		{"runas: []", map[string]any{"runas": nil}, false},
		{"cmd: [uptime], '*': []", map[string]any{"cmd": "uptime"}, true},
		{"cmd: [uptime], '*': []", map[string]any{"cmd": "uptime", "runas": "root"}, false},
		{"cmd: [uptime], '*': [nobody]", map[string]any{"cmd": "uptime", "runas": "nobody"}, true},
	} {
		s := parse(t, "functions: [{f.f: {"+c.condition+"}}]")
		err := s.RefuseArguments(modules.Execution, "f.f", func() map[string]any { return c.args })
		if (err == nil) != c.want || err != nil && !modules.IsRefused(err) {
			t.Errorf("%s of %v: %v", c.condition, c.args, err)
		}
	}
	s := parse(t, "functions: [{f.f: {a: x}}, {f.*: {a: y}}, f.free, {f.free: {a: z}}]\nstates: [f.g]")
	for _, c := range []struct {
		kind modules.Kind
		fun  string
		arg  string
		want string
	}{
		{modules.Execution, "f.f", "x", ""}, {modules.Execution, "f.f", "y", ""},
		{modules.Execution, "f.f", "z", `the policy of this minion does not allow f.f (seal.yaml:1: a may not be "z")`},
		{modules.Execution, "f.free", "any", ""}, {modules.State, "f.g", "any", ""},
		{modules.State, "f.f", "x", "the policy of this minion does not allow state:f.f (seal.yaml does not name it)"},
		{modules.Execution, "g.g", "x", "the policy of this minion does not allow g.g (seal.yaml does not name it)"},
		{modules.Returner, "g.returner", "x", "the policy of this minion does not allow g.returner (seal.yaml does not name it)"},
	} {
		err := s.Refuse(c.kind, c.fun)
		if err == nil {
			err = s.RefuseArguments(c.kind, c.fun, func() map[string]any { return map[string]any{"a": c.arg} })
		}
		if got := errorText(err); got != c.want {
			t.Errorf("%s of %q: %s", c.fun, c.arg, got)
		}
	}
	for fun, want := range map[string]string{"f.f": `allowed if a is "x", or if a is "y"`, "f.free": "allowed", "g.g": ""} {
		if got := s.Rules(modules.Execution, fun); got != want {
			t.Errorf("%s: %q", fun, got)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestSealedPrograms: symbolic links are resolved, both in the seal and in the program's path.
func TestSealedPrograms(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"one", "two", "tree/in", "tree2/in"} {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), nil, 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"named": "one", "toone": "one", "totwo": "two", "trees": "tree", "tree/out": "../two"} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	s := parse(t, "functions: []\nprograms: ["+at("named")+", "+at("trees")+"/, "+at("missing")+"]")
	for name, want := range map[string]bool{"one": true, "named": true, "toone": true, "two": false, "totwo": false, "tree/in": true, "trees/in": true,
		"tree/out": false, "tree2/in": false, "tree": false, "tree/../two": false, "tree/../one": true, "missing": true, "other": false} {
		if err := s.RefuseProgram(at("") + "/" + name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if (*Seal)(nil).Permit() != nil {
		t.Error("without a seal there is a check")
	}
}

// TestSealIsRoots: a file that another user could have written is refused, and the minion does not start without it.
func TestSealIsRoots(t *testing.T) {
	prereq.Root(t) // only root can give files to root
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // as /etc/salt
		t.Fatal(err)
	}
	path := filepath.Join(dir, SealFile)
	if s, err := LoadSeal(path); s != nil || err != nil {
		t.Errorf("without a file: %v, %v", s, err)
	}
	if err := os.WriteFile(path, []byte("functions: [test.ping]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if s, err := LoadSeal(path); s == nil || err != nil {
		t.Fatalf("a good one: %v, %v", s, err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := func(why string) {
		t.Helper()
		if s, err := LoadSeal(path); s != nil || err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v", why, s, err)
		}
	}
	must(os.Chmod(path, 0o664))
	refused("others can write to it (mode 0664): run chmod go-w")
	must(os.Chmod(path, 0o644))
	must(os.Chown(path, 65534, 0))
	refused("it does not belong to root: run chown root")
	must(os.Chown(path, 0, 0))
	must(os.Chmod(dir, 0o777))
	refused("others can replace it")
	must(os.Chmod(dir, 0o755))
	must(os.Chown(dir, 65534, 0))
	refused("others can replace it")
	must(os.Chown(dir, 0, 0))
	must(os.Truncate(path, maxSeal+1))
	refused("1048577 bytes")
	must(os.Remove(path))
	must(os.Symlink("/etc/passwd", path))
	refused("it is not a file")
	must(os.Remove(path))
	must(os.Mkdir(path, 0o755))
	refused("it is not a file")
}

// TestSealedOptions: under a seal, code in the host's directories or a state tree is never run, whatever the
// configuration says.
func TestSealedOptions(t *testing.T) {
	opts := map[string]any{"renderer_python": "local", "sudo_user": "root", "id": "m"}
	dirs := []string{"module_dirs", "states_dirs", "grains_dirs", "beacons_dirs", "returner_dirs", "render_dirs", "utils_dirs", "brine_modules_dirs"}
	for _, name := range dirs {
		opts[name] = []any{"/usr/local/lib/salt"}
	}
	got := parse(t, "functions: [test.ping]\nstates: [test.nop]\n").Options(opts)
	for _, name := range dirs {
		if list, ok := got[name].([]any); !ok || len(list) != 0 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
	if got["renderer_python"] != "" || got["sudo_user"] != "" || got["id"] != "m" || opts["renderer_python"] != "local" {
		t.Errorf("%v of %v", got, opts)
	}
}
