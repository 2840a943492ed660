package pytemp

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDir sets unusable directories before a usable one, and also compares with Python.
func TestDir(t *testing.T) {
	good, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Log("without python3 beside")
	}
	for _, env := range [][3]string{
		{good, "", ""}, {"/no/such", good, ""}, {"/proc", file, good}, {"", "", ""}, {"/proc", "", ""}, {"/sys", "/dev/null", "/no/such"}, {"", good, "/tmp"},
	} {
		vars := map[string]string{"TMPDIR": env[0], "TEMP": env[1], "TMP": env[2]}
		got := DirOf("", func(name string) string { return vars[name] })
		want := "/tmp"
		for _, dir := range env {
			if dir == good {
				want = good
			}
		}
		if got != want {
			t.Errorf("%v: %s, not %s", vars, got, want)
		}
		if python == "" {
			continue
		}
		cmd := exec.Command(python, "-c", "import tempfile; print(tempfile.gettempdir())")
		for name, v := range vars {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
		if out, err := cmd.Output(); err != nil || strings.TrimSpace(string(out)) != got {
			t.Errorf("%v: Python says %q %v, we say %s", vars, out, err, got)
		}
	}
	// If the variables name no usable directory, the first usable default is returned.
	root := t.TempDir()
	if err := os.MkdirAll(root+"/var/tmp", 0o700); err != nil {
		t.Fatal(err)
	}
	if got := DirOf(root, func(string) string { return "" }); got != "/var/tmp" {
		t.Errorf("without /tmp: %s", got)
	}
}

// TestDirIsTriedOnce: a state run that asks for each of its files does not write a file each time, and a directory that
// was not usable is tried again.
func TestDirIsTriedOnce(t *testing.T) {
	dir := t.TempDir()
	env := func(name string) string { return map[string]string{"TMPDIR": dir}[name] }
	changed := func() time.Time {
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	if got := DirOf("", env); got != dir {
		t.Fatal(got)
	}
	before := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(dir, before, before); err != nil {
		t.Fatal(err)
	}
	if got := DirOf("", env); got != dir || !changed().Equal(before) {
		t.Errorf("%s, changed from %v to %v", got, before, changed())
	}
	dir = filepath.Join(dir, "later")
	if got := DirOf("", env); got == dir {
		t.Fatal("a directory that does not exist")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := DirOf("", env); got != dir {
		t.Error(got)
	}
}
