package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

// A comparison is one cost of one command.
type comparison struct {
	command, cost string
	old, new      benchmath.Summary // in seconds
	p             float64
}

const (
	// tolerance is by how much a median may be higher.
	tolerance = 0.05
	// confidence is that of the intervals in the table.
	confidence = 0.95
)

func (c comparison) ratio() float64 { return c.new.Center / c.old.Center }

func (c comparison) pText() string {
	if c.p < 0.001 {
		return "<0.001"
	}
	return fmt.Sprintf("%.3f", c.p)
}

// worse reports whether the new program costs more.
func (c comparison) worse() bool {
	return c.ratio() > 1+tolerance && c.p < benchmath.DefaultThresholds.CompareAlpha
}

// compare compares the costs of a command.
func compare(r result) []comparison {
	costs := []struct {
		name string
		of   func(sample) time.Duration
	}{
		{"processor", func(s sample) time.Duration { return s.cpu }},
		{"wall", func(s sample) time.Duration { return s.wall }},
	}
	var list []comparison
	for _, cost := range costs {
		var by [2]*benchmath.Sample
		for i := range sides {
			values := make([]float64, len(r.samples[i]))
			for n, s := range r.samples[i] {
				values[n] = cost.of(s).Seconds()
			}
			by[i] = benchmath.NewSample(values, &benchmath.DefaultThresholds)
		}
		a := benchmath.AssumeNothing
		list = append(list, comparison{r.name, cost.name, a.Summary(by[0], confidence),
			a.Summary(by[1], confidence), a.Compare(by[0], by[1]).P})
	}
	return list
}

// errWorse is the end of a comparison in which a command is worse.
var errWorse = errors.New("the working tree is worse")

// judge prints the table and the verdict. It returns errWorse if a cost is worse.
func judge(w io.Writer, results []result) error {
	var verdict strings.Builder
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "command\ttime\told\t\tnew\t\tratio\tp\tpairs\t")
	for _, r := range results {
		for _, c := range compare(r) {
			fmt.Fprintf(t, "%s\t%s\t%s\t±%s\t%s\t±%s\t%.3f\t%s\t%d\t\n", c.command, c.cost,
				milliseconds(c.old), c.old.PctRangeString(), milliseconds(c.new),
				c.new.PctRangeString(), c.ratio(), c.pText(), len(r.samples[0]))
			if c.worse() {
				fmt.Fprintf(&verdict, "worse: %s, %s time, by %.1f %% (p %s)\n", c.command,
					c.cost, 100*(c.ratio()-1), c.pText())
			}
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if verdict.Len() > 0 {
		_, err := fmt.Fprint(w, "\n", verdict.String())
		return errors.Join(err, errWorse)
	}
	_, err := fmt.Fprintf(w, "\nNo command is worse by more than %.0f %% with p < %.2f.\n",
		100*tolerance, benchmath.DefaultThresholds.CompareAlpha)
	return err
}

func milliseconds(s benchmath.Summary) string { return fmt.Sprintf("%.1f ms", 1000*s.Center) }

const (
	wallUnit = "sec/op"
	cpuUnit  = "cpu-sec/op"
)

// writeSamples writes the samples in Go's benchmark format.
func writeSamples(file string, results []result) error {
	var b strings.Builder
	for _, r := range results {
		for n := range r.samples[0] {
			for i, side := range sides {
				s := r.samples[i][n]
				fmt.Fprintf(&b, "BenchmarkPaired/command=%s/program=%s 1 %.9f %s %.9f %s\n",
					r.name, side, s.wall.Seconds(), wallUnit, s.cpu.Seconds(), cpuUnit)
			}
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("cannot write samples: %w", err)
	}
	return nil
}

// readSamples reads what writeSamples has written. Its errors name the file and the line.
func readSamples(file string) ([]result, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read samples: %w", err)
	}
	defer f.Close()
	var results []result
	in := benchfmt.NewReader(f, file)
	for in.Scan() {
		switch rec := in.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, fmt.Errorf("cannot read samples: %w", rec)
		case *benchfmt.Result:
			if results, err = addSample(results, rec); err != nil {
				name, line := rec.Pos()
				return nil, fmt.Errorf("cannot read samples: %s:%d: %w", name, line, err)
			}
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("cannot read samples: %w", err)
	}
	for _, r := range results {
		if a, b := len(r.samples[0]), len(r.samples[1]); a != b || a < leastPairs {
			return nil, fmt.Errorf("cannot compare %d and %d samples of %s in %s: "+
				"at least %d pairs are needed", a, b, r.name, file, leastPairs)
		}
	}
	if len(results) == 0 {
		return nil, fmt.Errorf("cannot find samples in %s", file)
	}
	return results, nil
}

// addSample adds a line of the file to the results.
func addSample(results []result, rec *benchfmt.Result) ([]result, error) {
	base, parts := rec.Name.Parts()
	if string(base) != "Paired" || len(parts) != 2 {
		return nil, fmt.Errorf("%q is not the name of a measured command", rec.Name)
	}
	command, a := strings.CutPrefix(string(parts[0]), "/command=")
	program, b := strings.CutPrefix(string(parts[1]), "/program=")
	side := slices.Index(sides[:], program)
	if !a || !b || side < 0 {
		return nil, fmt.Errorf("%q is not the name of a measured command", rec.Name)
	}
	wall, a := rec.Value(wallUnit)
	cpu, b := rec.Value(cpuUnit)
	if !a || !b || !(wall > 0) || !(cpu > 0) {
		return nil, fmt.Errorf("%s or %s is missing, or not positive", wallUnit, cpuUnit)
	}
	if n := len(results); n == 0 || results[n-1].name != command {
		results = append(results, result{name: command})
	}
	r := &results[len(results)-1]
	r.samples[side] = append(r.samples[side], sample{seconds(cpu), seconds(wall)})
	return results, nil
}

func seconds(s float64) time.Duration {
	return time.Duration(math.Round(s * float64(time.Second)))
}
