// Package aptsource reads and writes lines of apt's repository files, as Salt does without Python's apt module.
// Salt's source: salt/modules/aptpkg.py.
package aptsource

import (
	"slices"
	"strings"

	"github.com/brine-salt/brine/modules"
)

// MainFile is the file for repositories without a file of their own.
const MainFile = "/etc/apt/sources.list"

// A Line is one line of a repository file, whether it describes a repository or not.
type Line struct {
	// Invalid means that the line is not a repository, Disabled that it is a repository in a comment.
	Invalid, Disabled bool
	// Kind is deb or deb-src; Text is the line as it was read.
	Kind, URI, Dist, Comment, Text, SignedBy string
	Comps, Architectures                     []string
	File                                     string
	Trusted                                  bool
}

// An Option is one of the options in brackets: [arch=amd64 signed-by=/x].
type Option struct{ Key, Full, Value string }

// Options returns the options of a line.
func Options(line string) []Option {
	inner, ok := bracketed(line)
	if !ok {
		return nil
	}
	var out []Option
	var architectures []string
	for _, opt := range strings.Fields(inner) {
		key, value, ok := strings.Cut(opt, "=")
		if !ok {
			continue
		}
		switch {
		case strings.HasPrefix(opt, "arch"):
			architectures = append(architectures, strings.Split(value, ",")...)
			key, value = "arch", strings.Join(architectures, ",")
		case strings.HasPrefix(opt, "signed-by"):
			key = "signedby"
		}
		out = setOption(out, Option{key, opt, value})
	}
	return out
}

func setOption(list []Option, o Option) []Option {
	for i := range list {
		if list[i].Key == o.Key {
			list[i] = o
			return list
		}
	}
	return append(list, o)
}

// bracketed returns the text between the first "[" that has a "=" after it and the "]" that follows the last such
// "=".
func bracketed(line string) (string, bool) {
	for i := 0; i < len(line); i++ {
		if line[i] != '[' {
			continue
		}
		rest := line[i:]
		for eq := strings.LastIndexByte(rest, '='); eq > 0; eq = strings.LastIndexByte(rest[:eq], '=') {
			if end := strings.IndexByte(rest[eq:], ']'); end >= 0 {
				return strings.Trim(rest[:eq+end+1], "[]"), true
			}
		}
	}
	return "", false
}

// words splits a line into words. The path of a CD may contain spaces.
func words(line string) []string {
	if i := strings.LastIndex(line, "cdrom:"); i >= 0 {
		if j := strings.LastIndexByte(line[i:], '/'); j >= 0 {
			return slices.Concat(strings.Fields(line[:i]), []string{strings.TrimSpace(line[i : i+j+1])}, strings.Fields(line[i+j+1:]))
		}
	}
	return strings.Fields(line)
}

// Parse parses a line. It returns an error for options that Salt cannot parse.
func Parse(line, file string) (*Line, error) {
	if file == "" {
		file = MainFile
	}
	s := &Line{Text: line, File: file}
	text := strings.TrimSpace(line)
	if text == "" {
		s.Invalid = true
		return s, nil
	}
	if rest, ok := strings.CutPrefix(text, "#"); ok {
		s.Disabled, text = true, rest
	}
	if i := strings.IndexByte(text, '#'); i > 0 {
		text, s.Comment = text[:i], text[i+1:]
	}
	list := words(text)
	if len(list) < 3 || !slices.Contains([]string{"deb", "deb-src", "rpm", "rpm-src"}, list[0]) ||
		strings.HasPrefix(list[1], "[") && !slices.ContainsFunc(list[1:], func(w string) bool { return strings.HasSuffix(w, "]") }) {
		s.Invalid = true
		return s, nil
	}
	if strings.HasPrefix(list[1], "[") {
		var bare []string
		for _, w := range list {
			if w = strings.Trim(w, "[]"); w != "" {
				bare = append(bare, w)
			}
		}
		list = bare
		for _, o := range Options(line) {
			switch o.Key {
			case "arch":
				s.Architectures = strings.Split(o.Value, ",")
			case "signedby":
				s.SignedBy = o.Value
			}
			i := slices.Index(list, o.Full)
			if i < 0 {
				return nil, &modules.PythonError{Type: "ValueError", Msg: "'[" + o.Full + "]' is not in list"}
			}
			list = slices.Delete(list, i, i+1)
		}
		if len(list) < 3 {
			return nil, &modules.PythonError{Type: "IndexError", Msg: "list index out of range"}
		}
	}
	s.Kind, s.URI, s.Dist, s.Comps = list[0], list[1], list[2], list[3:]
	return s, nil
}

// String returns the line in the form of the file.
func (s *Line) String() string {
	if s.Invalid {
		return s.Text
	}
	var out []string
	if s.Disabled {
		out = append(out, "#")
	}
	out = append(out, s.Kind)
	opts := Options(s.Text)
	if len(s.Architectures) > 0 {
		list := strings.Join(s.Architectures, ",")
		opts = setOption(opts, Option{"arch", "arch=" + list, list})
	}
	if s.SignedBy != "" {
		opts = setOption(opts, Option{"signedby", "signed-by=" + s.SignedBy, s.SignedBy})
	}
	if s.Trusted {
		opts = setOption(opts, Option{"trusted", "trusted=yes", "yes"})
	}
	if len(opts) > 0 {
		var full []string
		for _, o := range opts {
			full = append(full, o.Full)
		}
		out = append(out, "["+strings.Join(full, " ")+"]")
	}
	out = append(out, s.URI, s.Dist, strings.Join(s.Comps, " "))
	if s.Comment != "" {
		out = append(out, "#"+s.Comment)
	}
	return strings.Join(out, " ") + "\n"
}

// Same reports whether another line describes the same repository.
func (s *Line) Same(o *Line) bool {
	return s.Kind == o.Kind && strings.TrimRight(s.URI, "/") == strings.TrimRight(o.URI, "/") && s.Dist == o.Dist
}
