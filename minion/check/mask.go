package check

import (
	"strings"
)

// placeholder stands for what a template prints. It is text that may stand anywhere in YAML.
const placeholder = "JINJA"

// mask takes the tags out of a template, so that what is left can be read as YAML with the lines where they were. inside[n] reports
// whether line n, from 1, is within an if, for or macro.
func mask(text string) (masked string, inside []bool) {
	var b strings.Builder
	inside = append(inside, false)
	depth, line := 0, 1
	var skip string // the tag that ends a block of which the text is no YAML of this file
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
	for text != "" {
		i := nextTag(text)
		if i < 0 {
			i = len(text)
		}
		plain := text[:i]
		if skip != "" {
			keepLines(plain)
		} else {
			for part := range strings.Lines(plain) {
				mark(line, depth > 0)
				b.WriteString(part)
				if strings.HasSuffix(part, "\n") {
					line++
					mark(line, depth > 0)
				}
			}
		}
		if text = text[i:]; text == "" {
			break
		}
		end := map[byte]string{'%': "%}", '{': "}}", '#': "#}"}[text[1]]
		n := tagEnd(text, end)
		tag := text[:n]
		text = text[n:]
		switch {
		case text == "" && !strings.HasSuffix(tag, end): // a tag without an end: the parser tells
		case tag[1] == '{' && skip == "":
			b.WriteString(placeholder)
			keepLines(tag)
		case tag[1] == '%':
			word, _, _ := strings.Cut(strings.TrimSpace(strings.Trim(strings.Trim(tag[2:max(2, len(tag)-2)], "-+"), " \n\t")), " ")
			switch word {
			case "if", "for", "macro", "call", "filter":
				depth++
			case "endif", "endfor", "endmacro", "endcall", "endfilter":
				depth = max(0, depth-1)
			case "load_yaml", "load_json", "load_text", "raw":
				if skip == "" && word != "raw" {
					skip = "endload"
				}
			case "set":
				if skip == "" && !strings.Contains(tag, "=") {
					skip = "endset"
				}
			}
			if word == skip {
				skip = ""
			}
			keepLines(tag)
		default:
			keepLines(tag)
		}
	}
	// A line that prints one thing alone may become anything: more states, or nothing.
	lines := strings.Split(b.String(), "\n")
	for i, l := range lines {
		if strings.TrimSpace(strings.ReplaceAll(l, placeholder, "")) == "" {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n"), inside
}

// nextTag is where the next tag begins, -1 if there is none.
func nextTag(s string) int {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '{' && (s[i+1] == '%' || s[i+1] == '{' || s[i+1] == '#') {
			return i
		}
	}
	return -1
}

// tagEnd is where a tag ends, behind its mark. Marks within quotes do not count, except in comments.
func tagEnd(s, mark string) int {
	var quote byte
	for i := 2; i+1 < len(s); i++ {
		switch c := s[i]; {
		case mark == "#}":
		case quote != 0 && c == '\\':
			i++
			continue
		case quote != 0:
			if c == quote {
				quote = 0
			}
			continue
		case c == '"' || c == '\'':
			quote = c
			continue
		}
		if strings.HasPrefix(s[i:], mark) {
			return i + len(mark)
		}
	}
	return len(s)
}
