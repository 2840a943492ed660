package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPagesAreCurrent: the pages are those that "make compat" would write, except the one about the command line,
// which needs the programs. There are no other pages.
func TestPagesAreCurrent(t *testing.T) {
	t.Chdir("../../..")
	c, err := newCompat()
	if err != nil {
		t.Fatal(err)
	}
	pages := c.buildPages()
	for path, want := range pages {
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%s is not current: run \"make compat\" (%v)", path, err)
		}
	}
	list, err := filepath.Glob("docs/compatibility/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range list {
		if _, ok := pages[path]; !ok && path != commandLine {
			t.Errorf("%s is no page of the table", path)
		}
	}
	// A supported feature names an existing test.
	all := append(slices.Clone(c.evidence.tests), c.evidence.programs...)
	command, err := os.ReadFile(commandLine)
	if err != nil {
		t.Fatal(err)
	}
	checked := string(command) + pages["docs/compatibility/requests.md"]
	for _, p := range optionPages {
		text := pages["docs/compatibility/"+p.name()+".md"]
		if n := strings.Count(text, "\n"); n > 250 {
			t.Errorf("%s has %d lines, more than 250", p.name(), n)
		}
		checked += text
	}
	for line := range strings.Lines(checked) {
		_, name, works := strings.Cut(line, "works: `")
		name, _, _ = strings.Cut(name, "`")
		if works && !slices.ContainsFunc(all, func(s source) bool { return s.name == name }) {
			t.Errorf("there is no test %q: run \"make compat\"", name)
		}
	}
}

// TestEvidence: a test, with the declarations before and after it in its file, is evidence for the program that it
// runs.
func TestEvidence(t *testing.T) {
	list := testsOf("cmd/x/x_test.go", `package x

var helper = "--file-root"

func TestOne(t *testing.T) { run("salt-call", "--local", "--out=json") }

func TestTwo(t *testing.T) { run("salt-key", "-L") }

var words = "timeout: 3"
`)
	e := &evidence{programs: list, tests: list, found: map[string]string{}}
	for _, tt := range []struct{ got, want string }{
		{e.flagEvidence("salt-call", "--out"), "cmd/x: TestOne"},
		{e.flagEvidence("salt-call", "--file-root"), "cmd/x: TestOne"},
		{e.flagEvidence("salt-call", "-L"), ""},
		{e.flagEvidence("salt-key", "-L"), "cmd/x: TestTwo"},
		{e.optionEvidence("timeout"), "cmd/x: TestTwo"},
		{e.optionEvidence("time"), ""},
		{proof("works", ""), "not compared"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
