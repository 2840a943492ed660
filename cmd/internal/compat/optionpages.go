package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/modules"
)

// optionPage is a page of options: those of a role whose names begin with some letters.
type optionPage struct{ role, letters string }

// optionPages are all pages of options. No page has more than 250 lines.
var optionPages = [...]optionPage{
	{minion, "a-f"}, {minion, "g-o"}, {minion, "p-z"},
	{master, "a-f"}, {master, "g-o"}, {master, "p-z"},
}

func (p optionPage) name() string { return "options-" + p.role + "-" + p.letters }

func (p optionPage) title() string { return "Options of the " + p.role + ": " + p.letters }

// has reports whether the page contains an option.
func (p optionPage) has(name string) bool {
	return name[0] >= p.letters[0] && name[0] <= p.letters[len(p.letters)-1]
}

// summary returns a sentence with the number of options on a page.
func (t *optionTable) summary(p optionPage) string {
	all, honoured := 0, 0
	for _, o := range t.ofRole(p.role) {
		if p.has(o.name) {
			all++
			if o.hasEffect(p.role) {
				honoured++
			}
		}
	}
	return fmt.Sprintf("%d options of the %s, %d of them honoured", all, p.role, honoured)
}

// writeOptions writes the table of a page.
func (c *compat) writeOptions(w io.Writer, p optionPage) {
	fmt.Fprintf(w, "%s. All are accepted and readable with `config.get`.\nThe table is `%s`; [a sample file](../../%s) "+
		"has the honoured ones by theme.\n\n| option | type | default | only in | status | what it is |\n"+
		"|---|---|---|---|---|---|\n", c.options.summary(p), tablePath, samplePath(p.role))
	for _, o := range c.options.ofRole(p.role) {
		if !p.has(o.name) {
			continue
		}
		status, text := "no effect", o.doc
		switch {
		case o.refused != "":
			status, text = "refused", text+" Instead: "+o.refused+"."
		case o.idle[p.role] != "":
			text += " No effect: " + o.idle[p.role] + "."
		case o.note != "":
			status, text = "differs", text+" Differs: "+o.note+"."
		default:
			status = proof("works", c.evidence.optionEvidence(o.name))
		}
		fmt.Fprintf(w, "| `%s` | %s | %s | %s | %s | %s |\n", o.name, o.typeText(p.role),
			c.defaultText(o, p.role), o.onlyIn(), status, strings.ReplaceAll(text, "|", "\\|"))
	}
}

// typeText returns the types of an option in words: those that stock checks, or that of the default.
func (o *option) typeText(role string) string {
	words := map[string]string{"str": "text", "bool": "true or false", "int": "number", "float": "number",
		"list": "list", "tuple": "list", "dict": "map", "NoneType": ""}
	list := []string{}
	types := o.types
	if types == nil {
		types = []string{modules.TypeName(o.value(role))}
	}
	for _, t := range types {
		if word := words[t]; word != "" && !slices.Contains(list, word) {
			list = append(list, word)
		}
	}
	return strings.Join(list, ", ")
}

// value returns the default of an option for a role, or the value that applies while the option is not set.
func (o *option) value(role string) any {
	if v, has := o.defaults[role]; has {
		return v
	}
	return o.unset
}

// widest is the length of the longest default that a table shows completely.
const widest = 70

// defaultText returns the default of an option, and the release lines with another default.
func (c *compat) defaultText(o *option, role string) string {
	text := func(v any) string {
		if v == nil {
			return ""
		}
		s := strings.ReplaceAll(flow(v), "|", "\\|")
		if len(s) > widest {
			s = "…"
		}
		return "`" + s + "`"
	}
	out := text(o.value(role))
	for _, line := range lines {
		v, has := c.stock[line].defaults(role)[o.name]
		if v = unmarked(v); has && flow(v) != flow(o.defaults[role]) {
			out += ", " + line + " " + text(v)
		}
	}
	return out
}

// flow returns a value as YAML on one line.
func flow(v any) string {
	switch v := v.(type) {
	case float64:
		return floatText(v)
	case string:
		b, _ := json.Marshal(v) // a text always has a JSON form
		if s := string(b); v == "" || s != `"`+v+`"` {
			return s
		}
		return v
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, flow(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, k+": "+flow(v[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(v)
}

// onlyIn returns the release lines that have an option, or "" if all have it.
func (o *option) onlyIn() string {
	if len(o.lines) == len(lines) {
		return ""
	}
	return strings.Join(o.lines, ", ")
}

// defaults returns stock's defaults for a role.
func (i inventory) defaults(role string) map[string]any {
	if role == master {
		return i.MasterOptions
	}
	return i.MinionOptions
}

// unmarked converts a value of an inventory to the form in the options table. In an inventory, JSON's numbers are
// integers, and floats are marked.
func unmarked(v any) any {
	switch v := v.(type) {
	case float64:
		return int64(v)
	case []any:
		list := []any{}
		for _, e := range v {
			list = append(list, unmarked(e))
		}
		return list
	case map[string]any:
		if text, ok := v["__float__"].(string); ok {
			var f float64
			fmt.Sscan(text, &f)
			return f
		}
		m := map[string]any{}
		for k, e := range v {
			m[k] = unmarked(e)
		}
		return m
	}
	return v
}
