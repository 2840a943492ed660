package aptpkg

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/pkglist"
	"github.com/brine-salt/brine/modules"
)

// mainFile is where repositories are written that have no file of their own.
const mainFile = "/etc/apt/sources.list"

// source is a line of a one-line-style file of repositories, or anything else that stands in such a file.
type source struct {
	invalid, disabled                        bool
	kind, uri, dist, comment, line, signedby string
	comps, architectures                     []string
	file                                     string
	trusted                                  bool
	stanza                                   *stanza // that it comes from, nil for a line
}

// option is one of those in brackets: [arch=amd64 signed-by=/x].
type option struct{ key, full, value string }

// options are the options of a line. Those that Salt knows have names of their own.
func options(line string) []option {
	inner, ok := bracketed(line)
	if !ok {
		return nil
	}
	var out []option
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
		out = setOption(out, option{key, opt, value})
	}
	return out
}

func setOption(list []option, o option) []option {
	for i := range list {
		if list[i].key == o.key {
			list[i] = o
			return list
		}
	}
	return append(list, o)
}

// bracketed is what stands between the first "[" with a "=" behind it and the "]" behind the last such "=".
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

// words cuts a line into its words. A path of a CD may hold blanks.
func words(line string) []string {
	if i := strings.LastIndex(line, "cdrom:"); i >= 0 {
		if j := strings.LastIndexByte(line[i:], '/'); j >= 0 {
			return slices.Concat(strings.Fields(line[:i]), []string{strings.TrimSpace(line[i : i+j+1])}, strings.Fields(line[i+j+1:]))
		}
	}
	return strings.Fields(line)
}

// parseSource reads a line. The error is for options that are written in a way that Salt fails on.
func parseSource(line, file string) (*source, error) {
	if file == "" {
		file = mainFile
	}
	s := &source{line: line, file: file}
	text := strings.TrimSpace(line)
	if text == "" {
		s.invalid = true
		return s, nil
	}
	if rest, ok := strings.CutPrefix(text, "#"); ok {
		s.disabled, text = true, rest
	}
	if i := strings.IndexByte(text, '#'); i > 0 {
		text, s.comment = text[:i], text[i+1:]
	}
	list := words(text)
	if len(list) < 3 || !slices.Contains([]string{"deb", "deb-src", "rpm", "rpm-src"}, list[0]) ||
		strings.HasPrefix(list[1], "[") && !slices.ContainsFunc(list[1:], func(w string) bool { return strings.HasSuffix(w, "]") }) {
		s.invalid = true
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
		for _, o := range options(line) {
			switch o.key {
			case "arch":
				s.architectures = strings.Split(o.value, ",")
			case "signedby":
				s.signedby = o.value
			}
			i := slices.Index(list, o.full)
			if i < 0 {
				return nil, &modules.PythonError{Type: "ValueError", Msg: "'[" + o.full + "]' is not in list"}
			}
			list = slices.Delete(list, i, i+1)
		}
		if len(list) < 3 {
			return nil, &modules.PythonError{Type: "IndexError", Msg: "list index out of range"}
		}
	}
	s.kind, s.uri, s.dist, s.comps = list[0], list[1], list[2], list[3:]
	return s, nil
}

// String is the line as it is written.
func (s *source) String() string {
	if s.invalid {
		return s.line
	}
	var out []string
	if s.disabled {
		out = append(out, "#")
	}
	out = append(out, s.kind)
	opts := options(s.line)
	if len(s.architectures) > 0 {
		list := strings.Join(s.architectures, ",")
		opts = setOption(opts, option{"arch", "arch=" + list, list})
	}
	if s.signedby != "" {
		opts = setOption(opts, option{"signedby", "signed-by=" + s.signedby, s.signedby})
	}
	if s.trusted {
		opts = setOption(opts, option{"trusted", "trusted=yes", "yes"})
	}
	if len(opts) > 0 {
		var full []string
		for _, o := range opts {
			full = append(full, o.full)
		}
		out = append(out, "["+strings.Join(full, " ")+"]")
	}
	out = append(out, s.uri, s.dist, strings.Join(s.comps, " "))
	if s.comment != "" {
		out = append(out, "#"+s.comment)
	}
	return strings.Join(out, " ") + "\n"
}

// plain is the repository as list_repos shows it.
func (s *source) plain() map[string]any {
	m := map[string]any{
		"file": s.file, "comps": pkglist.Anys(s.comps), "disabled": s.disabled, "dist": s.dist, "type": s.kind, "uri": s.uri,
		"line": strings.TrimSpace(s.line), "architectures": pkglist.Anys(s.architectures), "signedby": s.signedby,
	}
	if s.stanza != nil {
		m["enabled"] = !s.disabled
		for name, key := range map[string]string{"suites": "Suites", "types": "Types", "uris": "URIs"} {
			m[name] = pkglist.Anys(s.stanza.words(key))
		}
	}
	return m
}

// same tells whether another line is about the same repository.
func (s *source) same(o *source) bool {
	return s.kind == o.kind && strings.TrimRight(s.uri, "/") == strings.TrimRight(o.uri, "/") && s.dist == o.dist
}

// sources are the lines of all files.
type sources struct {
	c     *modules.Call
	list  []*source
	files []string // those that were read
	// stanzas are those of the files in the newer form.
	stanzas []*stanza
}

func readSources(c *modules.Call) (*sources, error) {
	all := &sources{c: c}
	paths := []string{mainFile}
	found, err := filepath.Glob(c.Path(mainFile+".d") + "/*.list")
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		paths = append(paths, mainFile+".d/"+filepath.Base(f))
	}
	for _, path := range paths {
		info, err := os.Stat(c.Path(path))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if info.Size() > 16<<20 {
			return nil, modules.Errorf("cannot read %s: it is larger than 16 MiB", path)
		}
		b, err := os.ReadFile(c.Path(path))
		if err != nil {
			return nil, modules.OSError(err)
		}
		all.files = append(all.files, path)
		for line := range strings.Lines(string(b)) {
			s, err := parseSource(line, path)
			if err != nil {
				return nil, err
			}
			all.list = append(all.list, s)
		}
	}
	found, err = filepath.Glob(c.Path(mainFile+".d") + "/*.sources")
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		if err := all.readStanzas(mainFile + ".d/" + filepath.Base(f)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// save writes all files anew; those of the newer form only if something in them was changed.
func (a *sources) save() error {
	text := map[string]*strings.Builder{}
	order := slices.Clone(a.files)
	for _, f := range a.files {
		text[f] = &strings.Builder{}
	}
	for _, s := range a.list {
		if text[s.file] == nil {
			text[s.file] = &strings.Builder{}
			order = append(order, s.file)
		}
		text[s.file].WriteString(s.String())
	}
	for _, f := range order {
		if err := a.write(f, text[f].String()); err != nil {
			return err
		}
	}
	var done []string
	for _, s := range a.stanzas {
		if slices.Contains(done, s.file) {
			continue
		}
		done = append(done, s.file)
		if text, changed := a.stanzaFile(s.file); changed {
			if err := a.write(s.file, text); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *sources) write(path, text string) error {
	mode := os.FileMode(0o644)
	if info, err := os.Stat(a.c.Path(path)); err == nil {
		mode = info.Mode().Perm()
	}
	err := atomicfile.WriteFile(a.c.Path(path), []byte(text), mode)
	if errors.Is(err, fs.ErrNotExist) {
		err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return modules.OSError(err)
	}
	return nil
}
