package cfn

import (
	"fmt"
	"strings"
)

// option is an option of a program.
type option struct {
	short, long string
	// metavar is the name of the value, or "" for an option without a value.
	metavar  string
	def      string
	help     string
	required bool
}

// parser parses command lines as Python's argparse does: long options may be abbreviated, and "-e1" and
// "--exit-code=1" set values.
type parser struct {
	prog       string
	options    []option
	positional []string // all are required
	help       []string // for the positionals
}

// parsed maps long names without dashes, and names of positionals, to values. The value of a flag is "true".
type parsed map[string]string

// usageError reports an invalid command line.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func (o option) name() string { return strings.TrimPrefix(o.long, "--") }

func (o option) both() string {
	if o.short == "" {
		return o.long
	}
	return o.short + "/" + o.long
}

// parse parses a command line. help is true if -h was given.
func (p *parser) parse(args []string) (v parsed, help bool, err error) {
	v = parsed{}
	var rest []string
	for i := 0; i < len(args); i++ {
		word := args[i]
		if word == "--" {
			rest = append(rest, args[i+1:]...)
			break
		}
		if !strings.HasPrefix(word, "-") || word == "-" || negative(word) {
			rest = append(rest, word)
			continue
		}
		used, asked, err := p.option(v, word, args[i+1:])
		if err != nil || asked {
			return nil, asked, err
		}
		i += used
	}
	var missing []string
	for _, o := range p.options {
		if _, ok := v[o.name()]; !ok && o.required {
			missing = append(missing, o.both())
		} else if !ok && o.def != "" {
			v[o.name()] = o.def
		}
	}
	for i, name := range p.positional {
		if i >= len(rest) {
			missing = append(missing, name)
			continue
		}
		v[name] = rest[i]
	}
	if len(missing) > 0 {
		return nil, false, &usageError{"the following arguments are required: " + strings.Join(missing, ", ")}
	}
	if len(rest) > len(p.positional) {
		return nil, false, &usageError{"unrecognized arguments: " + strings.Join(rest[len(p.positional):], " ")}
	}
	return v, false, nil
}

// negative reports whether a word looks like a negative number, which is a value and not an option.
func negative(word string) bool {
	return len(word) > 1 && strings.Trim(word[1:], "0123456789.") == "" && strings.Count(word, ".") < 2
}

// option parses one option. used is the number of following words that belong to it.
func (p *parser) option(v parsed, word string, next []string) (used int, help bool, err error) {
	if strings.HasPrefix(word, "--") {
		name, value, has := strings.Cut(word, "=")
		if name == "--help" || name == "--h" || name == "--he" || name == "--hel" {
			return 0, true, nil
		}
		o, err := p.long(name)
		if err != nil {
			return 0, false, err
		}
		used, err = take(v, o, value, has, next)
		return used, false, err
	}
	for i := 1; i < len(word); i++ {
		if word[i] == 'h' {
			return 0, true, nil
		}
		o := p.short("-" + word[i:i+1])
		if o == nil {
			return 0, false, &usageError{"unrecognized arguments: " + word}
		}
		if o.metavar != "" {
			value := strings.TrimPrefix(word[i+1:], "=")
			used, err = take(v, *o, value, i+1 < len(word), next)
			return used, false, err
		}
		v[o.name()] = "true"
	}
	return 0, false, nil
}

func (p *parser) short(name string) *option {
	for i := range p.options {
		if p.options[i].short == name {
			return &p.options[i]
		}
	}
	return nil
}

func (p *parser) long(name string) (option, error) {
	var found []option
	for _, o := range p.options {
		if o.long == name {
			return o, nil
		}
		if strings.HasPrefix(o.long, name) {
			found = append(found, o)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return option{}, &usageError{"unrecognized arguments: " + name}
	}
	var names []string
	for _, o := range found {
		names = append(names, o.long)
	}
	return option{}, &usageError{fmt.Sprintf("ambiguous option: %s could match %s", name, strings.Join(names, ", "))}
}

func take(v parsed, o option, value string, has bool, next []string) (int, error) {
	switch {
	case o.metavar == "" && has:
		return 0, &usageError{fmt.Sprintf("argument %s: ignored explicit argument '%s'", o.both(), value)}
	case o.metavar == "":
		v[o.name()] = "true"
		return 0, nil
	case has:
		v[o.name()] = value
		return 0, nil
	case len(next) == 0 || strings.HasPrefix(next[0], "-") && next[0] != "-" && !negative(next[0]):
		return 0, &usageError{fmt.Sprintf("argument %s: expected one argument", o.both())}
	}
	v[o.name()] = next[0]
	return 1, nil
}

// usage returns the usage lines in argparse's format.
func (p *parser) usage() string {
	parts := []string{"[-h]"}
	for _, o := range p.options {
		part := o.short
		if part == "" {
			part = o.long
		}
		if o.metavar != "" {
			part += " " + o.metavar
		}
		if !o.required {
			part = "[" + part + "]"
		}
		parts = append(parts, part)
	}
	const width = 78
	prefix := "usage: " + p.prog + " "
	one := prefix + strings.Join(append(append([]string{}, parts...), p.positional...), " ")
	if len(one) <= width {
		return one + "\n"
	}
	indent := strings.Repeat(" ", len(prefix))
	wrap := func(first string, parts []string) string {
		var b strings.Builder
		line, empty := first, true
		for _, part := range parts {
			if !empty && len(line)+1+len(part) > width {
				b.WriteString(line + "\n")
				line, empty = indent, true
			}
			if !empty {
				line += " "
			}
			line, empty = line+part, false
		}
		b.WriteString(line + "\n")
		return b.String()
	}
	text := wrap(prefix, parts)
	if len(p.positional) > 0 {
		text += wrap(indent, p.positional)
	}
	return text
}

// helpText returns the text that -h prints.
func (p *parser) helpText() string {
	var b strings.Builder
	b.WriteString(p.usage())
	line := func(left, right string) {
		if len(left) > 21 {
			fmt.Fprintf(&b, "  %s\n%24s%s\n", left, "", right)
			return
		}
		fmt.Fprintf(&b, "  %-22s%s\n", left, right)
	}
	if len(p.positional) > 0 {
		b.WriteString("\npositional arguments:\n")
		for i, name := range p.positional {
			line(name, p.help[i])
		}
	}
	b.WriteString("\noptions:\n")
	line("-h, --help", "show this help message and exit")
	for _, o := range p.options {
		var left []string
		for _, name := range [...]string{o.short, o.long} {
			if name != "" {
				left = append(left, strings.TrimSpace(name+" "+o.metavar))
			}
		}
		line(strings.Join(left, ", "), o.help)
	}
	return b.String()
}
