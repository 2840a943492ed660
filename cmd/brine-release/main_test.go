package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/cmd/internal/update/layout"
)

// release runs the program, and returns its exit code and standard error.
func release(args ...string) (int, string) {
	var out, errs bytes.Buffer
	code := run(args, &out, &errs)
	return code, errs.String()
}

// tree returns the contents of the files below a directory.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRefusals tests what the program refuses to add to a repository. A refusal does not change the repository.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	keys, repo := filepath.Join(dir, "keys"), filepath.Join(dir, "repo")
	file := func(name string, size int64) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		return path
	}
	must := func(args ...string) {
		t.Helper()
		if code, text := release(args...); code != 0 {
			t.Fatalf("%v: %s", args, text)
		}
	}
	program, large, most := file("program", 100), file("large", layout.MaxProgram+1), file("most", layout.MaxProgram)
	file("trees/packages/linux-armv7/brine-minion", 10)
	file("trees/packages/linux-amd64/brine-minion", 10)
	file("trees/none/README", 10)
	for _, k := range []string{"root.1", "root.2", "targets", "snapshot", "timestamp", "stable", "edge"} {
		must("key", filepath.Join(keys, k+".pem"))
	}
	place := []string{"-repo", repo, "-keys", keys}
	with := func(command string, args ...string) []string {
		return append(append([]string{command}, place...), args...)
	}
	add := func(args ...string) []string { return with("add", args...) }
	if code, text := release(with("init", "-threshold", "3")...); code != 1 || !strings.Contains(text, "the threshold is 3, and there are 2 keys") {
		t.Errorf("a threshold above the keys: %d %s", code, text)
	}
	must(with("init", "-threshold", "2")...)
	must(add("-version", "1.0.0", "linux-amd64="+program)...)
	before := tree(t, repo)
	platforms := "platforms are linux-amd64, linux-arm64, linux-arm, linux-riscv64, freebsd-amd64, darwin-arm64, windows-amd64"
	for _, c := range []struct {
		name, want string
		args       []string
	}{
		{"a platform that is not one", `cannot add programs for "linux-armv7": ` + platforms, add("-version", "1.1.0", "linux-armv7="+program)},
		{"one such beside a good one", `cannot add programs for "linux-armv7": ` + platforms, add("-version", "1.1.0", "-programs", filepath.Join(dir, "trees/packages"))},
		{"a platform without a name", `"` + program + `" is not PLATFORM=FILE`, add("-version", "1.1.0", program)},
		{"a program that is missing", "cannot add the program for linux-arm: stat " + dir + "/missing: no such file", add("-version", "1.1.0", "linux-amd64="+program, "linux-arm="+dir+"/missing")},
		{"a program that is too large", "cannot add the program for linux-arm: it has 67108865 bytes, and hosts take 67108864 at most", add("-version", "1.1.0", "linux-amd64="+program, "linux-arm="+large)},
		{"a directory without programs", "there are no programs in " + dir + "/trees/none", add("-version", "1.1.0", "-programs", dir+"/trees/none")},
		{"no program", "cannot add a version without programs", add("-version", "1.1.0")},
		{"a version that is not one", `cannot add version "1.1": it must be like 1.2.3`, add("-version", "1.1", "linux-amd64="+program)},
		{"a version that is a path", `cannot add version "../1.1.0"`, add("-version", "../1.1.0", "linux-amd64="+program)},
		{"a channel that is not one", `cannot add to channel "beta": there are stable, edge`, add("-channel", "beta", "-version", "1.1.0", "linux-amd64="+program)},
		{"other bytes of a version", "cannot add stable/linux-amd64/1.0.0/brine-minion: the channel has that version with other bytes", add("-version", "1.0.0", "linux-amd64="+most)},
		{"a version that is not there", "cannot remove version 3.0.0: the channel stable does not have it", with("remove", "-version", "3.0.0")},
		{"a second repository in its place", "cannot create a repository: " + repo, with("init")},
		{"a key that is there", "file exists", []string{"key", filepath.Join(keys, "stable.pem")}},
		{"keys that are missing", "cannot sign as stable: there is no " + dir + "/stable.pem", []string{"add", "-repo", repo, "-keys", dir, "-version", "1.1.0", "linux-amd64=" + program}},
		{"no keys named", "-repo and -keys are needed", []string{"refresh", "-repo", repo}},
		{"a command that is not one", "unknown command publish", with("publish")},
	} {
		code, text := release(c.args...)
		if code != 1 || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %q, want %q", c.name, code, text, c.want)
		}
		after := tree(t, repo)
		for _, name := range []string{"metadata/timestamp.json", "metadata/2.snapshot.json", "metadata/2.stable-linux-amd64.json"} {
			path := filepath.Join(repo, name)
			if before[path] == "" || before[path] != after[path] {
				t.Errorf("%s: %s has changed", c.name, name)
			}
		}
	}
	must(add("-version", "v1.1.0", "linux-arm="+most)...) // the largest that hosts accept
	if d := cmp.Diff(true, strings.Contains(tree(t, repo)[filepath.Join(repo, "metadata/2.stable-linux-arm.json")], "stable/linux-arm/1.1.0/brine-minion")); d != "" {
		t.Error("the largest program is not in the repository")
	}
}

// TestPage runs the commands of docs/update.md as they are written.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/update.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{"linux-amd64/brine-minion", "windows-amd64/brine-minion.exe"} {
		name = filepath.Join("bin/release/programs", name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ran := 0
	for line := range strings.Lines(string(page)) {
		command, ok := strings.CutPrefix(line, "    brine-release ")
		if !ok {
			continue
		}
		command, _, _ = strings.Cut(command, "#")
		if code, text := release(strings.Fields(command)...); code != 0 {
			t.Errorf("%s: %s", line, text)
		}
		ran++
	}
	if ran != 5 {
		t.Errorf("%d commands ran", ran)
	}
	for _, name := range []string{"1.root.json", "2.stable-linux-amd64.json", "2.stable-windows-amd64.json", "timestamp.json"} {
		if _, err := os.Stat("repo/metadata/" + name); err != nil {
			t.Error(err)
		}
	}
}
