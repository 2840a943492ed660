package trove

import "strings"

// iniFile holds the sections of a MySQL option file in order. Comments and directives such as !includedir are
// dropped, since Trove writes these files.
type iniFile []iniSection

type iniSection struct {
	name string
	keys []iniKey
}

// iniKey is an option. has is false for an option without "=".
type iniKey struct {
	name, value string
	has         bool
}

// parseINI parses an option file. As in MySQL, "-" in names of options becomes "_".
func parseINI(text string) iniFile {
	var f iniFile
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';' || line[0] == '!':
		case line[0] == '[':
			f.section(strings.TrimSpace(strings.Trim(line, "[]")))
		case len(f) > 0:
			name, value, has := strings.Cut(line, "=")
			value = strings.TrimSpace(value)
			if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
				value = value[1 : n-1]
			}
			f[len(f)-1].set(iniKey{foldOption(name), value, has})
		}
	}
	return f
}

func foldOption(name string) string { return strings.ReplaceAll(strings.TrimSpace(name), "-", "_") }

// section moves a section to the end of the list, or adds it, so that following options are added to it.
func (f *iniFile) section(name string) {
	for i, s := range *f {
		if s.name == name {
			*f = append(append((*f)[:i:i], (*f)[i+1:]...), s)
			return
		}
	}
	*f = append(*f, iniSection{name: name})
}

func (s *iniSection) set(k iniKey) {
	for i := range s.keys {
		if s.keys[i].name == k.name {
			s.keys[i] = k
			return
		}
	}
	s.keys = append(s.keys, k)
}

// get returns the value of an option, or "" if it is not set.
func (f iniFile) get(section, name string) string {
	for _, s := range f {
		if s.name != section {
			continue
		}
		for _, k := range s.keys {
			if k.name == foldOption(name) {
				return k.value
			}
		}
	}
	return ""
}

// String formats the file.
func (f iniFile) String() string {
	var b strings.Builder
	for _, s := range f {
		b.WriteString("[" + s.name + "]\n")
		for _, k := range s.keys {
			b.WriteString(k.name)
			if k.has {
				b.WriteString(" = " + k.value)
			}
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	return b.String()
}
