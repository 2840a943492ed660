//go:build unix

package file

import (
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// lineEdit is one run of file.line: it changes the lines of a file.
type lineEdit struct {
	lines                []string
	content              string
	mode, location       string
	match, before, after []string // the lines that were found
	hasBefore, hasAfter  bool     // whether there was something to look for
	indent               bool
	placed               bool // a location was given
}

func line(h *host) (any, error) {
	v, err := h.line()
	return v, modules.OSError(err)
}

func (h *host) line() (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	path = h.real(path)
	if !h.isFile(path) {
		if h.Bool("quiet") {
			return false, nil
		}
		return nil, modules.Errorf(`File "%s" does not exists or is not a file.`, path)
	}
	mode := strings.ToLower(h.Str("mode"))
	switch mode {
	case "insert", "ensure", "delete", "replace":
	default:
		if h.Value("mode") == nil {
			return nil, modules.Errorf("Mode was not defined. How to process the file?")
		}
		return nil, modules.Errorf(`Unknown mode: "%s"`, mode)
	}
	if mode != "delete" && h.Value("content") == nil {
		return nil, modules.Errorf(`Content can only be empty if mode is "delete"`)
	}
	st, err := h.stat(path)
	if err != nil {
		return nil, err
	}
	old, err := h.readText(path)
	if err != nil {
		return nil, err
	}
	e := &lineEdit{lines: textLines(old), content: h.Str("content"), mode: mode, location: h.Str("location"), indent: h.Bool("indent"), placed: h.Bool("location")}
	if n := len(e.lines); n > 0 && eol(e.lines[n-1]) != "" {
		e.lines = append(e.lines, "")
	}
	if st.size == 0 && (mode == "delete" || mode == "replace") {
		e.lines = nil
	}
	if err := e.find(h.Value("match"), h.Value("before"), h.Value("after")); err != nil {
		return nil, err
	}
	if err := e.run(); err != nil {
		return nil, err
	}
	e.endLines()
	fresh := strings.Join(e.lines, "")
	changed := fresh != old
	test := h.Opt("test")
	if h.Bool("backup") && changed && test == any(false) {
		if err := h.copyAside(path, path+"."+h.Now().Format("2006-01-02-15-04-05"), false); isOS(err) {
			return nil, modules.Errorf("Unable to create the backup file of %s. Exception: %s", path, osText(err))
		} else if err != nil {
			return nil, err
		}
	}
	d := ""
	if changed {
		d = diff(pytext.SplitLines(old, true), e.lines)
		if !pytext.Truth(test) {
			if err := h.replaceFile(path, []byte(fresh)); err != nil {
				return nil, err
			}
		}
	}
	if h.Bool("show_changes") && d != "" {
		return d, nil
	}
	return changed, nil
}

// find looks for the lines that the conditions name. Without any, the content itself is looked for.
func (e *lineEdit) find(match, before, after any) error {
	if !pytext.Truth(match) && before == nil && after == nil {
		match = any(nil)
		if e.content != "" {
			match = e.content
		}
	}
	var err error
	e.hasBefore, e.hasAfter = before != nil, after != nil
	if e.after, err = e.matching(after); err != nil {
		return err
	}
	if e.before, err = e.matching(before); err != nil {
		return err
	}
	e.match, err = e.matching(match)
	// Salt forgets a condition that cannot be met by any line of an empty file, or that is empty.
	e.hasBefore = e.hasBefore && pytext.Truth(before) && len(e.lines) > 0
	e.hasAfter = e.hasAfter && pytext.Truth(after) && len(e.lines) > 0
	return err
}

// matching returns the lines that match a pattern or contain its literal text.
func (e *lineEdit) matching(pattern any) ([]string, error) {
	if !pytext.Truth(pattern) || len(e.lines) == 0 {
		return nil, nil
	}
	p, ok := pattern.(string)
	if !ok {
		return nil, modules.Errorf("first argument must be string or compiled pattern: '%s'", pytext.Str(pattern))
	}
	re, err := compileText(p, pyre.DotAll)
	if err != nil {
		return nil, modules.Errorf("%s: '%s'", patternText(err), p)
	}
	var found []string
	for _, l := range e.lines {
		loc, err := re.Search(l)
		if err != nil {
			return nil, modules.Errorf("%s: '%s'", err, p)
		}
		if loc != nil || strings.Contains(l, p) {
			found = append(found, l)
		}
	}
	return found, nil
}

func patternText(err error) string {
	if python, ok := err.(*modules.PythonError); ok {
		return python.Msg
	}
	return err.Error()
}

// eol returns the line end of a line, or "" if it has none.
func eol(l string) string {
	switch {
	case strings.HasSuffix(l, "\r\n"):
		return "\r\n"
	case strings.HasSuffix(l, "\n"):
		return "\n"
	case strings.HasSuffix(l, "\r"):
		return "\r"
	}
	return ""
}

// withEOL returns the line l with the line end of the line like.
func withEOL(like, l string) string {
	end := eol(like)
	if end == "" {
		end = "\n"
	}
	return pytext.StripRight(l) + end
}

// indented returns the new line with the indentation of another line.
func (e *lineEdit) indented(like string) string {
	if !e.indent {
		return e.content
	}
	return like[:len(like)-len(strings.TrimLeft(like, "\t "))] + strings.TrimLeftFunc(e.content, func(r rune) bool { return pytext.Strip(string(r)) == "" })
}

// bare returns a line without its line end.
func bare(l string) string { return strings.TrimRight(l, "\r\n") }

func once(found []string, name string) error {
	switch n := len(found); {
	case n > 1:
		return modules.Errorf(`Found more than expected occurrences in "%s" expression`, name)
	case n < 1:
		return modules.Errorf(`Found less than expected occurrences in "%s" expression`, name)
	}
	return nil
}

func (e *lineEdit) run() error {
	switch {
	case len(e.lines) == 0 && (e.mode == "delete" || e.mode == "replace"):
	case e.mode == "delete" && len(e.match) > 0:
		first := e.match[0]
		e.lines = slices.DeleteFunc(e.lines, func(l string) bool { return l == first })
	case e.mode == "replace" && len(e.match) > 0:
		i := slices.Index(e.lines, e.match[0])
		e.lines[i] = e.indented(e.lines[i])
	case e.mode == "insert":
		return e.insert()
	case e.mode == "ensure":
		return e.ensure()
	}
	return nil
}

func (e *lineEdit) put(i int, l string) { e.lines = slices.Insert(e.lines, i, l) }

// previous returns the line before line i. Before the first line is the last one, as with Python's index -1.
func (e *lineEdit) previous(i int) string {
	if i == 0 {
		i = len(e.lines)
	}
	return e.lines[i-1]
}

func (e *lineEdit) insert() error {
	// What was asked for counts here, whether or not the file has any lines.
	switch {
	case e.placed && e.location == "end":
		if n := len(e.lines); n > 0 {
			e.lines = append(e.lines, e.indented(e.lines[n-1]))
		} else {
			e.lines = append(e.lines, e.content)
		}
	case e.placed && e.location == "start":
		if len(e.lines) > 0 {
			e.put(0, withEOL(e.lines[0], e.content))
		} else {
			e.lines = []string{e.content + "\n"}
		}
	case e.placed:
	case len(e.before) > 0 && len(e.after) > 0:
		if err := once(e.before, "before"); err != nil {
			return err
		}
		if err := once(e.after, "after"); err != nil {
			return err
		}
		last := slices.Index(e.lines, e.before[0])
		e.put(last, e.indented(e.lines[last]))
	case len(e.after) > 0:
		if err := once(e.after, "after"); err != nil {
			return err
		}
		i := slices.Index(e.lines, e.after[0])
		if i+1 >= len(e.lines) || bare(e.lines[i+1]) != bare(e.content) {
			e.put(i+1, e.indented(e.lines[i]))
		}
	case len(e.before) > 0:
		if err := once(e.before, "before"); err != nil {
			return err
		}
		i := slices.Index(e.lines, e.before[0])
		if bare(e.previous(i)) != bare(e.content) {
			e.put(i, e.indented(e.lines[i]))
		}
	case e.hasBefore || e.hasAfter:
		return modules.Errorf("Neither before or after was found in file")
	default:
		return modules.Errorf(`On insert either "location" or "before/after" conditions are required.`)
	}
	return nil
}

func (e *lineEdit) ensure() error {
	switch {
	case len(e.before) > 0 && len(e.after) > 0:
		return e.between()
	case len(e.before) > 0:
		if err := once(e.before, "before"); err != nil {
			return err
		}
		i := slices.Index(e.lines, e.before[0])
		if i == 0 || bare(e.lines[i-1]) != bare(e.content) {
			e.put(i, e.indented(e.previous(i)))
		}
	case len(e.after) > 0:
		if err := once(e.after, "after"); err != nil {
			return err
		}
		i := slices.Index(e.lines, e.after[0])
		if i+1 >= len(e.lines) || bare(e.lines[i+1]) != bare(e.content) {
			e.put(i+1, e.indented(e.lines[i]))
		}
	default:
		return modules.Errorf("Wrong conditions? Unable to ensure line without knowing where to put it before and/or after.")
	}
	return nil
}

// between puts the line between two others, in the place of one that may be there.
func (e *lineEdit) between() error {
	if err := once(e.after, "after"); err != nil {
		return err
	}
	if err := once(e.before, "before"); err != nil {
		return err
	}
	after, before := slices.Index(e.lines, e.after[0]), slices.Index(e.lines, e.before[0])
	for _, l := range e.lines {
		if strings.TrimLeftFunc(l, func(r rune) bool { return pytext.Strip(string(r)) == "" }) == e.content {
			return nil
		}
	}
	switch before - after {
	case 1:
		e.put(after+1, e.indented(e.lines[after]))
	case 2:
		e.lines[after+1] = e.indented(e.lines[after])
	default:
		return modules.Errorf(`Found more than one line between boundaries "before" and "after".`)
	}
	return nil
}

// endLines gives line ends to the lines that need one, and takes away the empty line at the end.
func (e *lineEdit) endLines() {
	for i, l := range e.lines {
		if eol(l) != "" || i+1 == len(e.lines) {
			continue
		}
		prev := 1 // also for the second line: what Python makes of "idx and idx - 1 or 1"
		if i > 1 {
			prev = i - 1
		}
		e.lines[i] = withEOL(e.lines[prev], l)
	}
	if n := len(e.lines); n > 0 && e.lines[n-1] == "" {
		e.lines = e.lines[:n-1]
	}
}
