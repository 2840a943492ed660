// Package check tells what of a configuration and of a tree of states this program cannot do, before anything is moved
// to it: "brine-minion check", "brine-master check" and the execution function brine.check.
//
// Names are found twice. The text of every file is read as it stands, with its tags taken out, which finds the names of
// all branches. Then each state file is rendered for one host, which finds what this host reaches: only that is a
// failure, the rest a warning. A rendering may call only functions that read (see quiet). A file that needs others is
// judged by its text alone.
//
// Nothing of the tree is run and nothing is written. What is known comes from the registries of the program, the
// renderers, the kinds of beacons and package conf.
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

// Level is how much a finding matters.
type Level string

// The levels. A Failure is something that will not work, and makes the verdict. A Warning may matter elsewhere: a
// branch that this host does not take, code of the site that nothing names, an option without effect. A Note is for
// information.
const (
	Failure Level = "failure"
	Warning Level = "warning"
	Note    Level = "note"
)

// Finding is one thing that was found.
type Finding struct {
	Level Level `json:"level"`
	// Kind is what it is about: "function", "state", "renderer", "filter", "test", "template", "custom", "option",
	// "beacon", "returner", "engine", "pillar", "roster", "reactor", "runner", "wheel", "left-over", "render",
	// "include".
	Kind string `json:"kind"`
	// Name is the function, state, option and so on.
	Name string `json:"name"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Text says what is wrong, Cure what to do, "" if nothing is known.
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

// Options say what is checked.
type Options struct {
	// Config is the configuration of a minion; its options without findings serve the trees.
	Config *conf.Config
	// Configuration makes the options be checked too.
	Configuration bool
	// Trees are directories of states, each a tree of its own. Without them the trees are those of file_roots, and only
	// what the highstate of this host uses counts as reached.
	Trees []string
	// Roots are directories of states by environment, as file_roots has them, all of whose state files count; nil is
	// none.
	Roots map[string][]string
	// Reactors are the files of the option reactor of Master, and OnMaster reports whether a master has a "runner" or
	// "wheel" function; nil is not asked.
	Master   *conf.Config
	Reactors []string
	OnMaster func(kind, fun string) bool
	// Env is the host: grains, pillar, renderers, and the files of file_roots if there are no trees. Files is made from
	// Trees if there are.
	Env *modules.Env
	// Files makes a file client for directories of this host.
	Files func(roots map[string][]string) modules.Files
	// Registry and States have the functions of the program.
	Registry *modules.Registry
	States   *states.Registry
	// Beacons are the kinds of beacons, by name.
	Beacons []string
}

// Run checks. The error is that of a context that ended, or of a directory that cannot be read.
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

// add notes a finding, once.
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

// Merge adds another report.
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

// Write prints the report, a line for each finding and the verdict last.
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
