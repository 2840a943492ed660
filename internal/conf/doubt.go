package conf

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules/pyobj"
)

// A Doubt is an option in the files that may not do what its author meant.
type Doubt struct {
	// Option is its name. File and Line are the place where it is set; Line is 0 if unknown.
	Option, File string
	Line         int
	// Near is the known option with the most similar name, or "" if none is similar.
	Near string
}

// Error returns the text for the log.
func (d Doubt) Error() string {
	text := fmt.Sprintf("Config option '%s' is unknown", d.Option)
	if d.Near != "" {
		text += fmt.Sprintf("; did you mean '%s'?", d.Near)
	}
	return text + at(d.File, d.Line)
}

func at(file string, line int) string {
	switch {
	case file == "":
		return ""
	case line == 0:
		return " (" + file + ")"
	}
	return fmt.Sprintf(" (%s, line %d)", file, line)
}

// Unknown returns the options in the files that Salt, brine and the program do not read, sorted by name. own are the
// options of the program. Names with a dot or colon are left out, since Salt's modules have their own options
// (mysql.host), and so are names that begin with two underscores.
func (c *Config) Unknown(own ...string) []Doubt {
	var list []Doubt
	var known map[string]bool
	for _, name := range slices.Sorted(maps.Keys(c.Given)) {
		if strings.ContainsAny(name, ".:") || strings.HasPrefix(name, "__") || validTypes(name) != "" {
			continue
		}
		if known == nil {
			known = c.names()
			for _, name := range own {
				known[name] = true
			}
		}
		if known[name] {
			continue
		}
		d := Doubt{Option: name, Near: nearest(name, known)}
		d.File, d.Line = c.Place(name)
		list = append(list, d)
	}
	return list
}

// names returns the known options.
func (c *Config) names() map[string]bool {
	known := map[string]bool{}
	for _, defaults := range []map[string]any{MinionDefaults(), MasterDefaults()} { // a minion's options are also valid in a master's file
		for name := range defaults {
			known[name] = true
		}
	}
	for _, t := range optionTypes {
		for name := range strings.FieldsSeq(t.options) {
			known[name] = true
		}
	}
	for name := range strings.FieldsSeq(furtherOptions) {
		known[name] = true
	}
	return known
}

// Near returns the known name that is almost equal to name, or "" if no name or more than one is.
func Near(name string, known []string) string {
	set := make(map[string]bool, len(known))
	for _, k := range known {
		set[k] = true
	}
	return nearest(name, set)
}

func nearest(name string, known map[string]bool) string {
	limit := 2
	if len(name) < 7 {
		limit = 1
	}
	best, found := "", limit+1
	for k := range known {
		if len(k) < 3 || len(k)-len(name) > limit || len(name)-len(k) > limit {
			continue
		}
		switch d := distance(name, k); {
		case d < found:
			best, found = k, d
		case d == found && k < best:
			best = k
		}
	}
	if found > limit {
		return ""
	}
	return best
}

// distance returns how many letters must be added, removed, changed or swapped with the next one (optimal string
// alignment).
func distance(a, b string) int {
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// Place returns where an option is set: in the last file that sets it. It reads the files again, so that a normal
// start does not have the cost.
func (c *Config) Place(option string) (file string, line int) {
	for _, path := range slices.Backward(c.Files) {
		b, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(b), option) {
			continue
		}
		n, err := yaml.Tree(b, path)
		if err != nil || n == nil {
			continue
		}
		for _, p := range slices.Backward(n.Pairs) {
			if p.Key.Scalar && p.Key.Text == option {
				return path, p.Key.Line
			}
		}
	}
	return "", 0
}

// Idle returns the options in the files that brine accepts but that have no effect, sorted by name. Options set to
// stock's default are left out.
func (c *Config) Idle() []Doubt {
	names, defaults := idleMinion, MinionDefaults()
	if c.Opts["__role"] == "master" {
		names, defaults = idleMaster, MasterDefaults()
	}
	var list []Doubt
	for name := range strings.FieldsSeq(names) {
		if !c.Given[name] || pytext.Repr(pyobj.Plain(c.Opts[name])) == pytext.Repr(defaults[name]) {
			continue
		}
		d := Doubt{Option: name}
		d.File, d.Line = c.Place(name)
		list = append(list, d)
	}
	return list
}

// Placed returns the text of a note with the place of its option, if a file sets it.
func (c *Config) Placed(n Note) string {
	if n.Option == "" || !c.Given[n.Option] {
		return n.Text
	}
	return n.Text + at(c.Place(n.Option))
}

// Changes returns a text for each option that a reload changed, with the place that sets it now. Values are left out,
// since they may be secret.
func Changes(old, now *Config) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(now.Opts)) {
		was, had := old.Opts[name]
		switch {
		case strings.HasPrefix(name, "__") || had && reflect.DeepEqual(was, now.Opts[name]):
		case had && old.Given[name] && !now.Given[name]:
			list = append(list, name+" has its default again")
		case had:
			list = append(list, name+" changed"+at(now.Place(name)))
		default:
			list = append(list, name+" added"+at(now.Place(name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old.Opts)) {
		if _, has := now.Opts[name]; !has && !strings.HasPrefix(name, "__") {
			list = append(list, name+" removed")
		}
	}
	return list
}
