// Command compat writes docs/compatibility.md: what stock Salt has, and which of it brine does. The left side is read from
// stock's own sources (inventory.py), the right side from our programs, so the table cannot be more optimistic than the code.
//
// Run it with "make compat" from the root of the repository, after "make build".
package main

import (
	"encoding/json"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/brine-salt/brine/modules"
	_ "github.com/brine-salt/brine/modules/all"
	"github.com/brine-salt/brine/states"
	_ "github.com/brine-salt/brine/states/all"
)

// home is the folder of this program's data, from the root of the repository.
const home = "cmd/internal/compat"

// lines are the release lines of stock Salt, the newest first.
var lines = [...]string{"3008", "3007", "3006"}

// inventory is what one stock release has.
type inventory struct {
	Version       string              `json:"version"`
	Functions     map[string][]string `json:"functions"`
	States        map[string][]string `json:"states"`
	MinionOptions []string            `json:"minion_options"`
	ReadOptions   []string            `json:"read_options"` // of no default
	MasterOptions []string            `json:"master_options"`
	Flags         map[string][]string `json:"flags"`
	Requests      []string            `json:"requests"`
	ClearRequests []string            `json:"clear_requests"`
}

// notes are the hand-written remarks.
type notes struct {
	Functions map[string]string `yaml:"functions"`
	States    map[string]string `yaml:"states"`
	Options   map[string]string `yaml:"options"`
}

type compat struct {
	stock   map[string]inventory
	notes   notes
	general []string            // remarks on many functions
	ours    map[string][]string // functions by module
	cases   map[string]int      // differential cases by function
	// ourStates and stateCases are the same of states.
	ourStates  map[string][]string
	stateCases map[string]int
	literals   map[string]bool // texts in the sources of the programs, without tests and defaults
	requests   map[string]bool // texts in the sources of the master
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
		os.Exit(1)
	}
}

func run() error {
	c := &compat{stock: map[string]inventory{}, ours: map[string][]string{}, cases: map[string]int{}, ourStates: map[string][]string{}, stateCases: map[string]int{}}
	if err := c.load(); err != nil {
		return err
	}
	var b strings.Builder
	c.head(&b)
	c.functions(&b)
	c.states(&b)
	c.options(&b, "minion", func(i inventory) []string { return i.MinionOptions })
	c.options(&b, "master", func(i inventory) []string { return i.MasterOptions })
	if err := c.flags(&b); err != nil {
		return err
	}
	c.commands(&b)
	if err := os.WriteFile("docs/compatibility.md", []byte(b.String()), 0o644); err != nil {
		return err
	}
	return c.knownOptions()
}

func (c *compat) load() error {
	for _, line := range lines {
		text, err := os.ReadFile(filepath.Join(home, "inventory-"+line+".json"))
		if err != nil {
			return err
		}
		var i inventory
		if err := json.Unmarshal(text, &i); err != nil {
			return fmt.Errorf("cannot read the inventory of %s: %w", line, err)
		}
		c.stock[line] = i
	}
	text, err := os.ReadFile(filepath.Join(home, "notes.yaml"))
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, &c.notes); err != nil {
		return err
	}
	list, err := remarks("modules")
	if err != nil {
		return err
	}
	c.general = addRemarks(&c.notes.Functions, list)
	if list, err = remarks("states"); err != nil {
		return err
	}
	c.general = append(c.general, addRemarks(&c.notes.States, list)...)
	for _, m := range modules.Default().All() {
		for _, d := range m.Funcs {
			c.ours[m.Called()] = append(c.ours[m.Called()], d.Name)
		}
	}
	for _, m := range states.Default().Declared() {
		for _, d := range m.Funcs {
			c.ourStates[m.Called()] = append(c.ourStates[m.Called()], d.Name)
		}
	}
	if err := c.countCases(); err != nil {
		return err
	}
	if c.literals, err = literals("minion", "modules", "cmd", "internal"); err != nil {
		return err
	}
	c.requests, err = literals("master", "protocol")
	return err
}

// countCases counts the calls that the interop tests compare with stock, by function: those of the cases, those of whole trees of states,
// and the states of orchestrations.
func (c *compat) countCases() error {
	call := regexp.MustCompile(`\bfun: ([a-z_0-9]+\.[A-Za-z_0-9]+)`)
	stateCall := regexp.MustCompile(`\bstate: ([a-z_0-9]+\.[A-Za-z_0-9]+)`)
	treeCall := regexp.MustCompile(`\bstate\.[a-z_]+`)
	key := regexp.MustCompile(`\b([a-z_0-9]+\.[a-z_0-9]+):(?: |\n)`) // in state files
	short := regexp.MustCompile(`\b([a-z_0-9]+): \[([a-z_0-9]+),`)   // with the function in the list
	count := func(into map[string]int, in *regexp.Regexp, text string) {
		for _, m := range in.FindAllStringSubmatch(text, -1) {
			into[strings.Join(m[min(1, len(m)-1):], ".")]++
		}
	}
	for _, pattern := range []string{"interop/side_by_side.yaml", "modules/testdata/stock/*.yaml", "modules/testdata/stock/*/*.yaml",
		"states/testdata/stock/*.yaml", "states/testdata/stock/*/*.yaml", "states/testdata/trees/*.txt", "interop/orchestrate_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			text := string(b)
			switch {
			case strings.HasPrefix(file, "states/testdata/trees/"):
				for tree := range strings.SplitSeq(text, "\n=====\n") {
					head, _, _ := strings.Cut(tree, "\n-- ")
					if !strings.Contains(head, "calls:") {
						head = "state.show_top state.show_highstate state.show_lowstate state.highstate" // what such a tree is for
					}
					count(c.cases, treeCall, head)
				}
				count(c.stateCases, key, text)
				count(c.stateCases, short, text)
			case strings.HasPrefix(file, "states/"):
				count(c.cases, call, text)
				count(c.stateCases, stateCall, text)
				count(c.stateCases, key, text)
			case strings.HasSuffix(file, ".go"):
				count(c.stateCases, key, text)
			default:
				count(c.cases, call, text)
				count(c.stateCases, stateCall, text)
			}
		}
	}
	return nil
}

// literals collects the texts in Go sources: an option that no source names is not honoured.
func literals(dirs ...string) (map[string]bool, error) {
	found := map[string]bool{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			if strings.Contains(path, "internal/conf/defaults_") || strings.HasSuffix(path, "internal/conf/types.go") || strings.HasSuffix(path, "internal/conf/known.go") || strings.HasPrefix(path, home) {
				return nil // these name every option there is
			}
			src, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			set := token.NewFileSet()
			var s scanner.Scanner
			s.Init(set.AddFile(path, set.Base(), len(src)), src, nil, 0)
			for {
				_, tok, lit := s.Scan()
				if tok == token.EOF {
					return nil
				}
				if tok == token.STRING {
					if text, err := strconv.Unquote(lit); err == nil {
						found[text] = true
					}
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (c *compat) head(w io.Writer) {
	fmt.Fprintf(w, "# Compatibility with stock Salt\n\nGenerated by `make compat`; do not edit. Stock is ")
	for i, line := range lines {
		if i > 0 {
			fmt.Fprint(w, ", ")
		}
		fmt.Fprint(w, c.stock[line].Version)
	}
	fmt.Fprint(w, `: every public function, option, flag and request
found in their sources. Ours is what our programs have.

- **works**: compared with stock by at least one case of the interop tests, whose number stands beside it
- **works, unproven**: there, but no case compares it yet
- **differs**: there, and the note says how it differs
- **absent**: answers as stock answers for an unknown function; an option is accepted and has no effect

`)
}

// union lists the names that any line has.
func (c *compat) union(names func(inventory) []string) []string {
	set := map[string]bool{}
	for _, line := range lines {
		for _, name := range names(c.stock[line]) {
			set[name] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// in tells which lines have a name, "" when all do.
func (c *compat) in(name string, names func(inventory) []string) string {
	var list []string
	for _, line := range lines {
		if slices.Contains(names(c.stock[line]), name) {
			list = append(list, line)
		}
	}
	if len(list) == len(lines) {
		return ""
	}
	slices.Reverse(list)
	return strings.Join(list, ", ")
}

func moduleNames(get func(inventory) map[string][]string) func(inventory) []string {
	return func(i inventory) []string { return slices.Collect(maps.Keys(get(i))) }
}

func execution(i inventory) map[string][]string { return i.Functions }

func (c *compat) functions(w io.Writer) {
	fmt.Fprint(w, "## Execution functions\n\n")
	rows, have, proven, total, absent := c.table(execution, c.ours, c.cases, c.notes.Functions)
	fmt.Fprintf(w, "Of %d functions that the three lines have together, %d are there, %d of them compared with stock.\n\n", total, have, proven)
	c.many(w)
	fmt.Fprint(w, "| function | only in | status | note |\n|---|---|---|---|\n", rows)
	fmt.Fprint(w, "\n### Absent modules\n\nThe number of functions stands beside the name.\n\n")
	c.list(w, absent, execution)
}

// table makes the rows of all modules of a kind that we have, and names those that we have not.
func (c *compat) table(get func(inventory) map[string][]string, ours map[string][]string, cases map[string]int, notes map[string]string) (
	rows string, have, proven, total int, absent []string,
) {
	var b strings.Builder
	for _, mod := range c.union(moduleNames(get)) {
		of := func(i inventory) []string { return get(i)[mod] }
		funs := c.union(of)
		total += len(funs)
		if ours[mod] == nil {
			absent = append(absent, mod)
			continue
		}
		for _, fun := range funs {
			name := mod + "." + fun
			status := "absent"
			if slices.Contains(ours[mod], fun) {
				have++
				status = "works, unproven"
				if n := cases[name]; n > 0 {
					proven++
					status = fmt.Sprintf("works (%d)", n)
				}
				if notes[name] != "" {
					status = "differs"
				}
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, c.in(fun, of), status, notes[name])
		}
	}
	return b.String(), have, proven, total, absent
}

// list names modules in running text, with the number of their functions.
func (c *compat) list(w io.Writer, names []string, get func(inventory) map[string][]string) {
	for i, mod := range names {
		if i > 0 {
			fmt.Fprint(w, ", ")
			if i%8 == 0 {
				fmt.Fprintln(w)
			}
		}
		fmt.Fprintf(w, "`%s` %d", mod, len(c.union(func(i inventory) []string { return get(i)[mod] })))
	}
	fmt.Fprint(w, "\n\n")
}

func (c *compat) states(w io.Writer) {
	get := func(i inventory) map[string][]string { return i.States }
	rows, have, proven, total, absent := c.table(get, c.ourStates, c.stateCases, c.notes.States)
	fmt.Fprintf(w, "## State functions\n\nOf %d state functions that the three lines have together, %d are there, %d of them compared with stock.\n\n", total, have, proven)
	fmt.Fprint(w, "| function | only in | status | note |\n|---|---|---|---|\n", rows)
	fmt.Fprint(w, "\n### Absent state modules\n\nThe number of functions stands beside the name.\n\n")
	c.list(w, absent, get)
}

func (c *compat) options(w io.Writer, kind string, get func(inventory) []string) {
	names := c.union(get)
	read := 0
	var b strings.Builder
	for _, name := range names {
		status := "accepted, no effect"
		if kind == "minion" && c.literals[name] || kind == "master" && (c.requests[name] || c.literals[name]) {
			status = "honoured"
			read++
		}
		if c.notes.Options[name] != "" {
			status = "differs"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, c.in(name, get), status, c.notes.Options[name])
	}
	fmt.Fprintf(w, "## Options of the %s\n\nOf %d options that have a default in stock, %d are honoured; all are accepted and\nreadable with `config.get`.\n\n", kind, len(names), read)
	fmt.Fprint(w, "| option | only in | status | note |\n|---|---|---|---|\n", b.String(), "\n")
}

func (c *compat) flags(w io.Writer) error {
	fmt.Fprint(w, "## Command line\n\n| program | option | only in | status |\n|---|---|---|---|\n")
	long := regexp.MustCompile(`--?[A-Za-z][-A-Za-z0-9]*`)
	for _, program := range []string{"salt-minion", "salt-call", "salt-master", "salt", "salt-key"} {
		of := func(i inventory) []string { return i.Flags[program] }
		help, err := helpOf(program)
		if err != nil {
			return err
		}
		have := long.FindAllString(help, -1)
		for _, flag := range c.union(of) {
			status := "works"
			if !slices.Contains(have, flag) {
				status = "absent"
			}
			fmt.Fprintf(w, "| %s | `%s` | %s | %s |\n", program, flag, c.in(flag, of), status)
		}
	}
	fmt.Fprintln(w)
	return nil
}

// helpOf is what a program of "make build" prints for --help.
func helpOf(program string) (string, error) {
	dir, err := os.MkdirTemp("", "compat")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	binary := "brine-master"
	if program == "salt-minion" || program == "salt-call" {
		binary = "brine-minion"
	}
	target, err := filepath.Abs(filepath.Join("bin", binary))
	if err != nil {
		return "", err
	}
	link := filepath.Join(dir, program)
	if err := os.Symlink(target, link); err != nil {
		return "", err
	}
	out, err := exec.Command(link, "--help").Output()
	if err != nil {
		return "", fmt.Errorf("cannot run %s --help: %w", program, err)
	}
	return string(out), nil
}

func (c *compat) commands(w io.Writer) {
	fmt.Fprint(w, "## Requests that our master answers\n\n| request | only in | status |\n|---|---|---|\n")
	for _, get := range []func(inventory) []string{
		func(i inventory) []string { return i.Requests }, func(i inventory) []string { return i.ClearRequests },
	} {
		for _, name := range c.union(get) {
			status := "absent"
			if c.requests[name] {
				status = "works"
			}
			fmt.Fprintf(w, "| `%s` | %s | %s |\n", name, c.in(name, get), status)
		}
	}
}
