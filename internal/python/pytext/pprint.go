package pytext

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// prettyWidth is the width of lines in Python's pprint.
const prettyWidth = 80

// Pretty implements Python's pprint.pformat. A collection that does not fit into 80 columns has one line per element,
// and long text is broken at blanks. indent is the number of columns per level; Python's default is 1.
func Pretty(v any, indent int) string {
	p := &printer{perLevel: indent}
	p.format(v, 0, 0, 0)
	return p.out.String()
}

// PrettyText returns a long str as Pretty shows it in column indent, with allowance characters after it. level is the
// number of collections that enclose it, plus one.
func PrettyText(s string, indent, allowance, level int) string {
	p := &printer{perLevel: 1}
	p.text(s, indent, allowance, level)
	return p.out.String()
}

type printer struct {
	out      strings.Builder
	perLevel int
}

func width(s string) int { return utf8.RuneCountInString(s) }

func (p *printer) format(v any, indent, allowance, level int) {
	rep := Repr(v)
	if width(rep) > prettyWidth-indent-allowance {
		switch v := v.(type) {
		case map[string]any, map[any]any:
			p.dict(v, indent, allowance, level+1)
			return
		case []any:
			p.out.WriteByte('[')
			p.items(v, indent, allowance+1, level+1)
			p.out.WriteByte(']')
			return
		case string:
			p.text(v, indent, allowance, level+1)
			return
		case []byte:
			p.bytes(v, indent, allowance, level+1)
			return
		}
	}
	p.out.WriteString(rep)
}

func (p *printer) newLine(indent int) {
	p.out.WriteString(",\n")
	p.out.WriteString(strings.Repeat(" ", indent))
}

func (p *printer) open() {
	if p.perLevel > 1 {
		p.out.WriteString(strings.Repeat(" ", p.perLevel-1))
	}
}

func (p *printer) dict(v any, indent, allowance, level int) {
	p.out.WriteByte('{')
	p.open()
	keys, get := entries(v)
	indent += p.perLevel
	for i, k := range keys {
		rep := Repr(k)
		p.out.WriteString(rep)
		p.out.WriteString(": ")
		last := i == len(keys)-1
		after := 1
		if last {
			after = allowance + 1
		}
		p.format(get(k), indent+width(rep)+2, after, level)
		if !last {
			p.newLine(indent)
		}
	}
	p.out.WriteByte('}')
}

func entries(v any) ([]any, func(any) any) {
	if m, ok := v.(map[any]any); ok {
		return SortKeys(m), func(k any) any { return m[k] }
	}
	m := v.(map[string]any)
	keys := make([]any, 0, len(m))
	for _, k := range sortedText(m) {
		keys = append(keys, k)
	}
	return keys, func(k any) any { return m[k.(string)] }
}

func (p *printer) items(list []any, indent, allowance, level int) {
	indent += p.perLevel
	p.open()
	for i, v := range list {
		if i > 0 {
			p.newLine(indent)
		}
		after := 1
		if i == len(list)-1 {
			after = allowance
		}
		p.format(v, indent, after, level)
	}
}

// text breaks a long str at its line ends, then at blanks.
func (p *printer) text(s string, indent, allowance, level int) {
	if level == 1 {
		indent++
		allowance++
	}
	lines := SplitLines(s, true)
	room := prettyWidth - indent
	var chunks []string
	rep := ""
	for i, line := range lines {
		lastLine := i == len(lines)-1
		rep = quoted(line)
		first := room
		if lastLine {
			first -= allowance
		}
		if width(rep) <= first {
			chunks = append(chunks, rep)
			continue
		}
		parts := wordsWithBlanks(line)
		current := ""
		for j, part := range parts {
			limit := room
			if lastLine && j == len(parts)-1 {
				limit -= allowance
			}
			if width(quoted(current+part)) > limit {
				if current != "" {
					chunks = append(chunks, quoted(current))
				}
				current = part
			} else {
				current += part
			}
		}
		if current != "" {
			chunks = append(chunks, quoted(current))
		}
	}
	if len(chunks) == 1 {
		p.out.WriteString(rep)
		return
	}
	if level == 1 {
		p.out.WriteByte('(')
	}
	p.out.WriteString(strings.Join(chunks, "\n"+strings.Repeat(" ", indent)))
	if level == 1 {
		p.out.WriteByte(')')
	}
}

// wordsWithBlanks splits a text into words, each with the blanks after it: \S*\s*.
func wordsWithBlanks(s string) []string {
	var parts []string
	start, blank := 0, false
	for i, r := range s {
		space := isSpace(r)
		if blank && !space {
			parts = append(parts, s[start:i])
			start = i
		}
		blank = space
	}
	return append(parts, s[start:])
}

// isSpace implements Python's str.isspace, which includes the ASCII separators.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// bytes breaks long bytes into lines, each with a multiple of four bytes.
func (p *printer) bytes(b []byte, indent, allowance, level int) {
	if len(b) <= 4 {
		p.out.WriteString(Bytes(b))
		return
	}
	if level == 1 {
		indent++
		allowance++
		p.out.WriteByte('(')
	}
	room := prettyWidth - indent
	current, last, delim := []byte(nil), len(b)/4*4, ""
	put := func(rep string) {
		p.out.WriteString(delim)
		p.out.WriteString(rep)
		delim = "\n" + strings.Repeat(" ", indent)
	}
	for i := 0; i < len(b); i += 4 {
		part := b[i:min(i+4, len(b))]
		candidate := append(append([]byte(nil), current...), part...)
		if i == last {
			room -= allowance
		}
		if len(Bytes(candidate)) > room {
			if len(current) > 0 {
				put(Bytes(current))
			}
			current = append([]byte(nil), part...)
		} else {
			current = candidate
		}
	}
	if len(current) > 0 {
		put(Bytes(current))
	}
	if level == 1 {
		p.out.WriteByte(')')
	}
}

// SplitLines implements Python's str.splitlines, which has more line ends than \n. A line end at the end of the text
// does not begin another line. With keep, lines include their ends.
func SplitLines(s string, keep bool) []string {
	var lines []string
	start := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
			n = 2
		case r >= '\n' && r <= '\r', r >= 0x1c && r <= 0x1e, r == 0x85, r == 0x2028, r == 0x2029:
		default:
			i += n
			continue
		}
		end := i
		if keep {
			end += n
		}
		lines = append(lines, s[start:end])
		i += n
		start = i
	}
	if start < len(s) {
		lines = append(lines, s[start:])
	}
	return lines
}

// Strip implements Python's str.strip.
func Strip(s string) string { return strings.TrimFunc(s, isSpace) }

// StripLeft implements Python's str.lstrip.
func StripLeft(s string) string { return strings.TrimLeftFunc(s, isSpace) }

// StripRight implements Python's str.rstrip.
func StripRight(s string) string { return strings.TrimRightFunc(s, isSpace) }

// Round implements Python's round(f, digits), which rounds the exact decimal value.
func Round(f float64, digits int) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', digits, 64), 64)
	if err != nil {
		return f
	}
	return v
}
