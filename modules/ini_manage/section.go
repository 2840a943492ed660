package ini_manage

import (
	"fmt"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// item is a key of a section: an option with its text, a section, or a comment or other line under a name that begins with #.
type item struct {
	key   string
	value any // string or *section, nil while an option is being put in its place
}

// section is Salt's ordered dict of options. Its methods do what the methods of Salt's class do, step by step, since the results
// depend on it: reading goes through the same update as changing.
type section struct {
	name     string
	items    []item
	sep      string
	noSpaces bool
	option   *pyre.Regexp
}

// regexes are the patterns that do not depend on the separator.
type regexes struct{ comment, indented, header *pyre.Regexp }

func compileAll() (*regexes, error) {
	r := &regexes{}
	for _, p := range [...]struct {
		into    **pyre.Regexp
		pattern string
		flags   pyre.Flags
	}{
		{&r.comment, `^\s*(#|;)\s*(.*)`, 0}, {&r.indented, `(\s+)(.*)`, 0}, {&r.header, `^\s*\[(.+?)\]\s*$`, pyre.Multiline},
	} {
		re, err := pyre.Compile(p.pattern, p.flags)
		if err != nil {
			return nil, err
		}
		*p.into = re
	}
	return r, nil
}

func newSection(name, sep string, noSpaces bool) (*section, error) {
	re, err := pyre.Compile(`(\s*)(.+?)\s*(\`+sep+`)\s*(.*)\s*`, 0)
	if err != nil {
		return nil, &modules.PythonError{Type: "error", Msg: err.Error()}
	}
	if re.Groups() != 4 {
		return nil, modules.Errorf("cannot use %q as a separator: it must not have groups", sep)
	}
	return &section{name: name, sep: sep, noSpaces: noSpaces, option: re}, nil
}

func (s *section) index(key string) int {
	for i := range s.items {
		if s.items[i].key == key {
			return i
		}
	}
	return -1
}

func (s *section) get(key string) (any, bool) {
	if i := s.index(key); i >= 0 {
		return s.items[i].value, true
	}
	return nil, false
}

func (s *section) set(key string, value any) {
	if i := s.index(key); i >= 0 {
		s.items[i].value = value
		return
	}
	s.items = append(s.items, item{key, value})
}

func (s *section) pop(key string) (any, bool) {
	i := s.index(key)
	if i < 0 {
		return nil, false
	}
	v := s.items[i].value
	s.items = append(s.items[:i:i], s.items[i+1:]...)
	return v, true
}

// place makes an option: in the place of a comment that comments it out, or at the end.
func (s *section) place(key string) error {
	for i, it := range s.items {
		text, ok := it.value.(string)
		if !strings.Contains(it.key, "#comment") || !ok {
			continue
		}
		text = strings.TrimLeft(text, "#")
		loc, err := s.option.Match(text)
		if err != nil {
			return err
		}
		if loc != nil && text[loc[4]:loc[5]] == key {
			s.items[i] = item{key, nil}
			return nil
		}
	}
	s.items = append(s.items, item{key, nil})
	return nil
}

// update sets options and sections, and returns the changes.
func (s *section) update(from []item) (*pyobj.Dict, error) {
	changes := pyobj.NewDict()
	for _, it := range from {
		value, plain := it.value, it.value
		if sub, ok := value.(*section); ok {
			copied, err := newSection(it.key, s.sep, s.noSpaces)
			if err != nil {
				return nil, err
			}
			if _, err := copied.update(sub.items); err != nil {
				return nil, err
			}
			value, plain = copied, copied.plain()
		}
		have, ok := s.get(it.key)
		old, isSection := have.(*section)
		switch {
		case !ok:
			if _, sub := value.(*section); sub {
				s.set(it.key, value)
			} else {
				if err := s.place(it.key); err != nil {
					return nil, err
				}
				s.set(it.key, value)
			}
			changed(changes, it.key, nil, plain)
		case isSection:
			sub, ok := value.(*section)
			if !ok {
				return nil, modules.NoAttribute("", "items")
			}
			inner, err := old.update(sub.items)
			if err != nil {
				return nil, err
			}
			if inner.Len() > 0 {
				_ = changes.Set(it.key, inner)
			}
		case have != value:
			changed(changes, it.key, have, plain)
			s.set(it.key, value)
		}
	}
	return changes, nil
}

// changed notes a change. Keys that are text never fail.
func changed(changes *pyobj.Dict, key string, before, after any) {
	_ = changes.Set(key, pyobj.NewDict("before", before, "after", after))
}

// plain converts the section to a dict.
func (s *section) plain() *pyobj.Dict {
	d := pyobj.NewDict()
	for _, it := range s.items {
		v := it.value
		if sub, ok := v.(*section); ok {
			v = sub.plain()
		}
		_ = d.Set(it.key, v)
	}
	return d
}

// options returns the section's options, without comments and invalid lines.
func (s *section) options() *pyobj.Dict {
	d := pyobj.NewDict()
	for _, it := range s.items {
		if strings.HasPrefix(it.key, "#") {
			continue
		}
		v := it.value
		if sub, ok := v.(*section); ok {
			v = sub.options()
		}
		_ = d.Set(it.key, v)
	}
	return d
}

// read takes the lines of a section in.
func (s *section) read(text string, r *regexes) error {
	text = strings.Trim(text, "\n")
	if text == "" {
		return nil
	}
	comments, unknown, indent := 0, 0, ""
	for _, line := range strings.Split(text, "\n") {
		add := func(key, value string) error {
			_, err := s.update([]item{{key, value}})
			return err
		}
		loc, err := r.comment.Match(line)
		if err != nil {
			return err
		}
		if loc != nil {
			comments++
			if err := add(fmt.Sprintf("#comment%d", comments), line); err != nil {
				return err
			}
			continue
		}
		if loc, err = r.indented.Match(line); err != nil {
			return err
		}
		if loc != nil && strings.ReplaceAll(line[loc[2]:loc[3]], "\t", "    ") > indent && len(s.items) > 0 {
			last := s.items[len(s.items)-1]
			before, _ := last.value.(string)
			if err := add(last.key, before+"\n"+line); err != nil {
				return err
			}
			continue
		}
		if loc, err = s.option.Match(line); err != nil {
			return err
		}
		if loc != nil {
			indent = strings.ReplaceAll(line[loc[2]:loc[3]], "\t", "    ")
			s.sep = line[loc[6]:loc[7]]
			if err := add(line[loc[4]:loc[5]], line[loc[8]:loc[9]]); err != nil {
				return err
			}
			continue
		}
		unknown++
		if err := add(fmt.Sprintf("#unknown%d", unknown), line); err != nil {
			return err
		}
	}
	return nil
}

// write puts the section out, its own head first. The sections in it follow its options.
func (s *section) write(out *[]string, r *regexes) error {
	*out = append(*out, "\n["+s.name+"]\n")
	var subs []*section
	for _, it := range s.items {
		loc, err := r.comment.Match(it.key)
		if err != nil {
			return err
		}
		sub, isSection := it.value.(*section)
		text, _ := it.value.(string)
		switch {
		case loc != nil && !isSection:
			*out = append(*out, text+"\n")
		case isSection:
			subs = append(subs, sub)
		default:
			switch trimmed := strings.TrimSpace(s.sep); {
			case strings.Trim(s.sep, " ") == "":
				s.sep = " "
			case s.noSpaces:
				s.sep = trimmed
			default:
				s.sep = " " + trimmed + " "
			}
			*out = append(*out, it.key+s.sep+text+"\n")
		}
	}
	for _, sub := range subs {
		if err := sub.write(out, r); err != nil {
			return err
		}
	}
	return nil
}
