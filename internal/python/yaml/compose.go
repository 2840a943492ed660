package yaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
)

// compose parses the document into nodes and corrects the grammar package where it differs from libyaml.
func compose(b []byte, name string) (*yamlv3.Node, error) {
	src, restore := escapeSlashes(b)
	root, err := decode(src, name)
	var e *Error
	if errors.As(err, &e) && e.Problem == "found incompatible YAML document" {
		// libyaml accepts 1.2 and treats it as 1.1.
		if i := directive12(src); i >= 0 {
			src = bytes.Clone(src)
			src[i+len("%YAML 1.")] = '1'
			root, err = decode(src, name)
		}
	}
	if err != nil {
		return nil, earlier(src, name, err)
	}
	if root != nil {
		if restore != nil {
			restoreSlashes(root, restore)
		}
		if bytes.IndexByte(b, '!') >= 0 {
			(&marker{lines: bytes.Split(src, []byte("\n"))}).markNonSpecific(root)
		}
	}
	return root, nil
}

// earlier returns the error that libyaml reports first. The grammar package looks further ahead for comments, and
// checks anchors only at the end: the text before its error may contain another error.
func earlier(b []byte, name string, err error) error {
	var e, before *Error
	if !errors.As(err, &e) || e.Line == 0 {
		return err
	}
	line, column := e.Line, e.Column
	if e.Class == "ScannerError" && e.ContextLine > 0 {
		line, column = e.ContextLine, e.ContextColumn // where the token begins
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	if line > len(lines) {
		return err
	}
	last := []rune(string(lines[line-1]))
	head := append(bytes.Join(lines[:line-1], nil), string(last[:min(max(column-1, 0), len(last))])...)
	root, wrong := decode(head, name)
	if wrong == nil && root != nil {
		wrong = (&constructor{name: name}).survey(root)
	}
	if errors.As(wrong, &before) && before.Class != "ScannerError" && (before.Line < line || before.Line == line && before.Column < column) {
		return wrong
	}
	return err
}

func directive12(b []byte) int {
	d := []byte("%YAML 1.2")
	if bytes.HasPrefix(b, d) {
		return 0
	}
	if i := bytes.Index(b, append([]byte("\n"), d...)); i >= 0 {
		return i + 1
	}
	return -1
}

// escapeSlashes replaces every \/ by an escape for a private code point: the grammar package does not support this
// escape in double-quoted text. The returned Replacer undoes this: it replaces the code point where the escape was
// parsed, and the escape elsewhere.
func escapeSlashes(b []byte) ([]byte, *strings.Replacer) {
	if !bytes.Contains(b, []byte(`\/`)) {
		return b, nil
	}
	r := rune(0xf5a0)
	for bytes.ContainsRune(b, r) || bytes.Contains(bytes.ToUpper(b), fmt.Appendf(nil, `\U%04X`, r)) {
		r++
	}
	escape := fmt.Sprintf(`\u%04x`, r)
	out := make([]byte, 0, len(b)+64)
	for i := 0; i < len(b); i++ {
		if b[i] == '\\' && i+1 < len(b) {
			if b[i+1] == '/' {
				out = append(out, escape...)
			} else {
				out = append(out, b[i], b[i+1])
			}
			i++
			continue
		}
		out = append(out, b[i])
	}
	return out, strings.NewReplacer(string(r), "/", escape, `\/`)
}

func restoreSlashes(n *yamlv3.Node, r *strings.Replacer) {
	if n.Kind == yamlv3.ScalarNode {
		n.Value = r.Replace(n.Value)
	}
	for _, child := range n.Content {
		restoreSlashes(child, r)
	}
}

// marker finds scalars with the tag "!", which the grammar package drops. Such a scalar is resolved as if it were
// plain, but an empty one is text. Nodes come in the order of the text, so the marker remembers a place in its line:
// with a search from the beginning of the line for each node, a line of 64 KiB took seconds.
type marker struct {
	lines [][]byte
	// The character number column of a line, both from 1, begins at the byte at.
	line, column, at int
}

func (m *marker) markNonSpecific(n *yamlv3.Node) {
	if n.Kind == yamlv3.ScalarNode && n.Style&yamlv3.TaggedStyle == 0 && n.Line >= 1 && n.Line <= len(m.lines) {
		if m.charAt(n.Line, n.Column) == '!' {
			n.Style = yamlv3.TaggedStyle
			if n.Tag = resolve(n.Value); n.Value == "" {
				n.Tag = tagStr
			}
		}
	}
	for _, child := range n.Content {
		m.markNonSpecific(child)
	}
}

// charAt returns a character of the text, or utf8.RuneError beyond the end of the line.
func (m *marker) charAt(line, column int) rune {
	if line != m.line || column < m.column {
		m.line, m.column, m.at = line, 1, 0
	}
	text := m.lines[line-1]
	for m.column < column && m.at < len(text) {
		_, size := utf8.DecodeRune(text[m.at:])
		m.column, m.at = m.column+1, m.at+size
	}
	r, _ := utf8.DecodeRune(text[m.at:])
	return r
}

// decode runs the grammar package, which panics for some of its errors. Hostile input must never end the process, so
// every panic becomes an error.
func decode(b []byte, name string) (node *yamlv3.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			node, err = nil, &Error{Class: "ParserError", Name: name, Line: 1, Problem: fmt.Sprint(r)}
		}
	}()
	dec := yamlv3.NewDecoder(bytes.NewReader(b))
	var doc yamlv3.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, grammarError(err, dec, name)
	}
	var second yamlv3.Node
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, grammarError(err, dec, name)
	default:
		e := &Error{Class: "ComposerError", Name: name, Line: second.Line, Column: 1,
			Context: "expected a single document in the stream", Problem: "but found another document"}
		if len(doc.Content) > 0 {
			e.ContextLine, e.ContextColumn = doc.Content[0].Line, doc.Content[0].Column
		}
		return nil, e
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	return doc.Content[0], nil
}
