// Package check finds what this program cannot do in a configuration and in a tree of states, before a host is
// migrated to brine. It serves "brine-minion check", "brine-master check" and the execution function brine.check.
//
// Names are collected in two ways. The text of every file is parsed with its template tags masked, which finds the
// names in all branches. Then each state file is rendered for one host, which finds the names that this host uses.
// Only names that this host uses are failures; others are warnings. A rendering may only call functions that read
// (see quiet). A file that needs other functions is checked by its text alone.
//
// The check runs no states and writes nothing. It compares names with the program's registries, renderers,
// kinds of beacons and package conf.
package check

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// Level is the severity of a finding.
type Level string

// The levels. A Failure will not work and makes the verdict negative. A Warning may matter elsewhere: a branch
// that this host does not take, code of the site that no state uses, an option without effect. A Note is for
// information.
const (
	Failure Level = "failure"
	Warning Level = "warning"
	Note    Level = "note"
)

// Finding is one result of the check.
type Finding struct {
	Level Level `json:"level"`
	// Kind is the subject: "function", "state", "renderer", "filter", "test", "template", "custom", "option",
	// "beacon", "returner", "engine", "pillar", "roster", "reactor", "runner", "wheel", "left-over", "render",
	// "include".
	Kind string `json:"kind"`
	// Name is the name of the function, state, option and so on.
	Name string `json:"name"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Text is the problem. Cure is the remedy; it is empty if none is known.
	Text string `json:"text"`
	Cure string `json:"cure,omitempty"`
}

// Report is the result of a check.
type Report struct {
	Fine     bool      `json:"fine"`
	Verdict  string    `json:"verdict"`
	Files    int       `json:"files"`
	Rendered int       `json:"rendered"`
	Findings []Finding `json:"findings"`
}

// Options select what is checked.
type Options struct {
	// Config is a minion's configuration. Its options are used for the trees even if they are not checked.
	Config *conf.Config
	// Configuration also checks the options in Config.
	Configuration bool
	// Trees are directories of states, each checked as a separate tree. If there are none, file_roots is checked, and
	// only the highstate of this host counts as used.
	Trees []string
	// Roots are directories of states by environment, as in file_roots, whose state files all count as used. It may be
	// nil.
	Roots map[string][]string
	// Reactors are the files of Master's option reactor. OnMaster reports whether a master has a "runner" or
	// "wheel" function; if it is nil, those are not checked.
	Master   *conf.Config
	Reactors []string
	OnMaster func(kind, fun string) bool
	// Env is the host: grains, pillar and renderers, and the files of file_roots if there are no Trees.
	Env *modules.Env
	// Files creates a file client for directories of this host.
	Files func(roots map[string][]string) modules.Files
	// Registry and States hold the program's functions.
	Registry *modules.Registry
	States   *states.Registry
	// Beacons are the names of the kinds of beacons.
	Beacons []string
}

// Run runs the check. It returns an error if ctx ends or a directory cannot be read.
func Run(ctx context.Context, o Options) (*Report, error) {
	r := &run{Options: o, known: knownFunctions(o), report: &Report{}, seen: map[Finding]bool{}}
	if o.Configuration {
		r.checkOptions()
	}
	trees := []*tree{}
	for _, dir := range o.Trees {
		trees = append(trees,
			&tree{run: r, roots: map[string][]string{"base": {dir}},
				files: o.Files(map[string][]string{"base": {dir}}), all: true})
	}
	if o.Roots != nil {
		trees = append(trees, &tree{run: r, roots: o.Roots, files: o.Files(o.Roots), all: true})
	}
	if len(trees) == 0 && o.Env.Files != nil {
		trees = append(trees, &tree{run: r, roots: r.fileRoots(), files: o.Env.Files})
	}
	for _, t := range trees {
		if err := t.checkWhole(ctx); err != nil {
			return nil, err
		}
	}
	r.finish()
	return r.report, nil
}

type run struct {
	Options
	known  *known
	report *Report
	seen   map[Finding]bool
}

// add adds a finding unless it is a duplicate.
func (r *run) add(f Finding) {
	key := f
	key.Level = ""
	if !r.seen[key] {
		r.seen[key] = true
		r.report.Findings = append(r.report.Findings, f)
	}
}

func (r *run) finish() {
	rank := func(l Level) int { return slices.Index([]Level{Failure, Warning, Note}, l) }
	sorting.Stable(r.report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Level), rank(b.Level)), cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Name, b.Name))
	})
	count := map[Level]int{}
	for _, f := range r.report.Findings {
		count[f.Level]++
	}
	r.report.Fine = count[Failure] == 0
	of := fmt.Sprintf("%s, %s, %s; %s rendered", plural(r.report.Files, "file"),
		plural(count[Failure], "failure"), plural(count[Warning], "warning"),
		plural(r.report.Rendered, "state file"))
	if r.report.Fine {
		r.report.Verdict = "fine: everything that was found works (" + of + ")"
	} else {
		r.report.Verdict = "not fine: some of it will not work (" + of + ")"
	}
}

// Merge adds another report to r.
func (r *Report) Merge(o *Report) {
	r.Files, r.Rendered, r.Findings = r.Files+o.Files, r.Rendered+o.Rendered,
		append(r.Findings, o.Findings...)
	(&run{report: r}).finish()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Write prints one line per finding, then the verdict.
func (r *Report) Write(w io.Writer) {
	for _, f := range r.Findings {
		place := f.File
		if f.Line > 0 {
			place = fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if place != "" {
			place += ": "
		}
		text := f.Text
		if f.Cure != "" {
			text += "; " + f.Cure
		}
		fmt.Fprintf(w, "%s%s: %s\n", place, f.Level, strings.ReplaceAll(text, "\n", " "))
	}
	fmt.Fprintln(w, r.Verdict)
}
