package aptpkg

import (
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/aptsource"
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// stanza is a paragraph of a file in the newer form (deb822): it may stand for several repositories.
type stanza struct {
	File           string
	header, footer []string
	tags           []aptsource.Option // key and value
	changed        bool
}

// parseStanzas reads a file: paragraphs with blank lines between them, values that go on in indented lines, comments.
func parseStanzas(text, file string) []*stanza {
	var all []*stanza
	var now *stanza
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" {
			now = nil
			continue
		}
		if now == nil {
			now = &stanza{File: file}
			all = append(all, now)
		}
		n := len(now.tags)
		key, value, ok := strings.Cut(line, ":")
		switch {
		case strings.HasPrefix(line, "#") && n == 0:
			now.header = append(now.header, line)
		case strings.HasPrefix(line, "#"):
			now.footer = append(now.footer, line)
		case ok && key != "" && !strings.ContainsAny(key, " \t"):
			now.tags = append(now.tags, aptsource.Option{Key: key, Value: strings.TrimSpace(value)})
		case n > 0:
			now.tags[n-1].Value += "\n" + line
		}
	}
	return all
}

func (s *stanza) get(key string) string {
	for _, t := range s.tags {
		if strings.EqualFold(t.Key, key) {
			return t.Value
		}
	}
	return ""
}

// set gives a tag a value; an empty one removes it.
func (s *stanza) set(key, value string) {
	s.changed = true
	i := slices.IndexFunc(s.tags, func(t aptsource.Option) bool { return strings.EqualFold(t.Key, key) })
	switch {
	case i >= 0 && value == "":
		s.tags = slices.Delete(s.tags, i, i+1)
	case i >= 0:
		s.tags[i].Value = value
	case value != "":
		s.tags = append(s.tags, aptsource.Option{Key: key, Value: value})
	}
}

func (s *stanza) words(key string) []string { return strings.Fields(s.get(key)) }

func (s *stanza) String() string {
	var b strings.Builder
	for _, line := range s.header {
		b.WriteString(line + "\n")
	}
	for _, t := range s.tags {
		b.WriteString(t.Key + ": " + t.Value + "\n")
	}
	for _, line := range s.footer {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// yes reports whether a flag is on.
func yes(text string) bool {
	return slices.Contains([]string{"yes", "true", "with", "on", "enable", "1"}, strings.ToLower(text))
}

// each returns the repositories of a stanza in the older form: one for each combination of address, suite and type.
func (s *stanza) each() []*source {
	var out []*source
	for _, uri := range s.words("URIs") {
		for _, suite := range s.words("Suites") {
			for _, kind := range s.words("Types") {
				r := &source{stanza: s, Line: aptsource.Line{
					Kind: kind, URI: uri, Dist: suite, Comps: s.words("Components"), Architectures: s.words("Architectures"),
					SignedBy: s.get("Signed-By"), Disabled: s.get("Enabled") != "" && !yes(s.get("Enabled")), File: s.File,
					Trusted: yes(s.get("Trusted")),
				}}
				r.Text = r.String()
				out = append(out, r)
			}
		}
	}
	return out
}

// about reports whether the stanza stands for a repository, among others perhaps.
func (s *stanza) about(want *source) bool {
	return slices.ContainsFunc(s.each(), func(r *source) bool { return r.Same(&want.Line) })
}

// drop takes a repository out of the stanza. It reports whether there was something to take, and whether anything is left.
func (s *stanza) drop(want *source) (found, left bool) {
	comps := s.words("Components")
	if !s.about(want) || !slices.Equal(s.words("Architectures"), want.Architectures) {
		return false, true
	}
	without := func(list []string, in []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(x string) bool { return slices.Contains(in, x) })
	}
	rest := without(comps, want.Comps)
	switch {
	case len(rest) == 0 && len(without(want.Comps, comps)) == 0: // the same components: the suite goes
		suites := without(s.words("Suites"), []string{want.Dist})
		s.set("Suites", strings.Join(suites, " "))
		return true, len(suites) > 0
	case len(rest) == len(comps):
		return false, true
	}
	s.set("Components", strings.Join(rest, " "))
	return true, len(rest) > 0
}

// newStanza stands for one repository.
func newStanza(want *source, file string) *stanza {
	s := &stanza{File: file, changed: true}
	for _, t := range [][2]string{{"Types", want.Kind}, {"URIs", want.URI}, {"Suites", want.Dist}} {
		s.set(t[0], t[1])
	}
	return s
}

// modify gives the stanza the attributes that mod_repo was told.
func (s *stanza) modify(kw map[string]any, want *source, comps, architectures []string) {
	s.set("Components", strings.Join(comps, " "))
	if len(architectures) > 0 {
		s.set("Architectures", strings.Join(architectures, " "))
	}
	if want.SignedBy != "" {
		s.set("Signed-By", want.SignedBy)
	}
	if v, ok := kw["trusted"]; ok {
		if pytext.IsTrue(v) || yes(pytext.Str(v)) {
			s.set("Trusted", "yes")
		} else {
			s.set("Trusted", "")
		}
	}
	off, given := kw["disabled"], false
	if _, given = kw["disabled"]; !given {
		if on, ok := kw["enabled"]; ok {
			off, given = !pytext.IsTrue(on), true
		}
	}
	if given && pytext.IsTrue(off) {
		s.set("Enabled", "no")
	} else if given {
		s.set("Enabled", "")
	}
	if v, ok := kw["comments"]; ok {
		s.header = []string{"#" + strings.TrimPrefix(strings.ReplaceAll(comments(v), "\n", " "), "#")}
	}
}

// changeStanza changes the stanza that stands for a repository, or adds one if a file of the newer form is asked for. It answers
// false if the repository belongs into a file of the older form.
func (a *sources) changeStanza(c *modules.Call, want *source, comps, architectures []string) bool {
	for _, s := range a.stanzas {
		have := s.words("Components")
		if s.about(want) && (len(have) == 0 || slices.ContainsFunc(comps, func(x string) bool { return slices.Contains(have, x) })) {
			s.modify(c.Keywords, want, comps, architectures)
			return true
		}
	}
	file := pkglist.Keyword(c, "file")
	if !strings.HasSuffix(file, ".sources") {
		return false
	}
	s := newStanza(want, file)
	s.modify(c.Keywords, want, comps, architectures)
	a.stanzas = append(a.stanzas, s)
	return true
}

// readStanzas reads a file of the newer form.
func (a *sources) readStanzas(path string) error {
	info, err := os.Stat(a.c.Path(path))
	if err != nil || !info.Mode().IsRegular() {
		return nil //nolint:nilerr // as apt, which reads only regular files
	}
	if info.Size() > 16<<20 {
		return modules.Errorf("cannot read %s: it is larger than 16 MiB", path)
	}
	b, err := os.ReadFile(a.c.Path(path))
	if err != nil {
		return modules.OSError(err)
	}
	a.stanzas = append(a.stanzas, parseStanzas(string(b), path)...)
	return nil
}

// stanzaFile returns the text of a file in the newer form. changed reports whether the file has to be written.
func (a *sources) stanzaFile(path string) (text string, changed bool) {
	var parts []string
	for _, s := range a.stanzas {
		if s.File == path {
			parts, changed = append(parts, s.String()), changed || s.changed
		}
	}
	return strings.Join(parts, "\n"), changed
}
