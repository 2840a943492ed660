package program

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/confine"
	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/minion/policy"
)

// sealedHost writes a configuration and a seal.
func sealedHost(t *testing.T, seal string) (dir string, opts map[string]any) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"etc", "cache", "run", "pki", "log"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil { //nolint:gosec // as on hosts
			t.Fatal(err)
		}
	}
	opts = map[string]any{"conf_file": filepath.Join(dir, "etc/minion"), "cachedir": filepath.Join(dir, "cache"), "sock_dir": filepath.Join(dir, "run"),
		"pki_dir": filepath.Join(dir, "pki"), "log_file": filepath.Join(dir, "log/minion")}
	text := "id: web1\nfile_client: local\nmaster_type: disable\n"
	for _, k := range []string{"cachedir", "sock_dir", "pki_dir", "log_file"} {
		text += k + ": " + opts[k].(string) + "\n"
	}
	for name, text := range map[string]string{"minion": text, "seal.yaml": seal} {
		if err := os.WriteFile(filepath.Join(dir, "etc", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, opts
}

// TestProtectedTrees: no seal and no option can make the seal, the configuration, the keys or the program writable.
func TestProtectedTrees(t *testing.T) {
	dir, opts := sealedHost(t, "")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "etc"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		write, option, value, want string
	}{
		{write: dir + "/srv"}, {write: dir + "/cache"}, {write: dir + "/etcetera"},
		{write: "/", want: "seal.yaml:3: / may not be writable"},
		{write: dir, want: "seal.yaml:3: " + dir + " may not be writable"},
		{write: dir + "/etc", want: "the seal and the configuration"},
		{write: dir + "/etc/minion.d", want: "the seal and the configuration"},
		{write: dir + "/link/minion.d", want: "the seal and the configuration"},
		{write: dir + "/pki/", want: "the keys"},
		{write: exe, want: "the running program"},
		{write: filepath.Dir(exe), want: "the running program"},
		{write: dir + "/srv", option: "cachedir", value: dir, want: "seal.yaml: " + dir + " may not be writable"},
		{write: dir + "/srv", option: "log_file", value: dir + "/pki/log", want: "the keys"},
		{write: dir + "/srv", option: "sock_dir", value: dir + "/etc", want: "the seal and the configuration"},
		{write: dir + "/srv", option: "conf_file", value: "", want: "without a configuration file"},
	} {
		s, err := policy.ParseSeal([]byte("functions: []\nwrite:\n  - "+c.write+"\n"), "seal.yaml")
		if err != nil {
			t.Fatal(err)
		}
		o := map[string]any{}
		for k, v := range opts {
			o[k] = v
		}
		if c.option != "" {
			o[c.option] = c.value
		}
		_, err = kernelRules(s, o, exe)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestSealNeedsTheKernel: if the kernel cannot enforce a seal, the minion serves only with the owner's consent
// (kernel: optional).
func TestSealNeedsTheKernel(t *testing.T) {
	_, opts := sealedHost(t, "")
	for text, want := range map[string]string{"": "kernel: optional", "kernel: required\n": "kernel: optional", "kernel: optional\n": ""} {
		s, err := policy.ParseSeal([]byte("functions: []\n"+text), "seal.yaml")
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		restrict := restrictor(s, opts, slog.New(slog.NewTextHandler(&log, nil)), slog.LevelWarn, func(confine.Rules) (confine.Report, error) {
			return confine.Report{Kernel: "no Landlock"}, confine.ErrUnsupported
		})
		err = restrict()
		var exit *minion.ExitError
		if want != "" && (!errors.As(err, &exit) || exit.Code != minion.ExitFinger || !strings.Contains(err.Error(), want)) ||
			want == "" && (err != nil || !strings.Contains(log.String(), "no Landlock")) {
			t.Errorf("%q: %v, %s", text, err, log.String())
		}
	}
}

// TestSealCheck covers what an owner sees of a seal before it takes effect.
func TestSealCheck(t *testing.T) {
	dir, _ := sealedHost(t, "functions:\n  - test.ping\n  - test.echo:\n      text: [a, b*]\nstates: [test.nop]\nprograms: [/nowhere/tool]\n")
	check := func(args ...string) (code int, text string) {
		var out bytes.Buffer
		c := &Console{Out: &out, Err: &out, Env: func(string) string { return "" }}
		return Seal(append([]string{"-c", filepath.Join(dir, "etc")}, args...), Options{Console: c}), out.String()
	}
	if os.Geteuid() == 0 {
		code, text := check("--check")
		for _, want := range []string{"Seal: " + dir + "/etc/seal.yaml\n", "Kernel: " + confine.Support() + "\n", "Masters: none\n", "Programs: /nowhere/tool\n", "Updates: false\n"} {
			if code != 0 || !strings.Contains(text, want) {
				t.Errorf("%d: no %q in %s", code, want, text)
			}
		}
	}
	if code, text := check(); code == 0 || !strings.Contains(text, "use --check") {
		t.Errorf("without --check: %d: %s", code, text)
	}
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("functions: []\nfunction: []\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, text := check("--check", bad); code != 1 || !strings.Contains(text, bad+":2: unknown key function") {
		t.Errorf("a damaged one: %d: %s", code, text)
	}
	if err := os.Remove(filepath.Join(dir, "etc/seal.yaml")); err != nil {
		t.Fatal(err)
	}
	if code, text := check("--check"); code != exitNoSeal || text != "This minion is not sealed.\n" {
		t.Errorf("without one: %d: %s", code, text)
	}
}

// TestDamagedSealServesNothing: neither program does anything, and both report why.
func TestDamagedSealServesNothing(t *testing.T) {
	prereq.Root(t) // only root's seals count
	dir, _ := sealedHost(t, "functions: [test.ping]\nprogramms: []\n")
	for name, run := range map[string]func(args []string, o Options) int{
		"salt-minion": func(args []string, o Options) int {
			return Minion(t.Context(), append(args, "--pid-file", filepath.Join(dir, "pid")), o)
		},
		"salt-call": func(args []string, o Options) int { return Call(t.Context(), append(args, "--local", "test.ping"), o) },
	} {
		var out bytes.Buffer
		c := &Console{Out: &out, Err: &out, Env: func(string) string { return "" }}
		code := run([]string{"-c", filepath.Join(dir, "etc"), "-l", "error"}, Options{Console: c})
		if code != minion.ExitFinger || !strings.Contains(out.String(), "seal.yaml:2: unknown key programms") {
			t.Errorf("%s: %d: %s", name, code, out.String())
		}
	}
}
