package check

import (
	"strings"

	"github.com/brine-salt/brine/states/render/jinja"
)

// placeholder replaces what a template prints. It is valid at any place in YAML.
const placeholder = "JINJA"

// maskTemplates replaces the tags of a template, so that the rest parses as YAML with unchanged line numbers.
// inside[n] reports whether line n, counted from 1, is within an if, for or macro.
func maskTemplates(text string) (masked string, inside []bool) {
	var b strings.Builder
	inside = append(inside, false)
	depth, line := 0, 1
	var skip string // the end tag of a block whose text is not YAML of this file
	mark := func(at int, in bool) {
		for len(inside) <= at {
			inside = append(inside, depth > 0)
		}
		inside[at] = inside[at] || in
	}
	keepLines := func(s string) {
		n := strings.Count(s, "\n")
		for range n {
			line++
			mark(line, depth > 0)
		}
		b.WriteString(strings.Repeat("\n", n))
	}
	mark(1, false)
	tags, _ := jinja.DefaultSyntax().Tags(text) // the parser reports syntax errors
	pos := 0
	plain := func(to int) {
		if skip != "" {
			keepLines(text[pos:to])
			return
		}
		for part := range strings.Lines(text[pos:to]) {
			mark(line, depth > 0)
			b.WriteString(part)
			if strings.HasSuffix(part, "\n") {
				line++
				mark(line, depth > 0)
			}
		}
	}
	for _, tag := range tags {
		plain(tag.Start)
		pos = tag.End
		switch {
		case tag.Kind == jinja.TagVariable && skip == "":
			b.WriteString(placeholder)
		case tag.Kind == jinja.TagBlock:
			switch tag.Name {
			case "if", "for", "macro", "call", "filter":
				depth++
			case "endif", "endfor", "endmacro", "endcall", "endfilter":
				depth = max(0, depth-1)
			case "load_yaml", "load_json", "load_text":
				if skip == "" {
					skip = "endload"
				}
			case "set":
				if skip == "" && !tag.Assigns {
					skip = "endset"
				}
			case skip:
				skip = ""
			}
		}
		keepLines(text[tag.Start:tag.End])
	}
	plain(len(text))
	// The output of a line with a single expression is unknown: it may be more states, or nothing.
	lines := strings.Split(b.String(), "\n")
	for i, l := range lines {
		if strings.TrimSpace(strings.ReplaceAll(l, placeholder, "")) == "" {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n"), inside
}
