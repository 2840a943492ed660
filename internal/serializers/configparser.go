package serializers

import (
	"errors"
	"fmt"
	"strings"

	"github.com/brine-salt/brine/internal/configparser"
	"github.com/brine-salt/brine/internal/pyobj"
)

// defaultSection is the section whose options all others have too.
const defaultSection = "DEFAULT"

// writeConfig writes sections of options, as ConfigParser.write does.
func writeConfig(v any, opts *pyobj.Dict) (any, error) {
	if err := refuse("configparser", opts, "allow_no_value", "delimiters", "interpolation"); err != nil {
		return nil, err
	}
	data, ok := v.(*pyobj.Dict)
	if !ok {
		return nil, fmt.Errorf("configparser can only serialize dictionaries, not <class '%s'>", pyobj.TypeName(v))
	}
	sep := "="
	if list, err := iterate(opts.Value("delimiters")); err == nil && len(list) > 0 {
		sep = pyobj.Str(list[0])
	}
	none := pyobj.Truth(opts.Value("allow_no_value"))
	raw := opts.Has("interpolation") && opts.Value("interpolation") == nil
	defaults, list := &configparser.Section{Name: defaultSection}, []*configparser.Section(nil)
	empty := map[[2]string]bool{} // options without a value
	for name, keys := range data.All() {
		s := defaults
		if title := pyobj.Str(name); title != defaultSection {
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
		for k, val := range options.All() {
			key := strings.ToLower(pyobj.Str(k))
			delete(empty, [2]string{s.Name, key})
			if val == nil {
				if !none {
					return nil, errors.New("option values must be strings")
				}
				empty[[2]string{s.Name, key}] = true
				s.Set(key, "")
				continue
			}
			text := pyobj.Str(val)
			if !raw {
				if err := checkPercent(text); err != nil {
					return nil, err
				}
			}
			s.Set(key, text)
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

// checkPercent refuses a value that interpolation could not read back.
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

// readConfig reads sections, with what their values refer to put in.
func readConfig(name, text string, opts *pyobj.Dict) (any, error) {
	if err := refuse("configparser", opts, "interpolation"); err != nil {
		return nil, err
	}
	if name == "" {
		name = "<???>"
	}
	list, err := configparser.Parse(text, name, true)
	if err != nil {
		return nil, err
	}
	raw := opts.Has("interpolation") && opts.Value("interpolation") == nil
	defaults := configparser.Find(list, defaultSection)
	out := &pyobj.Dict{}
	for _, s := range list {
		if s == defaults {
			continue
		}
		all := &configparser.Section{Name: s.Name}
		if defaults != nil {
			all.Options = append(all.Options, defaults.Options...)
		}
		for _, o := range s.Options {
			all.Set(o.Name, o.Value)
		}
		section := &pyobj.Dict{}
		for _, o := range all.Options {
			value := o.Value
			if !raw {
				if value, err = interpolate(all, o, value, 1); err != nil {
					return nil, err
				}
			}
			_ = section.Set(o.Name, value)
		}
		_ = out.Set(s.Name, section)
	}
	return out, nil
}

// interpolate replaces %(name)s by the value of that option, and %% by a percent sign.
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
