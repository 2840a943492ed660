package serializers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/configparser"
	"github.com/brine-salt/brine/modules/pyobj"
)

// configOptions holds the options of a ConfigParser.
type configOptions struct {
	defaultSection string
	defaults       *configparser.Section
	empty          map[[2]string]bool // options without a value, by section
	none, raw      bool               // none: options need no value; raw: no interpolation
}

// configOptionsOf parses the options of a ConfigParser. Options for reading have no effect on writing.
func configOptionsOf(opts *pyobj.Dict, known ...string) (*configOptions, error) {
	all := []string{
		"defaults", "dict_type", "allow_no_value", "delimiters", "comment_prefixes", "inline_comment_prefixes", "strict", "empty_lines_in_values",
		"default_section", "interpolation", "converters",
	}
	for k := range opts.All() {
		if name, _ := k.(string); !slices.Contains(all, name) {
			return nil, fmt.Errorf("RawConfigParser.__init__() got an unexpected keyword argument %s", pyobj.Repr(k))
		}
	}
	if err := refuse("configparser", opts, known...); err != nil {
		return nil, err
	}
	o := &configOptions{
		defaultSection: "DEFAULT", empty: map[[2]string]bool{}, none: pyobj.Truth(opts.Value("allow_no_value")),
		raw: opts.Has("interpolation") && opts.Value("interpolation") == nil,
	}
	if opts.Has("default_section") {
		o.defaultSection = pyobj.Str(opts.Value("default_section"))
	}
	o.defaults = &configparser.Section{Name: o.defaultSection}
	v := opts.Value("defaults")
	if d, ok := v.(*pyobj.Dict); ok {
		return o, o.set(o.defaults, d, true)
	}
	if pyobj.Truth(v) {
		return nil, fmt.Errorf("'%s' object has no attribute 'items'", pyobj.TypeName(v))
	}
	return o, nil
}

// set adds options to a section. Raw values may contain any percent sign.
func (c *configOptions) set(s *configparser.Section, options *pyobj.Dict, raw bool) error {
	for k, val := range options.All() {
		key := strings.ToLower(pyobj.Str(k))
		delete(c.empty, [2]string{s.Name, key})
		if val == nil {
			if !c.none {
				return errors.New("option values must be strings")
			}
			c.empty[[2]string{s.Name, key}] = true
			s.Set(key, "")
			continue
		}
		text := pyobj.Str(val)
		if !raw {
			if err := checkPercent(text); err != nil {
				return err
			}
		}
		s.Set(key, text)
	}
	return nil
}

// writeConfig formats sections of options as ConfigParser.write does.
func writeConfig(v any, opts *pyobj.Dict) (any, error) {
	data, ok := v.(*pyobj.Dict)
	if !ok {
		return nil, fmt.Errorf("configparser can only serialize dictionaries, not <class '%s'>", pyobj.TypeName(v))
	}
	o, err := configOptionsOf(opts, "allow_no_value", "delimiters", "interpolation", "defaults", "default_section", "comment_prefixes",
		"inline_comment_prefixes", "strict", "empty_lines_in_values")
	if err != nil {
		return nil, err
	}
	sep := "="
	if list, err := iterate(opts.Value("delimiters")); err == nil && len(list) > 0 {
		sep = pyobj.Str(list[0])
	}
	defaults, empty, list := o.defaults, o.empty, []*configparser.Section(nil)
	for name, keys := range data.All() {
		s := defaults
		switch title := pyobj.Str(name); {
		case title == o.defaultSection && title != "DEFAULT":
			return nil, fmt.Errorf("Invalid section name: %s", pyobj.Repr(title))
		case title == "DEFAULT" && title != o.defaultSection:
			return nil, errors.New("No section: 'DEFAULT'")
		case title != o.defaultSection:
			if configparser.Find(list, title) != nil {
				return nil, fmt.Errorf("Section %s already exists", pyobj.Repr(title))
			}
			s = &configparser.Section{Name: title}
			list = append(list, s)
		}
		options, ok := keys.(*pyobj.Dict)
		if !ok {
			return nil, fmt.Errorf("'%s' object has no attribute 'items'", pyobj.TypeName(keys))
		}
		if err := o.set(s, options, o.raw); err != nil {
			return nil, err
		}
	}
	var b strings.Builder
	if len(defaults.Options) > 0 {
		list = append([]*configparser.Section{defaults}, list...)
	}
	for _, s := range list {
		b.WriteString("[" + s.Name + "]\n")
		for _, o := range s.Options {
			b.WriteString(o.Name)
			if !empty[[2]string{s.Name, o.Name}] {
				b.WriteString(" " + sep + " " + strings.ReplaceAll(o.Value, "\n", "\n\t"))
			}
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// checkPercent returns an error for a value that interpolation could not read back.
func checkPercent(text string) error {
	rest := strings.ReplaceAll(text, "%%", "")
	for {
		_, after, ok := strings.Cut(rest, "%(")
		if !ok {
			break
		}
		name, tail, closed := strings.Cut(after, ")s")
		if !closed || name == "" || strings.Contains(name, ")") {
			break
		}
		before, _, _ := strings.Cut(rest, "%(")
		rest = before + tail
	}
	if strings.Contains(rest, "%") {
		return fmt.Errorf("invalid interpolation syntax in %s at position %d", pyobj.Repr(text), len([]rune(rest[:strings.IndexByte(rest, '%')])))
	}
	return nil
}

// readConfig parses sections of options and interpolates their values.
func readConfig(name, text string, opts *pyobj.Dict) (any, error) {
	o, err := configOptionsOf(opts, "interpolation", "defaults", "default_section", "strict")
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = "<???>"
	}
	list, err := configparser.Parse(text, name, !opts.Has("strict") || pyobj.Truth(opts.Value("strict")))
	if err != nil {
		return nil, err
	}
	defaults := o.defaults
	if s := configparser.Find(list, o.defaultSection); s != nil {
		for _, x := range s.Options {
			defaults.Set(x.Name, x.Value)
		}
	}
	out := &pyobj.Dict{}
	for _, s := range list {
		if s.Name == o.defaultSection {
			continue
		}
		all := &configparser.Section{Name: s.Name}
		all.Options = append(all.Options, defaults.Options...)
		for _, x := range s.Options {
			all.Set(x.Name, x.Value)
		}
		section := &pyobj.Dict{}
		for _, x := range all.Options {
			value := x.Value
			if !o.raw {
				if value, err = interpolate(all, x, value, 1); err != nil {
					return nil, err
				}
			}
			_ = section.Set(x.Name, value)
		}
		_ = out.Set(s.Name, section)
	}
	return out, nil
}

// interpolate replaces %(name)s by the value of that option, and %% by a percent sign. rest is the text to expand.
func interpolate(s *configparser.Section, o configparser.Option, rest string, depth int) (string, error) {
	if depth > 10 {
		return "", fmt.Errorf("Recursion limit exceeded in value substitution: option %s in section %s contains an interpolation key which "+
			"cannot be substituted in 10 steps. Raw value: %s", pyobj.Repr(o.Name), pyobj.Repr(s.Name), pyobj.Repr(rest))
	}
	var b strings.Builder
	for rest != "" {
		i := strings.IndexByte(rest, '%')
		if i < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:i])
		rest = rest[i:]
		switch {
		case strings.HasPrefix(rest, "%%"):
			b.WriteByte('%')
			rest = rest[2:]
		case strings.HasPrefix(rest, "%("):
			name, tail, ok := strings.Cut(rest[2:], ")s")
			if !ok || name == "" || strings.Contains(name, ")") {
				return "", fmt.Errorf("bad interpolation variable reference %s", pyobj.Repr(rest))
			}
			name = strings.ToLower(name)
			value, ok := s.Get(name)
			if !ok {
				return "", fmt.Errorf("Bad value substitution: option %s in section %s contains an interpolation key %s which is not a valid option "+
					"name. Raw value: %s", pyobj.Repr(o.Name), pyobj.Repr(s.Name), pyobj.Repr(name), pyobj.Repr(o.Value))
			}
			if strings.Contains(value, "%") {
				var err error
				if value, err = interpolate(s, o, value, depth+1); err != nil {
					return "", err
				}
			}
			b.WriteString(value)
			rest = tail
		default:
			return "", fmt.Errorf("'%%' must be followed by '%%' or '(', found: %s", pyobj.Repr(rest))
		}
	}
	return b.String(), nil
}
