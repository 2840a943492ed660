// Package optparse parses command lines by the rules of Python's optparse, and formats help and errors as it does,
// because scripts around Salt's programs rely on both. Long names may be abbreviated while they stay unique, an
// option may have several names, options and arguments may be mixed, and "--" ends the options. The package reads no
// environment variables and prints nothing itself.
//
// pflag is not used: it supports neither several names for one option nor abbreviated names, and its error texts
// differ. Python's source: Lib/optparse.py.
package optparse

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is the type of an option.
type Kind int

const (
	// String stores the value as text.
	String Kind = iota
	// Int is a decimal number, or one with the prefix 0x, 0b, or 0 for octal.
	Int
	// Float is a decimal fraction.
	Float
	// Choice is one of Option.Choices.
	Choice
	// True is a flag: true when given.
	True
	// False is a flag: false when given; its default is true.
	False
	// List collects the texts of all occurrences, as []string.
	List
)

// Option is a command-line option. Its value is stored under Dest: a string, int64, float64, bool or []string, or
// Default if it is not given.
type Option struct {
	Names   []string // "-t", "--timeout"; help shows the short ones first
	Dest    string   // if empty, the first long name with underscores for dashes
	Kind    Kind
	Metavar string // if empty, Dest in capitals
	Default any
	Choices []string
	Help    string // %default is replaced by the default
	Hidden  bool   // not shown in the help
	// Own marks an option that stock Salt does not have. It cannot be abbreviated, so that abbreviations of stock's
	// options stay unique, and programs do not copy it to their configuration.
	Own bool
}

// Group is a titled part of the help.
type Group struct {
	Title, Description string
	Options            []Option
}

// Parser describes a program's command line.
type Parser struct {
	Prog        string
	Usage       string // after "Usage: "; %prog stands for Prog
	Description string
	Epilog      string
	Options     []Option
	Groups      []Group
	Width       int // columns of the terminal; 0 means 80
}

// Values holds a parsed command line.
type Values struct {
	Args []string
	vals map[string]any
	set  map[string]bool
}

// Error reports an invalid command line. Salt's programs print the usage and this text, and exit with 64.
type Error struct{ Msg string }

func (e *Error) Error() string { return e.Msg }

func errorf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// takesValue reports whether the option is followed by a value.
func (o *Option) takesValue() bool { return o.Kind != True && o.Kind != False }

// DestName returns the name under which the option's value is stored.
func (o *Option) DestName() string {
	if o.Dest != "" {
		return o.Dest
	}
	for _, n := range o.Names {
		if strings.HasPrefix(n, "--") {
			return strings.ReplaceAll(n[2:], "-", "_")
		}
	}
	return strings.TrimLeft(o.Names[0], "-")
}

// defaultValue returns the value of an option that is not given.
func (o *Option) defaultValue() any {
	switch {
	case o.Default != nil:
		return o.Default
	case o.Kind == True:
		return false
	case o.Kind == False:
		return true
	}
	return nil
}

// all calls f for every option, including those of groups.
func (p *Parser) all(f func(*Option)) {
	for i := range p.Options {
		f(&p.Options[i])
	}
	for g := range p.Groups {
		for i := range p.Groups[g].Options {
			f(&p.Groups[g].Options[i])
		}
	}
}

// Dests returns the names of all values in the order of the help, without duplicates.
func (p *Parser) Dests() []string {
	var out []string
	p.all(func(o *Option) {
		if d := o.DestName(); !slices.Contains(out, d) {
			out = append(out, d)
		}
	})
	return out
}

// Own reports whether a value belongs to an option that stock Salt does not have.
func (p *Parser) Own(dest string) bool {
	own := false
	p.all(func(o *Option) { own = own || o.Own && o.DestName() == dest })
	return own
}

// find returns the option with an exact name, or nil.
func (p *Parser) find(name string) *Option {
	var found *Option
	p.all(func(o *Option) {
		if slices.Contains(o.Names, name) {
			found = o
		}
	})
	return found
}

// long returns the option with a long name, which may be abbreviated while unique.
func (p *Parser) long(name string) (*Option, string, error) {
	if o := p.find(name); o != nil {
		return o, name, nil
	}
	var names []string
	p.all(func(o *Option) {
		for _, n := range o.Names {
			if !o.Own && strings.HasPrefix(n, "--") && strings.HasPrefix(n, name) {
				names = append(names, n)
			}
		}
	})
	switch len(names) {
	case 0:
		return nil, "", errorf("no such option: %s", name)
	case 1:
		return p.find(names[0]), names[0], nil
	}
	slices.Sort(names)
	return nil, "", errorf("ambiguous option: %s (%s?)", name, strings.Join(names, ", "))
}

// Parse parses args. Its error is an *Error.
func (p *Parser) Parse(args []string) (*Values, error) {
	v := &Values{vals: map[string]any{}, set: map[string]bool{}}
	p.all(func(o *Option) {
		if _, ok := v.vals[o.DestName()]; !ok || o.Default != nil {
			v.vals[o.DestName()] = o.defaultValue()
		}
	})
	return v, p.More(v, args)
}

// More parses further args into v, such as those from --args-stdin.
func (p *Parser) More(v *Values, args []string) error {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		var err error
		switch {
		case arg == "--":
			v.Args = append(v.Args, args...)
			return nil
		case strings.HasPrefix(arg, "--"):
			args, err = p.parseLong(v, arg, args)
		case strings.HasPrefix(arg, "-") && len(arg) > 1:
			args, err = p.parseShort(v, arg, args)
		default:
			v.Args = append(v.Args, arg)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Parser) parseLong(v *Values, arg string, rest []string) ([]string, error) {
	name, value, hasValue := strings.Cut(arg, "=")
	o, full, err := p.long(name)
	if err != nil {
		return nil, err
	}
	if !o.takesValue() {
		if hasValue {
			return nil, errorf("%s option does not take a value", full)
		}
		return rest, v.store(o, full, "")
	}
	if !hasValue {
		if len(rest) == 0 {
			return nil, errorf("%s option requires 1 argument", full)
		}
		value, rest = rest[0], rest[1:]
	}
	return rest, v.store(o, full, value)
}

// parseShort parses "-abc", "-n3" and "-n 3".
func (p *Parser) parseShort(v *Values, arg string, rest []string) ([]string, error) {
	for i, r := range arg[1:] {
		name := "-" + string(r)
		o := p.find(name)
		if o == nil {
			return nil, errorf("no such option: %s", name)
		}
		if !o.takesValue() {
			if err := v.store(o, name, ""); err != nil {
				return nil, err
			}
			continue
		}
		value := arg[1+i+len(string(r)):]
		if value == "" {
			if len(rest) == 0 {
				return nil, errorf("%s option requires 1 argument", name)
			}
			value, rest = rest[0], rest[1:]
		}
		return rest, v.store(o, name, value)
	}
	return rest, nil
}

func (v *Values) store(o *Option, name, value string) error {
	var val any = value
	switch o.Kind {
	case True:
		val = true
	case False:
		val = false
	case Int:
		n, err := parseInt(value)
		if err != nil {
			return errorf("option %s: invalid integer value: %s", name, quote(value))
		}
		val = n
	case Float:
		f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return errorf("option %s: invalid floating-point value: %s", name, quote(value))
		}
		val = f
	case Choice:
		if !slices.Contains(o.Choices, value) {
			return errorf("option %s: invalid choice: %s (choose from '%s')", name, quote(value), strings.Join(o.Choices, "', '"))
		}
	}
	if o.Kind == List {
		list, _ := v.vals[o.DestName()].([]string)
		val = append(list, value)
	}
	v.vals[o.DestName()] = val
	v.set[o.DestName()] = true
	return nil
}

// parseInt parses a number in the notations of optparse.
func parseInt(s string) (int64, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return 0, errors.New("empty")
	}
	lower := strings.ToLower(s)
	switch {
	case strings.HasPrefix(lower, "0x"):
		return strconv.ParseInt(lower[2:], 16, 64)
	case strings.HasPrefix(lower, "0b"):
		return strconv.ParseInt(lower[2:], 2, 64)
	case strings.HasPrefix(lower, "0") && len(lower) > 1:
		return strconv.ParseInt(lower, 8, 64)
	}
	return strconv.ParseInt(s, 10, 64)
}

// quote returns Python's repr of a text, which optparse shows in errors.
func quote(s string) string {
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), "'", `\'`) + "'"
}

// IsSet reports whether the command line set the value.
func (v *Values) IsSet(dest string) bool { return v.set[dest] }

// Get returns a value, or nil.
func (v *Values) Get(dest string) any { return v.vals[dest] }

// Put replaces a value as if the command line had set it.
func (v *Values) Put(dest string, val any) {
	v.vals[dest] = val
	v.set[dest] = true
}

// Fill replaces a value without marking it as set by the command line.
func (v *Values) Fill(dest string, val any) { v.vals[dest] = val }

// String returns the value of a text option, or "" if it is not set.
func (v *Values) String(dest string) string {
	s, _ := v.vals[dest].(string)
	return s
}

// Bool returns the value of a flag.
func (v *Values) Bool(dest string) bool {
	b, _ := v.vals[dest].(bool)
	return b
}

// Int returns the value of an integer option, or 0 if it is not set.
func (v *Values) Int(dest string) int64 {
	switch n := v.vals[dest].(type) {
	case int64:
		return n
	case int:
		return int64(n)
	}
	return 0
}

// Float returns the value of a float option, or 0 if it is not set.
func (v *Values) Float(dest string) float64 {
	switch n := v.vals[dest].(type) {
	case float64:
		return n
	case int64:
		return float64(n)
	case int:
		return float64(n)
	}
	return 0
}
