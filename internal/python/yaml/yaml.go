// Package yaml parses and formats YAML as stock Salt does. It follows PyYAML's rules of YAML 1.1 with the changes of
// salt/utils/yamlloader.py: octal integers are decimal, dates remain text, duplicate keys are errors, and merge keys
// have other rules. Its output looks like that of salt.utils.yaml.safe_dump.
//
// The scanner and parser are those of go.yaml.in/yaml/v3, a port of libyaml, which Salt uses through PyYAML. Only its
// node tree is used: this package resolves tags, constructs values and applies limits. It does not render templates,
// include files or open files.
package yaml

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of Parse. A short hostile document cannot expand beyond them.
const (
	// MaxInput is the maximum length of a document in bytes.
	MaxInput = 32 << 20
	// MaxDepth is the maximum nesting of sequences and mappings.
	MaxDepth = 400
	// MaxAliased limits the total number of nodes behind all aliases of a document. Nodes in the text itself do not
	// count.
	MaxAliased = 100_000
)

// Error means that a document is invalid. Its text has PyYAML's format: optionally a context with its position, then
// the problem with its position.
type Error struct {
	// Class is the name of PyYAML's exception: ReaderError, ScannerError, ParserError, ComposerError,
	// ConstructorError; or ValueError and KeyError, which Python raises for an invalid number or bool.
	Class string
	// Name is the document's name in errors, often its path.
	Name string
	// Line and Column are the position of the problem, from 1. Column is 0 if unknown; both are 0 for a ReaderError.
	Line, Column int
	// Context describes what was being parsed, or is "" if unknown. ContextLine and ContextColumn are where that
	// began.
	Context                    string
	ContextLine, ContextColumn int
	// Problem describes the error.
	Problem string
	// FirstLine is the line of the first of two duplicate keys, and 0 for other problems. It is not part of the text.
	FirstLine int
}

// Error returns the text of PyYAML's exception.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Context != "" {
		b.WriteString(e.Context)
		if e.ContextLine > 0 && (e.ContextLine != e.Line || e.ContextColumn != e.Column) {
			fmt.Fprintf(&b, "\n  in %q, line %d, column %d", e.Name, e.ContextLine, e.ContextColumn)
		}
		b.WriteByte('\n')
	}
	b.WriteString(e.Problem)
	switch {
	case e.Line == 0:
	case e.Column == 0:
		fmt.Fprintf(&b, "\n  in %q, line %d", e.Name, e.Line)
	default:
		fmt.Fprintf(&b, "\n  in %q, line %d, column %d", e.Name, e.Line, e.Column)
	}
	return b.String()
}

// ErrLimit is wrapped by the errors for documents that exceed MaxInput, MaxDepth or MaxAliased.
var ErrLimit = errors.New("document exceeds a limit")

// Parse parses one document, like salt.utils.yaml.safe_load. name is used in errors. Values are nil, bool, int64,
// uint64 (for larger integers), float64, string, []byte (!!binary), []any, map[string]any, and map[any]any if a key
// is not text. Integers beyond 64 bits become decimal text, as Salt sends them. The value of an empty document is
// nil. An error is an *Error or wraps ErrLimit.
func Parse(b []byte, name string) (any, error) {
	return parse(b, name, forms{})
}

// ParseOrdered is like [Parse], but mappings are payload.OrderedMap.
func ParseOrdered(b []byte, name string) (any, error) {
	return parse(b, name, forms{maps: true})
}

// ParseObject is like [Parse] but returns ordered values: *pyobj.Dict, *pyobj.List, *pyobj.Set for !!set, and
// *big.Int beyond 64 bits. All aliases of a node refer to one object, as in Python. With orderedDict, mappings are
// marked as OrderedDict, like those of state files.
func ParseObject(b []byte, name string, orderedDict bool) (any, error) {
	return parse(b, name, forms{objects: true, orderedDict: orderedDict})
}

// forms selects the types of constructed collections.
type forms struct {
	maps        bool // payload.OrderedMap
	objects     bool // pyobj
	orderedDict bool
	// aliased counts the nodes behind aliases of several documents; nil if there is one.
	aliased *int
}

func parse(b []byte, name string, f forms) (any, error) {
	if err := checkInput(b, name); err != nil {
		return nil, err
	}
	node, err := compose(b, name)
	if err != nil || node == nil {
		return nil, err
	}
	c := &constructor{name: name, forms: f}
	if err := c.survey(node); err != nil {
		return nil, err
	}
	return c.object(node, 0)
}

// checkInput performs the checks of libyaml's reader: the input must be UTF-8 and contain only printable characters.
func checkInput(b []byte, name string) error {
	if len(b) > MaxInput {
		return fmt.Errorf("cannot parse %s: %d bytes exceed %d: %w", name, len(b), MaxInput, ErrLimit)
	}
	for i := 0; i < len(b); {
		c := b[i]
		if c < utf8.RuneSelf {
			if c >= 0x20 && c < 0x7f || c == '\t' || c == '\n' || c == '\r' {
				i++
				continue
			}
			return unacceptable(rune(c), name, i)
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return &Error{Class: "ReaderError", Name: name, Problem: fmt.Sprintf(
				"'utf-8' codec can't decode byte %#02x in position %d: invalid start byte", c, i)}
		}
		ok := r == 0x85 || r >= 0xa0 && r < 0xd800 || r >= 0xe000 && r <= 0xfffd && (r != 0xfeff || i == 0) || r >= 0x10000
		if !ok {
			return unacceptable(r, name, i)
		}
		i += n
	}
	return nil
}

func unacceptable(r rune, name string, position int) error {
	return &Error{Class: "ReaderError", Name: name, Problem: fmt.Sprintf(
		"unacceptable character #x%04x: control characters are not allowed\n  in %q, position %d", r, name, position)}
}
