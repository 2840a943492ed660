package main

import (
	"os"
	"path/filepath"
	"regexp"
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
	command, err := os.ReadFile(commandLine)
	if err != nil {
		t.Fatal(err)
	}
	pages[commandLine] = string(command)
	works := 0
	for path, text := range pages {
		if path == "docs/compatibility.md" {
			continue // the words, and the index
		}
		works += checkProofs(t, c, path, strings.Split(text, "\n"))
	}
	if works < 2000 {
		t.Errorf("only %d rows say that something works", works)
	}
}

// checkProofs reports rows that say "works" without an existing test, or with a file that does not have a case of the
// function. It returns the number of rows that say so.
func checkProofs(t *testing.T, c *compat, path string, rows []string) int {
	t.Helper()
	all := append(slices.Clone(c.evidence.tests), c.evidence.programs...)
	functions := strings.HasPrefix(path, "docs/compatibility/functions-") || strings.HasPrefix(path, "docs/compatibility/states-")
	works := 0
	for i, row := range rows {
		cells := strings.Split(strings.TrimSuffix(row, " |"), " | ")
		at := slices.IndexFunc(cells, func(cell string) bool { return strings.HasPrefix(cell, "works") })
		if !strings.HasPrefix(row, "| ") || at < 0 {
			continue
		}
		works++
		m := worksCell.FindStringSubmatch(cells[at])
		switch {
		case m == nil:
			t.Errorf("%s:%d: no test beside \"works\": %s", path, i+1, row)
		case functions:
			name := strings.Trim(cells[0], "| `")
			if text, err := os.ReadFile(m[1]); err != nil || !mentions(string(text), name) {
				t.Errorf("%s:%d: %s has no case of %s (%v)", path, i+1, m[1], name, err)
			}
		case !slices.ContainsFunc(all, func(s source) bool { return s.name == m[1] }):
			t.Errorf("%s:%d: there is no test %q: run \"make compat\"", path, i+1, m[1])
		}
	}
	return works
}

// worksCell matches the status of a row that has a test.
var worksCell = regexp.MustCompile("^works: `([^`]+)`$")

// mentions reports whether a file with cases has the function of a row. The state system itself calls hooks such as
// mod_watch, and openrc is the module "service" of another system.
func mentions(text, name string) bool {
	mod, fun, _ := strings.Cut(name, ".")
	if strings.HasPrefix(fun, "mod_") {
		return strings.Contains(text, mod+".") || strings.Contains(text, "["+mod+"]")
	}
	return strings.Contains(text, name) || mod == "service" && strings.Contains(text, "openrc."+fun)
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
