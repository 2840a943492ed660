// Package configparser parses files of sections and options by the rules of Python's configparser.ConfigParser,
// without interpolation. Option names become lower case and are followed by "=" or ":", values continue in indented
// lines, and lines that begin with "#" or ";" are comments. Sections and options keep their order.
package configparser

import (
	"fmt"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// Option is an option of a section.
type Option struct{ Name, Value string }

// Section is a section with its options.
type Section struct {
	Name    string
	Options []Option
}

// Get returns the value of an option.
func (s *Section) Get(name string) (string, bool) {
	for _, o := range s.Options {
		if o.Name == name {
			return o.Value, true
		}
	}
	return "", false
}

// Set replaces an option's value in place, or appends the option.
func (s *Section) Set(name, value string) {
	for i := range s.Options {
		if s.Options[i].Name == name {
			s.Options[i].Value = value
			return
		}
	}
	s.Options = append(s.Options, Option{name, value})
}

// Delete removes an option.
func (s *Section) Delete(name string) {
	s.Options = slices.DeleteFunc(s.Options, func(o Option) bool { return o.Name == name })
}

// Error describes an error in a file, with the name of Python's exception.
type Error struct{ Type, Msg string }

func (e *Error) Error() string { return e.Msg }

// Find returns the section with a name, or nil if it is missing.
func Find(list []*Section, name string) *Section {
	for _, s := range list {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Parse parses a text. Errors name the file. If strict is set, a duplicate section or option is an error.
func Parse(text, file string, strict bool) ([]*Section, error) {
	p := &parser{file: file, strict: strict}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if err := p.line(i+1, strings.TrimRight(line, "\r")); err != nil {
			return nil, err
		}
	}
	for _, s := range p.list {
		for i := range s.Options {
			s.Options[i].Value = strings.TrimRight(s.Options[i].Value, "\n")
		}
	}
	return p.list, nil
}

type parser struct {
	file   string
	strict bool
	list   []*Section
	now    *Section
	option int // index of the section's last option, or -1
	indent int
}

func (p *parser) line(n int, line string) error {
	value := strings.TrimSpace(line)
	if strings.HasPrefix(value, "#") || strings.HasPrefix(value, ";") {
		return nil
	}
	going := p.now != nil && p.option >= 0
	if value == "" {
		if going {
			p.now.Options[p.option].Value += "\n"
		}
		return nil
	}
	indent := len(line) - len(strings.TrimLeft(line, " \t"))
	if going && indent > p.indent {
		p.now.Options[p.option].Value += "\n" + value
		return nil
	}
	p.indent = indent
	if end := strings.LastIndexByte(value, ']'); value[0] == '[' && end > 1 {
		return p.section(n, value[1:end])
	}
	if p.now == nil {
		return &Error{"MissingSectionHeaderError", fmt.Sprintf("File contains no section headers.\nfile: '%s', line: %d\n%s", p.file, n, pytext.Repr(line+"\n"))}
	}
	i := strings.IndexAny(value, "=:")
	if i <= 0 {
		return &Error{"ParsingError", fmt.Sprintf("Source contains parsing errors: '%s'\n\t[line %2d]: %s", p.file, n, pytext.Repr(line+"\n"))}
	}
	name := strings.ToLower(strings.TrimSpace(value[:i]))
	for at := range p.now.Options {
		if p.now.Options[at].Name != name {
			continue
		}
		if p.strict {
			return &Error{"DuplicateOptionError", fmt.Sprintf("While reading from '%s' [line %2d]: option '%s' in section '%s' already exists", p.file, n, name, p.now.Name)}
		}
		p.now.Options[at].Value, p.option = strings.TrimSpace(value[i+1:]), at
		return nil
	}
	p.now.Options = append(p.now.Options, Option{name, strings.TrimSpace(value[i+1:])})
	p.option = len(p.now.Options) - 1
	return nil
}

func (p *parser) section(n int, name string) error {
	p.option = -1
	if s := Find(p.list, name); s != nil {
		if p.strict {
			return &Error{"DuplicateSectionError", fmt.Sprintf("While reading from '%s' [line %2d]: section '%s' already exists", p.file, n, name)}
		}
		p.now = s
		return nil
	}
	p.now = &Section{Name: name}
	p.list = append(p.list, p.now)
	return nil
}
