package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// tablePath is the table of options. The comment in the file explains the fields.
const tablePath = "internal/conf/options.yaml"

// Roles that have options.
const (
	minion = "minion"
	master = "master"
)

// option is an entry of the table.
type option struct {
	name, theme string
	types       []string
	// defaults has a value for each role whose defaults in stock contain the option.
	defaults map[string]any
	of       []string // roles that have the option
	// unset is the value that applies if no file sets an option without a default. It may be nil.
	unset   any
	lines   []string // release lines of Salt, or "brine"
	refused string
	idle    map[string]string // by role
	note    string
	doc     string
}

// hasEffect reports whether the programs of a role support the option.
func (o *option) hasEffect(role string) bool {
	return slices.Contains(o.of, role) && o.idle[role] == "" && o.refused == ""
}

// optionTable is the table of options.
type optionTable struct {
	options []*option // in the order of the file
	// known are further names that a file may contain without a warning.
	known []string
}

// named returns the option with a name, or nil if the table does not have it.
func (t *optionTable) named(name string) *option {
	i := slices.IndexFunc(t.options, func(o *option) bool { return o.name == name })
	if i < 0 {
		return nil
	}
	return t.options[i]
}

// ofRole returns the options of a role, sorted by name.
func (t *optionTable) ofRole(role string) []*option {
	list := slices.DeleteFunc(slices.Clone(t.options),
		func(o *option) bool { return !slices.Contains(o.of, role) })
	slices.SortFunc(list, func(a, b *option) int { return strings.Compare(a.name, b.name) })
	return list
}

// readTable reads the table of options. Errors about an entry contain its line.
func readTable() (*optionTable, error) {
	text, err := os.ReadFile(tablePath)
	if err != nil {
		return nil, err
	}
	t, err := parseTable(text)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", tablePath, err)
	}
	return t, nil
}

func parseTable(text []byte) (*optionTable, error) {
	var file struct {
		Themes                      yaml.Node
		Modules, Commands, Internal string
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	t := &optionTable{known: strings.Fields(file.Modules + " " + file.Commands + " " +
		file.Internal)}
	seen := map[string]bool{}
	for _, name := range t.known {
		if seen[name] {
			return nil, fmt.Errorf("%s is listed twice", name)
		}
		seen[name] = true
	}
	themes := file.Themes.Content
	for i := 0; i+1 < len(themes); i += 2 {
		entries := themes[i+1].Content
		for k := 0; k+1 < len(entries); k += 2 {
			name := entries[k].Value
			o, err := parseOption(name, entries[k+1])
			if err == nil && seen[name] {
				err = fmt.Errorf("it is listed twice")
			}
			if err != nil {
				return nil, fmt.Errorf("line %d: %s: %w", entries[k].Line, name, err)
			}
			seen[name] = true
			o.theme = themes[i].Value
			t.options = append(t.options, o)
		}
	}
	return t, nil
}

// parseOption parses one entry.
func parseOption(name string, n *yaml.Node) (*option, error) {
	o := &option{name: name, defaults: map[string]any{}, idle: map[string]string{},
		lines: []string{"3006", "3007", "3008"}}
	for i := 0; i+1 < len(n.Content); i += 2 {
		value := n.Content[i+1]
		switch key := n.Content[i].Value; key {
		case "default":
			o.of = []string{minion, master}
			o.defaults[minion], o.defaults[master] = plainValue(value), plainValue(value)
		case minion, master:
			o.of = append(o.of, key)
			o.defaults[key] = plainValue(value)
		case "of":
			o.of = strings.Fields(value.Value)
		case "unset":
			o.unset = plainValue(value)
		case "types":
			o.types = strings.Fields(value.Value)
		case "lines":
			o.lines = strings.Fields(value.Value)
		case "refused":
			o.refused = value.Value
		case "note":
			o.note = value.Value
		case "doc":
			o.doc = value.Value
		case "idle":
			if value.Kind == yaml.MappingNode {
				if err := value.Decode(&o.idle); err != nil {
					return nil, err
				}
				continue
			}
			o.idle[minion], o.idle[master] = value.Value, value.Value
		default:
			return nil, fmt.Errorf("there is no field %s", key)
		}
	}
	return o, o.check()
}

// check returns an error for an entry that is incomplete or contradictory.
func (o *option) check() error {
	switch {
	case len(o.of) == 0:
		return fmt.Errorf("no role has it: default, minion, master or of is missing")
	case !sentence.MatchString(o.doc):
		return fmt.Errorf("doc must be one sentence with a full stop, not %q", o.doc)
	case len(o.lines) == 0:
		return fmt.Errorf("lines is empty")
	case o.unset != nil && len(o.defaults) == len(o.of):
		return fmt.Errorf("it has a default, so it is never unset")
	}
	for _, line := range o.lines {
		if !slices.Contains([]string{"3006", "3007", "3008", "brine", "older"}, line) {
			return fmt.Errorf("there is no line %s", line)
		}
	}
	for _, role := range o.of {
		if role != minion && role != master {
			return fmt.Errorf("there is no role %s", role)
		}
	}
	return nil
}

// sentence matches a text that begins with a capital letter or a name in backquotes and ends with a full stop.
var sentence = regexp.MustCompile("^[A-Z`].*[^.]\\.$")

// plainValue converts a value of the table to map[string]any, []any, string, int64, float64, bool or nil.
func plainValue(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = plainValue(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := []any{}
		for _, e := range n.Content {
			list = append(list, plainValue(e))
		}
		return list
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return n.Value
	}
	if i, ok := v.(int); ok {
		return int64(i)
	}
	return v
}
