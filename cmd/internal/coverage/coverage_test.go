package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const profile = `mode: set
github.com/brine-salt/brine/modules/a/a.go:1.1,3.2 6 1
github.com/brine-salt/brine/modules/a/a.go:5.1,7.2 2 0
github.com/brine-salt/brine/modules/b/b.go:1.1,3.2 4 0
`

// TestCount: a statement that one of several tests covers is covered, and counts once.
func TestCount(t *testing.T) {
	c := counted{}
	for _, p := range []string{profile, "mode: set\ngithub.com/brine-salt/brine/modules/a/a.go:5.1,7.2 2 1\n", profile} {
		if err := c.add(p); err != nil {
			t.Fatal(err)
		}
	}
	each, all := c.packages()
	if *each["modules/a"] != (share{8, 8}) || *each["modules/b"] != (share{0, 4}) || all != (share{8, 12}) {
		t.Errorf("%v %v, all %v", each["modules/a"], each["modules/b"], all)
	}
	var out strings.Builder
	if err := c.printMissing(&out, "modules/b"); err != nil || out.String() != "   4 modules/b/b.go:1.1,3.2\n" {
		t.Errorf("%v: %q", err, out.String())
	}
	if err := (counted{}).add("modules/a/a.go 4\n"); err == nil {
		t.Error("a line that is none was read")
	}
}

// TestReport: a share that is too low is an error, and so is an exception that is no longer needed.
func TestReport(t *testing.T) {
	c := counted{}
	if err := c.add(profile); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		least, floor float64
		lower        map[string]string
		want         string
	}{
		{50, 50, map[string]string{"modules/b": "needs a tape robot"}, ""},
		{50, 50, nil, "modules/b: 0.0 % is covered, less than 50 %"},
		{51, 0, nil, "all: 50.0 % is covered, less than 51 %"},
		{50, 50, map[string]string{"modules/a": "", "modules/b": ""},
			"modules/a: 75.0 % is covered, it needs no reason why not"},
	} {
		var out strings.Builder
		got := ""
		if err := c.report(&out, tt.least, tt.floor, tt.lower); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
		if first, _, _ := strings.Cut(out.String(), "\n"); first != "  0.0 %      0 of      4  modules/b" {
			t.Errorf("the report begins with %q", first)
		}
	}
}

// TestWithoutPython: the tests' PATH contains all programs except Python and Salt.
func TestWithoutPython(t *testing.T) {
	from := t.TempDir()
	for _, name := range []string{"git", "python3.11", "salt-call"} {
		if err := os.WriteFile(filepath.Join(from, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", from)
	t.Setenv("BRINE_SALT_3007", "/nowhere")
	env, err := withoutPython(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var path string
	for _, s := range env {
		if rest, ok := strings.CutPrefix(s, "PATH="); ok {
			path = rest
		}
	}
	found, err := os.ReadDir(path)
	if err != nil || len(found) != 1 || found[0].Name() != "git" {
		t.Errorf("%s has %v, %v", path, found, err)
	}
	if slices.Contains(env, "BRINE_SALT_3007=/nowhere") {
		t.Error("the tests find stock Salt")
	}
}
