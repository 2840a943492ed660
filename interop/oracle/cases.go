package oracle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/internal/testkit/testsalt"
)

var (
	only = flag.String("stock", "", "run only the cases whose name matches this regular expression")
	slow = flag.Int("slow", 0, "list so many of the cases that cost most processor time, and the sum for every file of cases")
)

// Chosen are the cases to run: all, or those that -stock names.
func Chosen() *regexp.Regexp { return regexp.MustCompile(*only) }

// All reports whether all cases run.
func All() bool { return *only == "" }

// Flags are the flags of this run, for a copy of the test.
func Flags() []string {
	return []string{"-stock=" + *only, fmt.Sprintf("-slow=%d", *slow), fmt.Sprintf("-update=%t", *update),
		fmt.Sprintf("-missing=%t", *missing), "-suspect=" + *suspect,
		"-later=" + later.String()}
}

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

// shellTime is how long a script of a case may take: some wait for what never comes on another host.
const shellTime = time.Minute

// Shell runs a script and gives what it prints.
func Shell(t testing.TB, dir, script string) string {
	t.Helper()
	if script == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(t.Context(), shellTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
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

// Cases keeps what came of cases, and what they cost.
type Cases struct {
	costs []cost
	wrong []string
	left  int // cases that are not due
}

// Due reports whether a case belongs to the share of this run, as all cases of its file do: some find what those before
// them left. In a run that updates the kept answers, each one does.
func (k *Cases) Due(t testing.TB, name string) bool {
	t.Helper()
	file, _, _ := strings.Cut(name, "/")
	if *update || testsalt.InShare(t, file) {
		return true
	}
	k.left++
	return false
}

// cost is processor time, of which the machine's load is no part: that of the test and that of stock's side, each with the programs that
// they ran; and the time by the clock.
type cost struct {
	name               string
	here, stock, clock time.Duration
}

// Run runs a case of which p is the stock side.
func (k *Cases) Run(t *testing.T, name string, p *Process, run func(t *testing.T)) {
	begin, here, stock := time.Now(), used(os.Getpid()), used(p.PID)
	if !t.Run(name, run) {
		k.wrong = append(k.wrong, name)
	}
	k.costs = append(k.costs, cost{name: name, here: used(os.Getpid()) - here, stock: used(p.PID) - stock, clock: time.Since(begin)})
}

// Report logs which cases are wrong, which is the first that is said of them all; and, if -slow asks for them, the dearest cases and the
// sum for every file of cases.
func (k *Cases) Report(t testing.TB) {
	if k.left > 0 {
		t.Logf("%d cases were compared; %d are due in other runs", len(k.costs), k.left)
	}
	if len(k.wrong) > 0 {
		t.Logf("%d of %d cases are wrong:\n%s", len(k.wrong), len(k.costs), strings.Join(k.wrong, "\n"))
	}
	if *slow == 0 {
		return
	}
	files := map[string]*cost{}
	var sums []*cost
	for _, c := range k.costs {
		name, _, _ := strings.Cut(c.name, "/")
		if files[name] == nil {
			files[name] = &cost{name: name}
			sums = append(sums, files[name])
		}
		files[name].here += c.here
		files[name].stock += c.stock
		files[name].clock += c.clock
	}
	slices.SortFunc(k.costs, func(a, b cost) int { return cmp.Compare(b.here+b.stock, a.here+a.stock) })
	slices.SortFunc(sums, func(a, b *cost) int { return cmp.Compare(b.here+b.stock, a.here+a.stock) })
	var text strings.Builder
	line := func(c *cost) {
		fmt.Fprintf(&text, "%8.2f %8.2f %8.2f %s\n", c.here.Seconds(), c.stock.Seconds(), c.clock.Seconds(), c.name)
	}
	for _, c := range sums {
		line(c)
	}
	for _, c := range k.costs[:min(*slow, len(k.costs))] {
		line(&c)
	}
	t.Logf("seconds of processor time here, of stock's side, and by the clock: files, and the dearest of %d cases:\n%s", len(k.costs), text.String())
}

// used is the processor time of a process and of the programs it ran and waited for, as Linux counts it in hundredths of a second; elsewhere 0.
func used(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, f := range fields[11:15] {
		n, _ := strconv.Atoi(f)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
