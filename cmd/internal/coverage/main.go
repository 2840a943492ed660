// Coverage counts the statements of modules/... and states/... that tests cover without Python, and prints them by
// package.
//
// Every package is covered by its own tests, and by those that replay stock's recorded results for the cases of many
// packages (TestReplay in modules, modules/returners, states, states/render and states/render/pillar):
//
//	go test -coverpkg=./modules/...,./states/... ./modules ./states … ──┐
//	                                                                     ├─▶ a statement counts once
//	go test -cover ./modules/... ./states/... (the others) ─────────────┘
//
// For these tests, PATH contains neither Python nor stock Salt.
//
// The program fails if a test fails, if all packages together are below -least percent, or if a package is below
// -floor and not in the list of exceptions.
//
// Usage, from the root of the repository:
//
//	go run ./cmd/internal/coverage [-least 75] [-floor 50] [-missing PACKAGE] [-profiles DIRECTORY [-count]]
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	o := options{}
	flag.Float64Var(&o.least, "least", 75, "the percentage of all packages together")
	flag.Float64Var(&o.floor, "floor", 50, "the percentage of each package")
	flag.StringVar(&o.missing, "missing", "",
		"print what is not covered of this package, as modules/file")
	flag.StringVar(&o.profiles, "profiles", "", "keep the profiles in this directory")
	flag.BoolVar(&o.count, "count", false,
		"run no tests, count the profiles that are in the directory")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(1)
	}
}

type options struct {
	least, floor      float64
	missing, profiles string
	count             bool
}

func run(o options) error {
	if o.profiles == "" {
		dir, err := os.MkdirTemp("", "coverage")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.profiles = dir
	}
	if !o.count {
		if err := test(o.profiles); err != nil {
			return err
		}
	}
	c := counted{}
	files, err := filepath.Glob(filepath.Join(o.profiles, "*.out"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no profiles in %s", o.profiles)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err == nil {
			err = c.add(string(text))
		}
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", f, err)
		}
	}
	if o.missing != "" {
		return c.printMissing(os.Stdout, o.missing)
	}
	return c.report(os.Stdout, o.least, o.floor, mayBeLower)
}
