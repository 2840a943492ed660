package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// repository is the root of the module.
const repository = "../../.."

// TestFlaws: each flaw on the page has a guard, the flaws of each guard are on the page, and the page contains the
// guards' tests.
func TestFlaws(t *testing.T) {
	guards, err := findGuards(repository)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(flawsPage)))
	if err != nil {
		t.Fatal(err)
	}
	flaws := listedNames(string(b))
	if len(flaws) < 75 {
		t.Errorf("the page has %d flaws", len(flaws))
	}
	marked := map[string]bool{}
	for _, g := range guards {
		for _, f := range g.flaws {
			marked[f] = true
			if !slices.Contains(flaws, f) {
				t.Errorf("%s: %s is not listed in %s", g, f, flawsPage)
			}
		}
	}
	for i, f := range flaws {
		if !marked[f] {
			t.Errorf("%s: no guard is marked with %s", flawsPage, f)
		}
		if slices.Contains(flaws[:i], f) {
			t.Errorf("%s: %s has two rows", flawsPage, f)
		}
	}
	if d := cmp.Diff(string(b), withTests(string(b), guards)); d != "" {
		t.Errorf("run make guards ARGS=-write:\n%s", d)
	}
}

// TestTestsAreThere: each test in a mark is a function of its package, so that a renamed test is detected before the
// guards are run.
func TestTestsAreThere(t *testing.T) {
	guards, err := findGuards(repository)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range guards {
		for _, name := range g.tests {
			files, _ := filepath.Glob(filepath.Join(repository, filepath.FromSlash(name.dir), "*_test.go"))
			fun, _, _ := strings.Cut(name.name, "/")
			if !slices.ContainsFunc(files, func(f string) bool {
				b, err := os.ReadFile(f)
				return err == nil && strings.Contains(string(b), "\nfunc "+fun+"(t *testing.T)")
			}) {
				t.Errorf("%s: %s has no %s", g, name.dir, fun)
			}
		}
	}
}

// TestMarksAreCode: the code after "instead:" in a mark is valid at the guard's place. This detects a wrapped mark,
// or one with an "if" where a condition belongs, before the guards are run.
func TestMarksAreCode(t *testing.T) {
	guards, err := findGuards(repository)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range guards {
		src, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(g.file)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), g.file, applyEdits(src, g.edits), parser.SkipObjectResolution); err != nil {
			t.Errorf("%s: without the guard: %v", g, err)
		}
	}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const sample = `package p

// guard: a TestLimit instead: const limit = 1 << 40
const limit = 10

func Allowed(n int, name string) bool {
	// guard: b TestNegative
	if n < 0 {
		return false
	}
	switch {
	// guard: c TestName
	case name == "":
		return false
	}
	// guard: d @twice TestSmall
	if n == 1 {
		return false
	}
	return size(n)
}

func size(n int) bool {
	// guard: d @twice TestSmall
	if n < 2 {
		return n < 0
	}
	// guard: e,f TestLimit,q:TestOther instead: return true
	return n <= limit
}

func Count(n int) (out int) {
	// guard: g TestCount
	for range n {
		out++
	}
	return out
}
`

const sampleTests = `package p

import "testing"

func check(t *testing.T, n int, name string, want bool) {
	if Allowed(n, name) != want {
		t.Error(n, name)
	}
}

func TestLimit(t *testing.T) { check(t, 11, "x", false); check(t, 10, "x", true) }
func TestName(t *testing.T)  { check(t, 5, "", false) }
func TestSmall(t *testing.T) { check(t, 1, "x", false) }
func TestCount(t *testing.T) {
	if Count(3) != 3 {
		t.Error()
	}
}
`

// TestRemovals: guards of all kinds are removed one at a time, without changing the sources. A test that passes
// without its guard is distinguished from one that fails and from one that hangs.
func TestRemovals(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	for name, c := range map[string]struct {
		negative string
		want     string
	}{
		"noticed":     {`func TestNegative(t *testing.T) { check(t, -1, "x", false); _ = q }`, "ok   fails"},
		"survives":    {`func TestNegative(t *testing.T) { check(t, 11, "x", false) }`, "FAIL passes"},
		"hangs":       {`func TestNegative(t *testing.T) { for Allowed(-1, "x") { } }`, "FAIL hangs"},
		"is red":      {`func TestNegative(t *testing.T) { t.Error("broken") }`, "p:TestNegative fails with all guards in place"},
		"is skipped":  {`func TestNegative(t *testing.T) { t.Skip("not today") }`, "p:TestNegative skipped with all guards in place"},
		"is not here": {``, "p:TestNegative no such test with all guards in place"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			// size refuses a negative number a second time, so that it gets there only without the first guard.
			source := strings.Replace(sample, "return n < 0", "return n < 0 || n == 0", 1)
			write(t, dir, map[string]string{"go.mod": "module m\n\ngo 1.26\n", "p/p.go": source, "p/p_test.go": sampleTests + "\nvar q = 0\n" + c.negative + "\n",
				"q/q_test.go": "package q\n\nimport (\n\t\"testing\"\n\n\t\"m/p\"\n)\n\nfunc TestOther(t *testing.T) {\n\tif p.Allowed(12, \"x\") {\n\t\tt.Error()\n\t}\n}\n"})
			guards, err := findGuards(dir)
			if err != nil || len(guards) != 7 {
				t.Fatal(guards, err)
			}
			if c.want != "ok   fails" {
				guards = slices.DeleteFunc(guards, func(g guard) bool { return g.flaws[0] != "b" })
			}
			var out strings.Builder
			r := remover{root: dir, parallel: 2, least: 3 * time.Second, out: &out}
			err = r.run(t.Context(), guards, guards)
			text := out.String()
			if err != nil {
				text += err.Error()
			}
			if !strings.Contains(text, c.want) || (err == nil) != (c.want == "ok   fails") {
				t.Errorf("%v\n%s", err, text)
			}
			if b, err := os.ReadFile(filepath.Join(dir, "p/p.go")); err != nil || string(b) != source {
				t.Error("the sources were changed", err)
			}
			if c.want == "ok   fails" && !strings.Contains(text, "7 guards, 7 removals, 0 that no test noticed") {
				t.Error(text)
			}
		})
	}
}

// TestMarks: an invalid mark is an error with its position.
func TestMarks(t *testing.T) {
	for name, c := range map[string]struct{ code, want string }{
		"no test":            {"// guard: a\nvar x = 1", "f.go:3:1: a mark is"},
		"not a test":         {"// guard: a check\nvar x = 1", "not a test"},
		"nothing below":      {"// guard: a TestX\n\nvar x = 1", "no statement or declaration"},
		"a declaration":      {"// guard: a TestX\nvar x = 1", "instead of a declaration"},
		"a return":           {"func f() int {\n\t// guard: a TestX\n\treturn 1\n}", "what is returned instead"},
		"a case of a value":  {"func f(n int) {\n\tswitch n {\n\t// guard: a TestX\n\tcase 1:\n\t}\n}", "switch without a tag"},
		"a default":          {"func f(n int) {\n\tswitch {\n\t// guard: a TestX\n\tdefault:\n\t}\n}", "switch without a tag"},
		"a declared layer":   {"// guard: a @b TestX instead: var x = 2\nvar x = 1", "together with other guards"},
		"a file that is not": {"func", "expected"},
	} {
		if g, err := guardsOf("f.go", []byte("package p\n\n"+c.code+"\n")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v %v", name, g, err)
		}
	}
}

// TestChanged: the changed files determine which guards are removed.
func TestChanged(t *testing.T) {
	g := guard{file: "protocol/ids.go", tests: []testName{{"master", "TestX"}}}
	for file, want := range map[string]bool{"protocol/ids.go": true, "protocol/other.go": false, "master/x_test.go": true, "master/x.go": false, "docs/x.md": false} {
		if got := g.concerns([]string{"y", file}); got != want {
			t.Errorf("%s: %v", file, got)
		}
	}
}
