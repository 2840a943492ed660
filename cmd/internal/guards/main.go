// Command guards proves that the security tests detect a missing guard. A guard is code that refuses something,
// marked by a comment above it:
//
//	// guard: CVE-2016-1866 TestCVE_2016_1866_ClearPublish
//	if enc != "aes" {
//		return ErrBadLoad
//	}
//
// The mark contains the flaws that the guard prevents, which are listed in docs/security-flaws.md, and the tests that
// fail without it, separated by commas. A test of another package is prefixed with the package's directory
// (master/restapi:TestRun). Removing a guard makes the condition of an if, or of a case in a switch without a tag,
// false; other statements are left out. If the guard must be removed in another way, the mark ends with that:
//
//	// guard: half-messages TestHalfMessagesMemory instead: const unfinishedTotal = 1 << 40
//	const unfinishedTotal = 32 << 20
//
// For an if or a case, the code after "instead:" replaces the condition, otherwise the statement or declaration.
//
// If several guards refuse the same thing, one after the other, no test can detect that one of them is missing. Such
// guards have a common name with an @ between flaws and tests, and are removed together.
//
// Each guard is removed separately, without a change to the tree (go build -overlay), and each of its tests runs
// alone. The exit status is 1 if a test passes or hangs without the guard, or does not pass with it.
//
// "make guards" runs the command. With -since, it removes only guards whose file, or whose tests' files, have changed
// since a commit. With -write it only writes the names of the tests to docs/security-flaws.md.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// flawsPage is the list of flaws, relative to the module's root.
const flawsPage = "docs/security-flaws.md"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := remover{out: os.Stdout}
	flag.StringVar(&r.root, "root", ".", "`folder` of the module")
	flag.IntVar(&r.parallel, "p", 2, "how many tests run at the same time")
	flag.DurationVar(&r.least, "timeout", time.Minute,
		"what a test gets on top of five times what it takes with all guards")
	since := flag.String("since", "",
		"remove only guards that changed, or whose tests did, since this `commit`")
	only := flag.String("run", "",
		"remove only guards whose place, flaws or tests match this `pattern`")
	write := flag.Bool("write", false, "write the tests' names into "+flawsPage+" and end")
	flag.Parse()
	if err := start(ctx, r, *since, *only, *write); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func start(ctx context.Context, r remover, since, only string, write bool) error {
	all, err := findGuards(r.root)
	if err != nil {
		return err
	}
	if write {
		page := filepath.Join(r.root, filepath.FromSlash(flawsPage))
		b, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		return os.WriteFile(page, []byte(withTests(string(b), all)), 0o644)
	}
	guards := slices.Clone(all)
	if since != "" {
		changed, err := changedSince(ctx, r.root, since)
		if err != nil {
			return err
		}
		guards = slices.DeleteFunc(guards, func(g guard) bool { return !g.concerns(changed) })
	}
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	guards = slices.DeleteFunc(guards, func(g guard) bool {
		return !pattern.MatchString(fmt.Sprint(g, g.flaws, g.tests))
	})
	return r.run(ctx, all, guards)
}

// changedSince returns the files that differ from a commit, relative to root.
func changedSince(ctx context.Context, root, commit string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", "diff", "--name-only", "--relative", commit, "--")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot find what changed since %s: %w", commit, err)
	}
	return strings.Fields(string(out)), nil
}

// concerns reports whether one of the files contains the guard or belongs to a package of its tests.
func (g guard) concerns(files []string) bool {
	return slices.ContainsFunc(files, func(f string) bool {
		return f == g.file || strings.HasSuffix(f, "_test.go") &&
			slices.ContainsFunc(g.tests, func(t testName) bool { return t.dir == path.Dir(f) })
	})
}

// remover removes guards and runs their tests.
type remover struct {
	root     string
	parallel int
	least    time.Duration
	out      io.Writer
}

// trial is the run of one test without one guard.
type trial struct {
	guard   guard
	test    testName
	overlay string
	program string
	limit   time.Duration
}

// run removes each guard, and returns an error unless all its tests fail. all are the guards of the module.
func (r remover) run(ctx context.Context, all, guards []guard) error {
	begin := time.Now()
	tmp, err := os.MkdirTemp("", "guards")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	trials, err := r.prepareTrials(ctx, tmp, all, guards)
	if err != nil {
		return err
	}
	trials, bad, err := r.allPass(ctx, trials)
	if err != nil {
		return err
	}
	err = r.eachOf(len(trials), func(i int) error {
		t := trials[i]
		o, err := runTest(ctx, r.root, t.test, t.program, t.overlay, t.guard.removal(), t.limit)
		if err != nil {
			return err
		}
		return r.report(func() {
			word := "ok  "
			if o.verdict != fails {
				word = "FAIL"
				bad++
			}
			fmt.Fprintf(r.out, "%s %-8s %6.1fs  %s  %s  %s\n", word, o.verdict, o.took.Seconds(),
				t.guard, strings.Join(t.guard.flaws, ","), t.test)
			if o.verdict == hangs {
				fmt.Fprintln(r.out, tailOf(o.output, 60))
			}
		})
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%d guards, %d removals, %d that no test noticed, %.0f s\n", len(guards),
		len(trials), bad, time.Since(begin).Seconds())
	if bad > 0 {
		return fmt.Errorf("%d tests pass or hang without their guard, or do not pass with it", bad)
	}
	return nil
}

// printing serializes the output of concurrent tests.
var printing sync.Mutex

func (r remover) report(f func()) error {
	printing.Lock()
	defer printing.Unlock()
	f()
	return nil
}

// eachOf calls do for 0 to n-1, at most r.parallel at the same time, and returns the first error.
func (r remover) eachOf(n int, do func(int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	slots := make(chan struct{}, max(1, r.parallel))
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(i)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// prepareTrials builds the test programs: one per package with all guards that can be switched off at run time, and
// separate ones for each other guard.
func (r remover) prepareTrials(ctx context.Context, tmp string, all, guards []guard) ([]trial,
	error) {
	together := slices.DeleteFunc(slices.Clone(all), func(g guard) bool { return g.apart })
	common, err := writeOverlay(r.root, filepath.Join(tmp, "common"), together)
	if err != nil {
		return nil, err
	}
	built := map[string]bool{}
	tried := map[string]bool{}
	var trials []trial
	for i, g := range guards {
		list, dir := common, filepath.Join(tmp, "common")
		if g.apart {
			dir = filepath.Join(tmp, fmt.Sprint(i))
			if list, err = writeOverlay(r.root, dir, []guard{g}); err != nil {
				return nil, err
			}
		}
		for _, t := range g.tests {
			if tried[g.removal()+" "+t.String()] {
				continue // with another guard of the same layer
			}
			tried[g.removal()+" "+t.String()] = true
			program := filepath.Join(dir, strings.ReplaceAll(t.dir, "/", "-")+".test")
			if !built[program] {
				if err := buildProgram(ctx, r.root, list, t.dir, program); err != nil {
					return nil, fmt.Errorf("without %s: %w", g, err)
				}
				built[program] = true
			}
			trials = append(trials, trial{guard: g, test: t, overlay: list, program: program})
		}
	}
	return trials, nil
}

// allPass runs each test with all guards in place, and sets the trials' time limits from that. It returns the trials
// of the tests that pass, and the number of the others, which prove nothing.
func (r remover) allPass(ctx context.Context, trials []trial) (passing []trial, bad int,
	err error) {
	clean, err := os.MkdirTemp("", "guards")
	if err != nil {
		return nil, 0, err
	}
	defer os.RemoveAll(clean)
	none, err := writeOverlay(r.root, clean, nil)
	if err != nil {
		return nil, 0, err
	}
	tests := map[testName][]int{}
	for i, t := range trials {
		tests[t.test] = append(tests[t.test], i)
	}
	names := slices.SortedFunc(func(yield func(testName) bool) {
		for t := range tests {
			if !yield(t) {
				return
			}
		}
	}, func(a, b testName) int { return cmp.Compare(a.String(), b.String()) })
	programs := map[string]string{}
	for _, t := range trials {
		if !t.guard.apart {
			programs[t.test.dir] = t.program
		}
	}
	for _, t := range names {
		if programs[t.dir] == "" {
			programs[t.dir] = filepath.Join(clean, strings.ReplaceAll(t.dir, "/", "-")+".test")
			if err := buildProgram(ctx, r.root, none, t.dir, programs[t.dir]); err != nil {
				return nil, 0, err
			}
		}
	}
	err = r.eachOf(len(names), func(i int) error {
		t := names[i]
		o, err := runTest(ctx, r.root, t, programs[t.dir], none, "", 3*time.Minute)
		if err != nil {
			return err
		}
		if o.verdict != passes {
			return r.report(func() {
				bad++
				fmt.Fprintf(r.out, "FAIL %s %s with all guards in place:\n%s\n", t, o.verdict,
					tailOf(o.output, 60))
			})
		}
		for _, k := range tests[t] {
			trials[k].limit = r.least + 5*o.took
		}
		return nil
	})
	return slices.DeleteFunc(trials, func(t trial) bool { return t.limit == 0 }), bad, err
}

// tailOf returns the last lines of a text.
func tailOf(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
