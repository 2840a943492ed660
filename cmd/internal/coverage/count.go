package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// repository is the prefix of package names in coverage profiles.
const repository = "github.com/brine-salt/brine/"

// counted holds the blocks of statements in profiles, by file and position: file.go:10.2,12.3.
type counted map[string]block

type block struct {
	statements int
	covered    bool
}

// add adds a profile in the format of go test. A block that several tests cover counts once.
func (c counted) add(profile string) error {
	for line := range strings.Lines(profile) {
		if strings.HasPrefix(line, "mode:") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return fmt.Errorf("no line of a profile: %q", line)
		}
		n, err1 := strconv.Atoi(fields[1])
		times, err2 := strconv.ParseUint(fields[2], 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		place := strings.TrimPrefix(fields[0], repository)
		c[place] = block{statements: n, covered: c[place].covered || times > 0}
	}
	return nil
}

// share is the number of covered statements out of all.
type share struct{ covered, all int }

func (s share) percent() float64 { return 100 * float64(s.covered) / float64(max(1, s.all)) }

func (s *share) add(b block) {
	s.all += b.statements
	if b.covered {
		s.covered += b.statements
	}
}

// packages returns the share of each package, and of all packages together.
func (c counted) packages() (each map[string]*share, all share) {
	each = map[string]*share{}
	for place, b := range c {
		file, _, _ := strings.Cut(place, ":")
		dir := path.Dir(file)
		if each[dir] == nil {
			each[dir] = &share{}
		}
		each[dir].add(b)
		all.add(b)
	}
	return each, all
}

// report prints the packages, those with the most uncovered statements first. It returns an error if a share is too
// low, or if a package in lower does not need its exception.
func (c counted) report(w io.Writer, least, floor float64, lower map[string]string) error {
	each, all := c.packages()
	names := slices.SortedFunc(maps.Keys(each), func(a, b string) int {
		missing := func(s *share) int { return s.all - s.covered }
		return missing(each[b]) - missing(each[a])
	})
	var wrong []error
	for _, name := range names {
		s := each[name]
		fmt.Fprintf(w, "%5.1f %% %6d of %6d  %s\n", s.percent(), s.covered, s.all, name)
		reason, may := lower[name]
		switch {
		case s.percent() < floor && may:
			fmt.Fprintf(w, "        %s\n", reason)
		case s.percent() < floor:
			wrong = append(wrong, fmt.Errorf("%s: %.1f %% is covered, less than %g %%",
				name, s.percent(), floor))
		case may:
			wrong = append(wrong, fmt.Errorf("%s: %.1f %% is covered, it needs no reason why not",
				name, s.percent()))
		}
	}
	fmt.Fprintf(w, "%5.1f %% %6d of %6d  all\n", all.percent(), all.covered, all.all)
	if all.percent() < least {
		wrong = append(wrong, fmt.Errorf("all: %.1f %% is covered, less than %g %%",
			all.percent(), least))
	}
	return errors.Join(wrong...)
}

// printMissing prints the uncovered blocks of a package, largest first.
func (c counted) printMissing(w io.Writer, name string) error {
	var places []string
	for place, b := range c {
		if file, _, _ := strings.Cut(place, ":"); path.Dir(file) == name && !b.covered {
			places = append(places, place)
		}
	}
	slices.SortFunc(places, func(a, b string) int {
		if d := c[b].statements - c[a].statements; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, place := range places {
		fmt.Fprintf(w, "%4d %s\n", c[place].statements, place)
	}
	return nil
}
