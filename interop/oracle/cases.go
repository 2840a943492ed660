package oracle

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/yaml"
)

var (
	only = flag.String("stock", "", "run only the cases whose name matches this regular expression")
	slow = flag.Int("slow", 0, "list so many of the cases that took longest, and what was slow in them")
)

// Chosen are the cases to run: all, or those that -stock names.
func Chosen() *regexp.Regexp { return regexp.MustCompile(*only) }

// All tells whether all cases run.
func All() bool { return *only == "" }

// Flags are the flags of this run, for a copy of the test.
func Flags() []string { return []string{"-stock=" + *only, fmt.Sprintf("-slow=%d", *slow)} }

// Load reads files of cases, in which dir is put for @DIR@, and gives each case with the name <file>/<number>.
func Load(t testing.TB, pattern, dir string, each func(name string, m map[string]any)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		v, err := yaml.Parse([]byte(strings.ReplaceAll(string(text), "@DIR@", dir)), f)
		if err != nil {
			t.Fatal(err)
		}
		list, ok := v.([]any)
		if !ok {
			t.Fatalf("%s is not a list", f)
		}
		for i, x := range list {
			m, ok := x.(map[string]any)
			if !ok {
				t.Fatalf("%s: case %d is not a map", f, i)
			}
			each(fmt.Sprintf("%s/%d", strings.TrimSuffix(filepath.Base(f), ".yaml"), i), m)
		}
	}
}

// ForeignLast puts the cases that have other modules behind names, or other grains, behind the others: they leave traces in the
// long-lived stock process.
func ForeignLast[C any](cases []C, foreign func(C) bool) {
	rank := func(c C) int {
		if foreign(c) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(cases, func(a, b C) int { return cmp.Compare(rank(a), rank(b)) })
}

// Keys fails the test if a case has keys that nothing reads.
func Keys(t testing.TB, name string, m map[string]any, known ...string) {
	t.Helper()
	for k := range m {
		if !slices.Contains(known, k) {
			t.Fatalf("%s: unknown key %s", name, k)
		}
	}
}

// Fresh makes the scratch directory of a case and runs its setup there.
func Fresh(t testing.TB, dir, setup string) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	Shell(t, dir, setup)
}

// Shell runs a script and gives what it prints.
func Shell(t testing.TB, dir, script string) string {
	t.Helper()
	if script == "" {
		return ""
	}
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return string(out)
}

// Write writes a file and makes its directory.
func Write(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// Clock keeps how long cases took.
type Clock struct{ times []lap }

type lap struct {
	name       string
	all, stock time.Duration
}

// Time runs a case of which p is the stock side.
func (k *Clock) Time(name string, p *Process, run func()) {
	begin, before := time.Now(), p.Spent
	run()
	k.times = append(k.times, lap{name: name, all: time.Since(begin), stock: p.Spent - before})
}

// Report logs the slowest cases, and the sum for every file of cases, if -slow asks for them.
func (k *Clock) Report(t testing.TB) {
	if *slow == 0 {
		return
	}
	files := map[string]*lap{}
	var sums []*lap
	for _, l := range k.times {
		name, _, _ := strings.Cut(l.name, "/")
		if files[name] == nil {
			files[name] = &lap{name: name}
			sums = append(sums, files[name])
		}
		files[name].all += l.all
		files[name].stock += l.stock
	}
	slices.SortFunc(k.times, func(a, b lap) int { return cmp.Compare(b.all, a.all) })
	slices.SortFunc(sums, func(a, b *lap) int { return cmp.Compare(b.all, a.all) })
	var text strings.Builder
	line := func(l *lap) {
		fmt.Fprintf(&text, "%8.2f s, of which stock %8.2f s: %s\n", l.all.Seconds(), l.stock.Seconds(), l.name)
	}
	for _, l := range sums {
		line(l)
	}
	for _, l := range k.times[:min(*slow, len(k.times))] {
		line(&l)
	}
	t.Logf("files, and the slowest of %d cases:\n%s", len(k.times), text.String())
}
