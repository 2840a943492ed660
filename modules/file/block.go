//go:build unix

package file

import (
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pycodec"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// block is one run of file.blockreplace.
type block struct {
	start, end    string
	content       []string
	newline       bool   // append_newline
	sep           string // the file's line end
	before, after any    // the patterns of lines to insert at
	atEnd, atTop  bool

	old, fresh []string
	found      bool
}

func blockReplace(h *host) (any, error) {
	v, err := h.blockReplace()
	return v, modules.OSError(err)
}

func (h *host) blockReplace() (any, error) {
	b := &block{
		start: h.Str("marker_start"), end: h.Str("marker_end"), before: h.Value("insert_before_match"), after: h.Value("insert_after_match"),
		atEnd: h.Bool("append_if_not_found"), atTop: h.Bool("prepend_if_not_found"),
	}
	exclusive := 0
	for _, x := range [...]bool{b.atEnd, b.atTop, pytext.Truth(b.before), pytext.Truth(b.after)} {
		if x {
			exclusive++
		}
	}
	if exclusive > 1 {
		return nil, modules.Usagef("Only one of append_if_not_found, prepend_if_not_found, insert_before_match, and insert_after_match is permitted")
	}
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	if !h.exists(path) {
		return nil, modules.Usagef("File not found: %s", path)
	}
	encoding := h.encodingOf(path)
	if encoding == "" && h.isBinary(path) {
		return nil, modules.Usagef("Cannot perform string replacements on a binary file: %s", path)
	}
	if pytext.Truth(b.before) {
		if _, ok := b.before.(string); !ok {
			return nil, modules.Errorf("RegEx expected in insert_before_match parameter.")
		}
	} else if pytext.Truth(b.after) {
		if _, ok := b.after.(string); !ok {
			return nil, modules.Errorf("RegEx expected in insert_after_match parameter.")
		}
	}
	content, ok := h.Value("content").(string)
	if !ok {
		return nil, modules.NoAttribute(h.Value("content"), "split")
	}
	b.newline = h.Bool("append_newline") || h.Value("append_newline") == nil && !strings.HasSuffix(content, "\n")
	b.content = strings.Split(strings.ReplaceAll(content, "\r\n", "\n"), "\n")
	raw, err := h.read(path)
	if isOS(err) {
		return nil, modules.Errorf("Failed to read from %s: %s", path, osText(err))
	} else if err != nil {
		return nil, err
	}
	old, err := pycodec.Decode(raw, orUTF8(encoding))
	if err != nil {
		return nil, err
	}
	if err := b.run(textLines(old)); err != nil {
		return nil, err
	}
	d := diff(b.old, b.fresh)
	if d != "" && !h.Bool("dry_run") {
		if err := h.writeBlock(path, strings.Join(b.fresh, ""), orUTF8(encoding)); err != nil {
			return nil, err
		}
	}
	if h.Bool("show_changes") {
		return d, nil
	}
	return d != "", nil
}

func orUTF8(encoding string) string {
	if encoding == "" {
		return "utf-8"
	}
	return encoding
}

func (h *host) writeBlock(path, content, encoding string) error {
	b, err := pycodec.Encode(content, encoding, "strict")
	if err != nil {
		return err
	}
	if backup := h.Value("backup"); backup != any(false) {
		if err := h.copyAside(path, path+pytext.Str(backup), true); err != nil {
			return err
		}
	}
	return h.replaceFile(path, b)
}

// encodingOf implements salt.utils.files.get_encoding. It returns "" if the encoding is unknown.
func (h *host) encodingOf(path string) string {
	if !h.isFile(path) {
		return ""
	}
	b, err := h.head(path, 2048)
	if err != nil {
		return ""
	}
	s := string(b)
	for _, m := range [...]struct{ mark, name string }{
		{"\x00\x00\xfe\xff", "UTF-32-BE"}, {"\xff\xfe\x00\x00", "UTF-32-LE"}, {"\xfe\xff", "UTF-16-BE"}, {"\xff\xfe", "UTF-16-LE"},
		{"\xef\xbb\xbf", "UTF-8"},
	} {
		if strings.HasPrefix(s, m.mark) {
			return m.name
		}
	}
	if _, err := pycodec.UTF8(b); err != nil {
		return ""
	}
	return "UTF-8"
}

// run makes the new lines of the old ones.
func (b *block) run(lines []string) error {
	b.old = lines
	in := false
	for _, l := range lines {
		if b.sep == "" {
			if b.sep = "\n"; strings.HasSuffix(l, "\r\n") {
				b.sep = "\r\n"
			}
		}
		write := true
		if strings.Contains(l, b.start) {
			in = true
		} else if in {
			write = false
			if at := strings.Index(l, b.end); at >= 0 {
				in, b.found = false, true
				b.fresh = append(b.fresh, b.body(l[at:])...)
			}
		}
		if write {
			b.fresh = append(b.fresh, l)
		}
	}
	if b.sep == "" {
		b.sep = "\n"
	}
	if in {
		return modules.Errorf("Unterminated marked block. End of file reached before marker_end.")
	}
	if !b.found {
		if err := b.add(); err != nil {
			return err
		}
	}
	if !b.found {
		return modules.Errorf("Cannot edit marked block. Markers were not found in file.")
	}
	return nil
}

// body returns the lines of the block's content, followed by the end marker's.
func (b *block) body(end string) []string {
	end = strings.TrimRight(end, "\r\n") + b.sep
	var lines []string
	for i, l := range b.content {
		switch {
		case i+1 < len(b.content):
			lines = append(lines, l+b.sep)
		case b.newline:
			lines = append(lines, l+b.sep, end)
		default:
			lines = append(lines, l+end)
		}
	}
	return lines
}

// add inserts the block into a file that does not have it.
func (b *block) add() error {
	whole := append([]string{b.start + b.sep}, b.body(b.end)...)
	switch {
	case b.atTop:
		b.fresh = append(whole, b.fresh...)
	case b.atEnd:
		if n := len(b.fresh); n > 0 && !strings.HasSuffix(b.fresh[n-1], b.sep) {
			b.fresh[n-1] += b.sep
		}
		b.fresh = append(b.fresh, whole...)
	case pytext.Truth(b.before) || pytext.Truth(b.after):
		return b.insert(whole)
	default:
		return modules.Errorf("Cannot edit marked block. Markers were not found in file.")
	}
	b.found = true
	return nil
}

// insert puts the block before or after the first line in which a pattern is found.
func (b *block) insert(whole []string) error {
	pattern, shift := b.before, 0
	if !pytext.Truth(pattern) {
		pattern, shift = b.after, 1
	}
	if len(b.old) == 0 {
		return nil // Python looks at the pattern only when there is a line
	}
	re, err := compileText(pattern.(string), 0)
	if err != nil {
		return err
	}
	for i, l := range b.old {
		loc, err := re.Search(l)
		if err != nil {
			return regexError(err)
		}
		if loc == nil {
			continue
		}
		rest := b.fresh[i+shift:]
		b.fresh = append(append(append([]string(nil), b.fresh[:i+shift]...), whole...), rest...)
		b.found = true
		return nil
	}
	return nil
}
