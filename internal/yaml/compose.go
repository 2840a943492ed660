package yaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// compose parses the document into nodes and mends the places where the grammar package is not libyaml.
func compose(b []byte, name string) (*yamlv3.Node, error) {
	src, restore := escapeSlashes(b)
	root, err := decode(src, name)
	var e *Error
	if errors.As(err, &e) && e.Problem == "found incompatible YAML document" {
		// libyaml takes 1.2 and reads it as 1.1.
		if i := directive12(src); i >= 0 {
			src = bytes.Clone(src)
			src[i+len("%YAML 1.")] = '1'
			root, err = decode(src, name)
		}
	}
	if err != nil {
		return nil, err
	}
	if root != nil {
		if restore != nil {
			restoreSlashes(root, restore)
		}
		if bytes.IndexByte(b, '!') >= 0 {
			markNonSpecific(root, bytes.Split(src, []byte("\n")))
		}
	}
	return root, nil
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

// escapeSlashes rewrites every \/ (an escape of double quoted text that the grammar package does not know) as an escape
// for a private code point. restoreSlashes then finds that code point where the escape was read, and the escape itself
// everywhere else.
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

// markNonSpecific finds scalars with the tag "!", which the grammar package drops: such a scalar is resolved as if it
// were plain, and is text when it is empty.
func markNonSpecific(n *yamlv3.Node, lines [][]byte) {
	if n.Kind == yamlv3.ScalarNode && n.Style&yamlv3.TaggedStyle == 0 && n.Line >= 1 && n.Line <= len(lines) {
		line := string(lines[n.Line-1])
		column := 1
		for _, r := range line {
			if column++; column > n.Column {
				if r == '!' {
					n.Style = yamlv3.TaggedStyle
					if n.Tag = resolve(n.Value); n.Value == "" {
						n.Tag = tagStr
					}
				}
				break
			}
		}
	}
	for _, child := range n.Content {
		markNonSpecific(child, lines)
	}
}

// decode runs the grammar package. It panics on some of its own errors; foreign bytes must never end the process, so
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
		return nil, grammarError(err, b, name)
	}
	var second yamlv3.Node
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, grammarError(err, b, name)
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

// splitProblem takes "yaml: line N: problem" apart; n is 0 without a line.
func splitProblem(err error) (n int, msg string) {
	msg = strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(msg, "line "); ok {
		if number, text, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				return n, text
			}
		}
	}
	return 0, msg
}

// grammarError turns an error of the grammar package into an Error. That package keeps only one place, the beginning
// of what was being read if it can, and counts the lines of parser problems from 0.
func grammarError(err error, b []byte, name string) error {
	line, msg := splitProblem(err)
	e := &Error{Class: "ParserError", Name: name, Line: line + 1, Problem: msg}
	if anchor, ok := strings.CutPrefix(msg, "unknown anchor '"); ok {
		anchor, _, _ = strings.Cut(anchor, "'")
		e.Class, e.Problem = "ComposerError", "found undefined alias"
		if i := bytes.Index(b, []byte("*"+anchor)); i >= 0 {
			e.Line = 1 + bytes.Count(b[:i], []byte("\n"))
			e.Column = i - bytes.LastIndexByte(b[:i], '\n')
		}
		return e
	}
	if context, closing := parserContext(msg); context != "" {
		e.Context = context
		if at := problemLine(b, err.Error(), closing); at > 0 {
			if at != e.Line {
				e.ContextLine = e.Line
			}
			e.Line = at
		}
		return e
	}
	if msg == "did not find expected node content" {
		e.Context = "while parsing a block node"
		if inFlow(b, e.Line) {
			e.Context = "while parsing a flow node"
		}
	}
	if !scannerProblem(msg) {
		return e
	}
	e.Class, e.Line, e.Context = "ScannerError", max(line, 1), scannerContext(msg)
	if msg == "found unexpected end of stream" {
		if end := 1 + bytes.Count(b, []byte("\n")); e.Line != end {
			e.ContextLine, e.Line = e.Line, end
		}
	}
	return e
}

// parserContext gives libyaml's context for a problem of its parser, and what closes the collection.
func parserContext(msg string) (context, closing string) {
	switch msg {
	case "did not find expected key":
		return "while parsing a block mapping", ""
	case "did not find expected '-' indicator":
		return "while parsing a block collection", ""
	case "did not find expected ',' or ']'":
		return "while parsing a flow sequence", "]"
	case "did not find expected ',' or '}'":
		return "while parsing a flow mapping", "}"
	}
	return "", ""
}

// scannerContext gives libyaml's context for a problem of its scanner, "" where it has none or several.
func scannerContext(msg string) string {
	switch msg {
	case "found character that cannot start any token":
		return "while scanning for the next token"
	case "found a tab character that violates indentation":
		return "while scanning a plain scalar"
	case "could not find expected ':'":
		return "while scanning a simple key"
	case "found unexpected end of stream", "found unexpected document indicator":
		return "while scanning a quoted scalar"
	case "found unknown escape character", "did not find expected hexdecimal number":
		return "while parsing a quoted scalar"
	case "did not find expected comment or line break":
		return "while scanning a block scalar"
	case "found unknown directive name", "could not find expected directive name":
		return "while scanning a directive"
	}
	return ""
}

// inFlow guesses whether a flow collection is open at the beginning of a line: more brackets were opened than closed,
// not counting quoted ones.
func inFlow(b []byte, line int) bool {
	open, quote := 0, byte(0)
	for _, c := range b {
		switch {
		case c == '\n':
			if line--; line <= 0 {
				return open > 0
			}
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '[' || c == '{':
			open++
		case c == ']' || c == '}':
			open--
		}
	}
	return open > 0
}

// problemLine finds the line of a problem: the shortest run of lines from the start that shows it, with an open flow
// collection closed. 0 when it cannot be found so. Long documents are left alone, the search reads them again and again.
func problemLine(b []byte, msg, closing string) int {
	if len(b) > 1<<20 {
		return 0
	}
	ends := []int{}
	for i, c := range b {
		if c == '\n' || i == len(b)-1 {
			ends = append(ends, i+1)
		}
	}
	_, problem := splitProblem(errors.New(msg))
	shows := func(lines int) bool {
		var n yamlv3.Node
		err := safeUnmarshal(append(bytes.Clone(b[:ends[lines-1]]), closing...), &n)
		if err == nil {
			return false
		}
		_, p := splitProblem(err)
		return p == problem
	}
	low, high := 0, len(ends)
	if high == 0 || !shows(high) {
		return 0
	}
	for low+1 < high {
		if mid := (low + high) / 2; shows(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

func safeUnmarshal(b []byte, n *yamlv3.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return yamlv3.Unmarshal(b, n)
}

// scannerProblem tells the words of libyaml's scanner from those of its parser.
func scannerProblem(msg string) bool {
	switch msg {
	case "did not find expected node content", "did not find expected <document start>",
		"did not find expected <stream-start>", "found undefined tag handle", "found duplicate %YAML directive",
		"found duplicate %TAG directive", "found incompatible YAML document":
		return false
	}
	for _, start := range []string{"found ", "could not find ", "did not find ", "mapping ", "block ", "exceeded "} {
		if strings.HasPrefix(msg, start) {
			return true
		}
	}
	return false
}
