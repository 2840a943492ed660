package jinja

import (
	"fmt"
	"strings"

	"github.com/brine-salt/brine/internal/pyobj"
)

// Error is an exception that a template raised.
type Error struct {
	// Kind is the name of Python's exception class: TemplateSyntaxError, UndefinedError, TypeError, KeyError …
	Kind string
	// Msg is str() of the exception.
	Msg string
	// Line, Name and File are the innermost place in a template: its line, its name as it was asked for and its path. The
	// main template has the name and path that it was compiled with.
	Line       int
	Name, File string
	// Source is the text of that template.
	Source string
	// Err is the cause, when a function from outside failed.
	Err error

	// names are the templates that were tried, of a TemplateNotFound.
	names []string
	// obj is the value of a KeyError.
	placed bool
}

func (e *Error) Error() string { return e.Msg }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

func raise(kind, format string, args ...any) *Error {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	return &Error{Kind: kind, Msg: format}
}

func typeError(format string, args ...any) *Error  { return raise("TypeError", format, args...) }
func valueError(format string, args ...any) *Error { return raise("ValueError", format, args...) }

// keyError is Python's KeyError, whose text is the repr of the key.
func keyError(key any) *Error { return &Error{Kind: "KeyError", Msg: pyobj.Repr(key)} }

func attributeError(v any, name string) *Error {
	return raise("AttributeError", "'%s' object has no attribute '%s'", pyobj.TypeName(v), name)
}

// as gives an error of Go the shape of an exception.
func as(err error) *Error {
	switch err := err.(type) {
	case *Error:
		return err
	case pyobj.TypeError:
		return &Error{Kind: "TypeError", Msg: string(err)}
	}
	return &Error{Kind: "Exception", Msg: err.Error(), Err: err}
}

// lookup tells whether an error is a TypeError or LookupError, which obj[key] in a template turns into undefined.
func (e *Error) lookup() bool {
	switch e.Kind {
	case "TypeError", "KeyError", "IndexError", "LookupError":
		return true
	}
	return false
}

func quoteAll(names []string, sep string) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = pyobj.Repr(n)
	}
	return strings.Join(list, sep)
}
