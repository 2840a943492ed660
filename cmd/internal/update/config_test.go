package update

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/internal/testkit/prereq"
)

func TestConfig(t *testing.T) {
	c := &Config{}
	text := "update_enabled: true\nsource: [https://a.example/brine, 'salt://updates']\nchannel: edge\nroot: /r.json\nprogram: /p\nstate_dir: /s/\n" +
		"restart: [/bin/true, now]\nhealth_seconds: 5\ndownload_seconds: 7200\n"
	if err := c.parse([]byte(text), "update.yaml"); err != nil {
		t.Fatal(err)
	}
	want := &Config{Enabled: true, Sources: []string{"https://a.example/brine", "salt://updates"}, Channel: "edge", Root: "/r.json", Program: "/p",
		StateDir: "/s", Restart: []string{"/bin/true", "now"}, Health: 5 * time.Second, Download: 2 * time.Hour}
	if d := cmp.Diff(want, c); d != "" {
		t.Error(d)
	}
	for text, want := range map[string]string{
		"update_enabled: yes":            "update.yaml:1: update_enabled must be true or false, not \"yes\"",
		"\nupdate_enable: true":          "update.yaml:2: unknown option update_enable",
		"channel: stable\nchannel: edge": "found conflicting ID 'channel'\n  in \"update.yaml\", line 2, column 1",
		"channel: beta":                  "update.yaml:1: unknown channel \"beta\"; channels are stable and edge",
		"source: ftp://a/b":              "the source \"ftp://a/b\" is neither http://, https:// nor salt://",
		"source: https://":               "the source \"https://\" is not the URL of a directory",
		"source: {a: b}":                 "it must be a text or a list of texts",
		"program: brine-minion":          "\"brine-minion\" is not an absolute path",
		"restart: systemctl restart":     "restart must begin with the absolute path of a program",
		"health_seconds: 1":              "\"1\" is not a number of seconds from 5 to 600",
		"download_seconds: -1":           "\"-1\" is not a number of seconds from 10 to 7200",
		"- a":                            "it must be a mapping",
		"update_enabled: true":           "update_enabled is true, and there is no source",
		"update_enabled: [":              "cannot read the configuration of updates: ",
		"source: [" + strings.Repeat("http://a/b, ", 9) + "]": "there are more than 8 sources",
	} {
		if err := (&Config{}).parse([]byte(text), "update.yaml"); err == nil || !strings.HasPrefix(err.Error(), "cannot ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestConfigIsRoots: a file that another user could have written is refused. Without a file, updates are off.
func TestConfigIsRoots(t *testing.T) {
	prereq.Root(t) // it needs root to give files away
	dir := t.TempDir()
	if c, err := LoadConfig(dir); err != nil || c.Enabled || c.StateDir != "/var/lib/brine-update" || c.Health != time.Minute {
		t.Errorf("without a file: %+v %v", c, err)
	}
	file := filepath.Join(dir, ConfigFile)
	if err := os.WriteFile(file, []byte("update_enabled: false\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadConfig(dir); err != nil {
		t.Error(err)
	}
	root := filepath.Join(dir, RootFile)
	on := []byte("update_enabled: true\nsource: https://a.example/brine\n")
	if err := errors.Join(os.WriteFile(file, on, 0o644), os.WriteFile(root, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if c, err := LoadConfig(dir); err != nil || !c.Enabled {
		t.Errorf("%+v %v", c, err)
	}
	if err := os.Chmod(root, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadConfig(dir); err == nil || err.Error() != "cannot use the pinned keys "+root+": others can write to it (mode 0666): run chmod go-w" {
		t.Errorf("keys that others may write: %v", err)
	}
	if err := os.Chmod(root, 0o644); err != nil {
		t.Fatal(err)
	}
	for what, damage := range map[string]func() error{
		"others can write to it (mode 0666): run chmod go-w": func() error { return os.Chmod(file, 0o666) },
		"it does not belong to root: run chown root":         func() error { return os.Chown(file, 65534, 65534) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadConfig(dir); err == nil || err.Error() != "cannot use "+file+": "+what {
			t.Errorf("%v, want %s", err, what)
		}
		if err := errors.Join(os.Chmod(file, 0o644), os.Chown(file, 0, 0)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStateDirIsRoots: programs are not put where another user could replace them before they run as root.
func TestStateDirIsRoots(t *testing.T) {
	prereq.Root(t)
	dir := t.TempDir()
	u := &Updater{Config: &Config{StateDir: dir}}
	takes := func() error {
		release, err := u.lock()
		if err == nil {
			release()
		}
		return err
	}
	if err := takes(); err != nil {
		t.Error(err)
	}
	for what, damage := range map[string]func() error{
		"others can replace it":      func() error { return os.Chmod(dir, 0o777) },
		"must belong to root":        func() error { return os.Chown(dir, 65534, 65534) },
		"it does not belong to root": func() error { return os.Chown(filepath.Join(dir, lockFile), 65534, 65534) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if err := takes(); err == nil || !strings.HasPrefix(err.Error(), "cannot use the state directory "+dir+": ") || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %s", err, what)
		}
		if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, 0, 0), os.Chown(filepath.Join(dir, lockFile), 0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	// What another user puts in place of the lock is not written to.
	target, lock := filepath.Join(t.TempDir(), "target"), filepath.Join(dir, lockFile)
	err := errors.Join(os.WriteFile(target, []byte("kept"), 0o600), os.Remove(lock), os.Link(target, lock), os.Chown(dir, 65534, 65534))
	if err != nil {
		t.Fatal(err)
	}
	if err := takes(); err == nil {
		t.Error("a directory of another user is used")
	}
	if b, err := os.ReadFile(target); string(b) != "kept" || err != nil {
		t.Errorf("root wrote %q, %v", b, err)
	}
	if err := errors.Join(os.Remove(lock), os.Chown(dir, 0, 0)); err != nil {
		t.Fatal(err)
	}
	if err := takes(); err != nil {
		t.Error(err)
	}
}

// TestSample: the package's sample file is valid, and switches updates off.
func TestSample(t *testing.T) {
	text, err := os.ReadFile("../../../pkg/update/update.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := &Config{}
	if err := c.parse(text, "update.yaml"); err != nil || c.Enabled {
		t.Errorf("%+v %v", c, err)
	}
	var on []byte
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("#")); ok && !bytes.HasPrefix(rest, []byte(" ")) {
			line = rest
		}
		on = append(on, line...)
	}
	if err := c.parse(on, "update.yaml"); err != nil || len(c.Sources) != 1 || c.Health != time.Minute || c.Program != defaultProgram {
		t.Errorf("with every line on: %+v %v", c, err)
	}
}

// TestCommands tests the output and exit codes of the commands.
func TestCommands(t *testing.T) {
	prereq.Root(t) // update.yaml is a file of root
	l, u := linuxLab(t)
	l.must(os.WriteFile(filepath.Join(u.Dir, "minion"), []byte("id: host\nroot_dir: "+u.Dir+"\n"), 0o644))
	write := func(enabled string) {
		l.must(os.WriteFile(filepath.Join(u.Dir, ConfigFile), []byte("update_enabled: "+enabled+"\nsource: "+l.server.URL+"\nprogram: "+u.Program+
			"\nstate_dir: "+u.StateDir+"\nroot: "+u.Root+"\nhealth_seconds: 5\nrestart: "+u.Restart[0]+"\n"), 0o644))
	}
	write("true")
	for _, c := range []struct {
		args      string
		code      int
		out, errs string
	}{
		{"", 64, "", "a command is missing"},
		{"upgrade", 64, "", "unknown command upgrade"},
		{"pin", 64, "", "pin takes 1 arguments"},
		{"pin newest", 64, "", `a version must be like 1.2.3, not "newest"`},
		{"--help", 0, "Usage: brine-update [options] COMMAND", ""},
		{"pin v1.1.0", 0, "pinned to 1.1.0\n", ""},
		{"order --to 1.2.0", 1, `"comment":"cannot update to version 1.2.0: this host is pinned to 1.1.0"`, "this host is pinned"},
		{"status", 0, "Pinned:    1.1.0\n", ""},
		{"unpin", 0, "not pinned\n", ""},
		{"disable", 0, "updates are off\n", ""},
		{"now", 2, "", "updates are switched off on this host: brine-update disable was called"},
		{"status", 0, "Updates:   off: updates are switched off on this host: brine-update disable was called", ""},
		{"enable", 0, "updates are not disabled here\n", ""},
		{"now --to 2.0.0", 1, "", "target stable/linux-amd64/2.0.0/brine-minion not found"},
		{"now --to ../x", 1, "", `cannot update to version "../x": it must be like 1.2.3`},
		// No minion runs here, and none did before. It is still an error that the new one does not answer.
		{"now --to 1.1.0 --json", 1, `"comment":"went back from 1.1.0 to 1.0.0: after 5s it does not answer: `, ""},
		{"status --json", 0, `"failed":["1.1.0"]`, ""},
	} {
		var out, errs bytes.Buffer
		args := append([]string{"-c", u.Dir}, strings.Fields(c.args)...)
		code := Main(t.Context(), args, &saltcli.Console{Out: &out, Err: &errs, Env: func(string) string { return "" }})
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) {
			t.Errorf("%s: exit code %d, want %d\n%s%s", c.args, code, c.code, &out, &errs)
		}
	}
	write("false")
	var out, errs bytes.Buffer
	if code := Main(t.Context(), []string{"-c", u.Dir, "run"}, &saltcli.Console{Out: &out, Err: &errs, Env: func(string) string { return "" }}); code != exitRefused {
		t.Errorf("exit code %d\n%s%s", code, &out, &errs)
	}
}
