package optparse

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/textwrap"
)

const maxHelpPosition = 24

// formatter formats help as optparse's IndentedHelpFormatter does.
type formatter struct {
	width, position int
	prog            string
}

// UsageText returns the text before an error message: the usage line and an empty line.
func (p *Parser) UsageText() string {
	return "Usage: " + p.expand(p.Usage) + "\n\n"
}

// ErrorText returns the text for standard error after an invalid command line: usage, program, message.
func (p *Parser) ErrorText(msg string) string {
	return p.UsageText() + p.Prog + ": error: " + msg + "\n"
}

func (p *Parser) expand(s string) string { return strings.ReplaceAll(s, "%prog", p.Prog) }

// Help returns the complete help text.
func (p *Parser) Help() string {
	width := p.Width
	if width == 0 {
		width = 80
	}
	f := &formatter{width: width - 2, prog: p.Prog}
	longest := 0
	measure := func(options []Option, indent int) {
		for i := range options {
			if !options[i].Hidden {
				longest = max(longest, utf8.RuneCountInString(names(&options[i]))+indent)
			}
		}
	}
	measure(p.Options, 2)
	for _, g := range p.Groups {
		measure(g.Options, 4)
	}
	f.position = min(longest+2, maxHelpPosition, max(f.width-20, 4))

	var b strings.Builder
	b.WriteString("Usage: " + p.expand(p.Usage) + "\n\n")
	if p.Description != "" {
		b.WriteString(f.fill(p.expand(p.Description), 0) + "\n\n")
	}
	b.WriteString("Options:\n")
	f.options(&b, p.Options, 2)
	for _, g := range p.Groups {
		b.WriteString("\n  " + g.Title + ":\n")
		if g.Description != "" {
			b.WriteString(f.fill(g.Description, 4) + "\n\n")
		}
		f.options(&b, g.Options, 4)
	}
	if p.Epilog != "" {
		b.WriteString("\n" + f.fill(p.expand(p.Epilog), 0) + "\n")
	}
	return b.String()
}

// names returns the left column of an option: "-t TIMEOUT, --timeout=TIMEOUT".
func names(o *Option) string {
	metavar := o.Metavar
	if metavar == "" {
		metavar = strings.ToUpper(o.DestName())
	}
	var short, long []string
	for _, n := range o.Names {
		switch isLong := strings.HasPrefix(n, "--"); {
		case isLong && o.takesValue():
			long = append(long, n+"="+metavar)
		case isLong:
			long = append(long, n)
		case o.takesValue():
			short = append(short, n+" "+metavar)
		default:
			short = append(short, n)
		}
	}
	return strings.Join(append(short, long...), ", ")
}

func (f *formatter) options(b *strings.Builder, options []Option, indent int) {
	for i := range options {
		o := &options[i]
		if o.Hidden {
			continue
		}
		left := names(o)
		room := f.position - indent - 2
		first := 0
		if utf8.RuneCountInString(left) > room {
			fmt.Fprintf(b, "%*s%s\n", indent, "", left)
			first = f.position
		} else {
			fmt.Fprintf(b, "%*s%-*s  ", indent, "", room, left)
		}
		lines := textwrap.Wrap(expandDefault(o), max(f.width-f.position, 11))
		if len(lines) == 0 && first == 0 {
			b.WriteString("\n")
		}
		for i, line := range lines {
			if i > 0 {
				first = f.position
			}
			fmt.Fprintf(b, "%*s%s\n", first, "", line)
		}
	}
}

func expandDefault(o *Option) string {
	if !strings.Contains(o.Help, "%default") {
		return o.Help
	}
	text := "none"
	switch d := o.defaultValue().(type) {
	case nil:
	case bool:
		text = "False"
		if d {
			text = "True"
		}
	default:
		text = fmt.Sprint(d)
	}
	return strings.ReplaceAll(o.Help, "%default", text)
}

// fill wraps text and indents every line.
func (f *formatter) fill(text string, indent int) string {
	pad := strings.Repeat(" ", indent)
	lines := textwrap.Wrap(text, max(f.width-indent, 11)-indent)
	return pad + strings.Join(lines, "\n"+pad)
}
