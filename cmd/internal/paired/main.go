// Paired compares whole commands of the working tree with those of an old commit, in processor time and in wall time.
//
//	old commit ──▶ brine-minion, brine-master ──▶ its own directories and daemons ──┐
//	                                                                                 ├─▶ pairs ──▶ table, verdict
//	working tree ▶ brine-minion, brine-master ──▶ its own directories and daemons ──┘
//
// A pair is one run of a command by each program. The program that runs first alternates, so that a machine that
// becomes slower does not favour one of them. The processor time is that of the command and of its daemons, user and
// system. Simulated minions are those of the working tree for both.
//
// A cost is worse if its median is more than 5 % higher and the Mann-Whitney U test gives p < 0.05. The exit status is
// 1 then, and 2 if the comparison failed. Among many costs one can look worse by chance, and more easily on a busy
// machine: repeat its command with -run and more pairs.
//
// Usage, from the root of the repository:
//
//	go run ./cmd/internal/paired -commit COMMIT [-run REGEXP] [-n PAIRS] [-time 20m] [-keep FILE]
//	go run ./cmd/internal/paired -judge FILE
//
// The file has Go's benchmark format: benchstat -row /command -col /program FILE reads it as well.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

func main() {
	o, err := readOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = execute(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "paired:", err)
		os.Exit(exitStatus(err))
	}
}

// exitStatus tells a cost that is worse from a comparison that failed.
func exitStatus(err error) int {
	if errors.Is(err, errWorse) {
		return 1
	}
	return 2
}

type options struct {
	commit, keep, judge string
	run                 *regexp.Regexp
	pairs               int
	time                time.Duration
}

// leastPairs is the number of pairs below which the test cannot give p < 0.05.
const leastPairs = 4

// readOptions reads the command line. Its errors are complete messages.
func readOptions(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("paired", flag.ContinueOnError)
	f.StringVar(&o.commit, "commit", "", "the old commit")
	only := f.String("run", "", "measure the commands whose names match this regular expression")
	f.IntVar(&o.pairs, "n", 20, "how many pairs of each command, at least 4")
	f.DurationVar(&o.time, "time", 20*time.Minute, "end after this time")
	f.StringVar(&o.keep, "keep", "", "write the samples to this file")
	f.StringVar(&o.judge, "judge", "", "measure nothing, read the samples from this file")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.run, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("cannot read -run: %w", err)
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("cannot take the argument %q", f.Arg(0))
	case (o.commit == "") == (o.judge == ""):
		return o, errors.New("either -commit or -judge is needed")
	case o.pairs < leastPairs:
		return o, fmt.Errorf("cannot compare %d pairs, at least %d are needed", o.pairs, leastPairs)
	case o.judge == "" && len(selected(o.run)) == 0:
		return o, fmt.Errorf("cannot find a command that matches %q", o.run)
	}
	return o, nil
}

// selected returns the commands whose names match.
func selected(run *regexp.Regexp) (list []command) {
	for _, c := range commands {
		if run.MatchString(c.name) {
			list = append(list, c)
		}
	}
	return list
}

func execute(ctx context.Context, o options) error {
	if o.judge != "" {
		results, err := readSamples(o.judge)
		if err != nil {
			return err
		}
		return judge(os.Stdout, results)
	}
	if o.keep != "" { // before the work, which would be lost if the file cannot be written
		if err := writeSamples(o.keep, nil); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, o.time)
	defer cancel()
	results, err := measureAll(ctx, o)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("the time of %s is over (-time): %w", o.time, err)
	}
	if len(results) == 0 {
		return err
	}
	if o.keep != "" {
		err = errors.Join(err, writeSamples(o.keep, results))
	}
	return errors.Join(err, judge(os.Stdout, results))
}

// measureAll builds the programs and measures the commands. After an error it returns what it has measured.
func measureAll(ctx context.Context, o options) ([]result, error) {
	dir, err := os.MkdirTemp("", "paired-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := build(ctx, o.commit, dir); err != nil {
		return nil, err
	}
	if err := writeTree(filepath.Join(dir, "srv")); err != nil {
		return nil, err
	}
	var results []result
	for _, c := range selected(o.run) {
		fmt.Fprintf(os.Stderr, "%s: %s\n", c.name, c.what)
		r, err := measure(ctx, c, dir, o.pairs)
		if r = r.wholePairs(); len(r.samples[0]) >= leastPairs {
			results = append(results, r)
		}
		if err != nil {
			return results, err
		}
	}
	return results, nil
}
