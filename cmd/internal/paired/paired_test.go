package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

func TestOptions(t *testing.T) {
	o, err := readOptions([]string{"-commit", "main", "-run", "^files", "-n", "10", "-time", "5m"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range selected(o.run) {
		names = append(names, c.name)
	}
	if d := cmp.Diff([]string{"files200", "files2000"}, names); d != "" {
		t.Error(d)
	}
	if o.commit != "main" || o.pairs != 10 || o.time != 5*time.Minute {
		t.Errorf("%+v", o)
	}
	if o, err := readOptions([]string{"-commit", "main"}); err != nil ||
		len(selected(o.run)) != len(commands) || o.time != 20*time.Minute {
		t.Errorf("without options: %+v, %v", o, err)
	}
	for _, c := range []struct{ args, want string }{
		{"", "either -commit or -judge is needed"},
		{"-commit a -judge b", "either -commit or -judge is needed"},
		{"-commit a -n 3", "cannot compare 3 pairs, at least 4 are needed"},
		{"-commit a -run nosuch", `cannot find a command that matches "nosuch"`},
		{"-commit a -run (", "cannot read -run: error parsing regexp: missing closing ): `(`"},
		{"-commit a b", `cannot take the argument "b"`},
	} {
		if _, err := readOptions(strings.Fields(c.args)); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, not %s", c.args, err, c.want)
		}
	}
}

// TestOrder: each side runs first in every other pair.
func TestOrder(t *testing.T) {
	got := [][2]int{order(0), order(1), order(2)}
	if d := cmp.Diff([][2]int{{0, 1}, {1, 0}, {0, 1}}, got); d != "" {
		t.Error(d)
	}
	r := result{samples: [2][]sample{{{1, 1}}, {{2, 2}, {3, 3}}}}.wholePairs()
	if len(r.samples[0]) != 1 || len(r.samples[1]) != 1 || r.samples[1][0].cpu != 2 {
		t.Errorf("a pair that was interrupted: %v", r.samples)
	}
}

// TestWorse: a cost is worse if it is more than 5 % higher and the difference is no chance.
func TestWorse(t *testing.T) {
	noise := []int{0, 3, -2, 1, -3, 2, -1, 4, -4, 0}
	wide := []int{0, 300, -200, 100, -300, 200, -100, 400, -400, 0}
	for _, c := range []struct {
		name     string
		old, new int // microseconds
		noise    []int
		pairs    int
		want     bool
	}{
		{"the same", 1000, 1000, noise, 10, false},
		{"10 % more", 1000, 1100, noise, 10, true},
		{"10 % more in 4 pairs", 1000, 1100, noise, 4, true},
		{"10 % more by chance", 1000, 1100, wide, 10, false},
		{"4 % more", 1000, 1040, noise, 10, false},
		{"half", 1000, 500, noise, 10, false},
	} {
		r := result{name: "call"}
		for n := range c.pairs {
			for i, center := range []int{c.old, c.new} {
				d := time.Duration(center+c.noise[n]) * time.Microsecond
				r.samples[i] = append(r.samples[i], sample{d, time.Millisecond})
			}
		}
		list := compare(r)
		if list[0].worse() != c.want || list[0].cost != "processor" {
			t.Errorf("%s: processor time: ratio %.3f, p %.3f", c.name, list[0].ratio(), list[0].p)
		}
		if list[1].worse() || list[1].cost != "wall" || list[1].ratio() != 1 {
			t.Errorf("%s: wall time: ratio %.3f, p %.3f", c.name, list[1].ratio(), list[1].p)
		}
	}
}

// TestJudge judges samples of a real comparison.
func TestJudge(t *testing.T) {
	results, err := readSamples("testdata/samples.txt")
	if err != nil {
		t.Fatal(err)
	}
	// What is written is what was read.
	again := filepath.Join(t.TempDir(), "samples.txt")
	if err := writeSamples(again, results); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(readText(t, "testdata/samples.txt"), readText(t, again)); d != "" {
		t.Error(d)
	}
	var out bytes.Buffer
	if err := judge(&out, results); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(readText(t, "testdata/table.txt"), out.String()); d != "" {
		t.Error(d)
	}

	for i, s := range results[0].samples[0] {
		results[0].samples[1][i].cpu = s.cpu * 3 / 2
	}
	out.Reset()
	if err := judge(&out, results); !errors.Is(err, errWorse) || exitStatus(err) != 1 {
		t.Errorf("50 %% more processor time: %v, exit status %d", err, exitStatus(err))
	}
	_, verdict, _ := strings.Cut(out.String(), "\n\n")
	if !strings.HasPrefix(verdict, "worse: call, processor time, by 50.0 % (p <0.001)\n") ||
		strings.Count(verdict, "\n") != 1 {
		t.Errorf("50 %% more processor time: %s", verdict)
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReadSamples(t *testing.T) {
	const good = "BenchmarkPaired/command=call/program=old 1 0.2 sec/op 0.1 cpu-sec/op\n"
	file := filepath.Join(t.TempDir(), "samples.txt")
	for _, c := range []struct{ text, want string }{
		{"", "cannot find samples in " + file},
		{good + good, "cannot compare 2 and 0 samples of call in " + file +
			": at least 4 pairs are needed"},
		{good + "BenchmarkPaired/command=call/program=old 1 x sec/op",
			"cannot read samples: " + file + ":2: parsing measurement: invalid syntax"},
		{good + "BenchmarkPaired/command=call/program=other 1 1 sec/op 1 cpu-sec/op",
			"cannot read samples: " + file +
				`:2: "Paired/command=call/program=other" is not the name of a measured command`},
		{"BenchmarkOther 1 1 sec/op", "cannot read samples: " + file +
			`:1: "Other" is not the name of a measured command`},
		{"BenchmarkPaired/command=call/program=old 1 0.2 sec/op 0 cpu-sec/op",
			"cannot read samples: " + file + ":1: sec/op or cpu-sec/op is missing, or not positive"},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readSamples(file); err == nil || err.Error() != c.want || exitStatus(err) != 2 {
			t.Errorf("%q: %v, not %s", c.text, err, c.want)
		}
	}
}

// TestOnce: the cost of a run is that of the command and of its daemons, and a command that does not do its work is
// an error.
func TestOnce(t *testing.T) {
	sh := shell(t)
	s := newSite(t.TempDir(), "once", "old")
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	busy, err := s.start(t.Context(), exec.CommandContext(t.Context(), sh, "-c",
		"while :; do :; done"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	removed := 0
	r := run{args: []string{sh, "-c", "echo True; echo True; sleep 0.2"}, want: "True", times: 2,
		before: func() error { removed++; return nil }}
	alone, err := r.once(t.Context(), true)
	if err != nil || alone.wall < 200*time.Millisecond || removed != 1 {
		t.Errorf("%+v, %v, %d", alone, err, removed)
	}
	r.daemons = []*daemon{busy}
	if both, err := r.once(t.Context(), true); err != nil || both.cpu <= alone.cpu {
		t.Errorf("with a busy daemon %s, not more than %s; %v", both.cpu, alone.cpu, err)
	}
	r.times = 3
	if _, err := r.once(t.Context(), false); err != nil {
		t.Errorf("an output that is not checked: %v", err)
	}
	if _, err := r.once(t.Context(), true); err == nil ||
		!strings.Contains(err.Error(), `printed "True" 2 times, not 3`) {
		t.Errorf("a wrong output: %v", err)
	}
	r.args = []string{sh, "-c", "echo no such file >&2; exit 3"}
	if _, err := r.once(t.Context(), true); err == nil ||
		!strings.HasSuffix(err.Error(), ": exit status 3\nno such file") {
		t.Errorf("a command that fails: %v", err)
	}
}

// TestAwait: a daemon that ends is not awaited, and its output is in the error.
func TestAwait(t *testing.T) {
	sh := shell(t)
	s := newSite(t.TempDir(), "await", "old")
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := s.start(t.Context(), exec.CommandContext(t.Context(), sh, "-c", "echo broken"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	err = d.await(t.Context(), "the port", func() (bool, error) { return false, nil })
	if err == nil || err.Error() != "cannot await the port: the program has ended\nbroken" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.done = make(chan struct{})
	err = d.await(ctx, "the port", func() (bool, error) { return false, nil })
	close(d.done)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestAwaitIdle: what a daemon does after its start has ended when the pairs begin.
func TestAwaitIdle(t *testing.T) {
	sh := shell(t)
	s := newSite(t.TempDir(), "idle", "old")
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), sh, "-c",
		"i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done; echo done; read end")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	d, err := s.start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	if err := awaitIdle(t.Context(), []*daemon{d}); err != nil || d.said() != "done" {
		t.Errorf("%v; the daemon said %q", err, d.said())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := awaitIdle(ctx, []*daemon{d}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := awaitIdle(ctx, nil); err != nil {
		t.Errorf("without daemons: %v", err)
	}
}

func shell(t *testing.T) string {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		prereq.Missing(t, "sh")
	}
	return sh
}

// TestCheckOut writes the files of an old commit and leaves the repository alone.
func TestCheckOut(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		prereq.Missing(t, "git")
	}
	dir := t.TempDir()
	t.Chdir(dir)
	git := func(args ...string) string {
		t.Helper()
		out, err := output(t.Context(), dir, []string{"GIT_CONFIG_GLOBAL=/dev/null"}, "git",
			append([]string{"-c", "user.name=A", "-c", "user.email=a@example.org"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	commit := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", "file")
		git("commit", "-q", "-m", text)
	}
	git("init", "-q")
	commit("one")
	commit("two")
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("three"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := git("status", "--porcelain")

	scratch := t.TempDir()
	tree := filepath.Join(scratch, "tree")
	if err := checkOut(t.Context(), "HEAD~1", scratch, tree); err != nil {
		t.Fatal(err)
	}
	if text := readText(t, filepath.Join(tree, "file")); text != "one" {
		t.Errorf("the old file has %q", text)
	}
	if after := git("status", "--porcelain"); after != before || after != " M file\n" {
		t.Errorf("status %q, before %q", after, before)
	}
	if err := checkOut(t.Context(), "nosuch", scratch, tree); err == nil ||
		!strings.HasPrefix(err.Error(), `cannot find the commit "nosuch": git rev-parse: `) {
		t.Errorf("an unknown commit: %v", err)
	}
}
