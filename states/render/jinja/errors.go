package jinja

import (
	"fmt"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// Error is a Python exception that a template raised, with its place.
type Error struct {
	// Kind is the name of Python's exception class: TemplateSyntaxError, UndefinedError, TypeError, KeyError …
	Kind string
	// Msg is str() of the exception, equal to Python's.
	Msg string
	// Line, Name and File are the innermost place in a template: its line, the name by which it was requested, and
	// its path. The main template has the name and path that it was compiled with.
	Line       int
	Name, File string
	// Source is the text of that template.
	Source string
	// Err is the Go error behind it, when a function from outside failed.
	Err error

	// names are the templates that were tried, for a TemplateNotFound.
	names []string
	// placed is set when Line, Name and File are known. Outer templates then do not change them.
	placed bool
}

// Error returns the exception's text, without its class.
func (e *Error) Error() string { return e.Msg }

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.Err }

// raise creates an exception. Without args the format is taken as it is, since messages may hold percent signs.
//
//go:noinline
func raise(kind, format string, args ...any) *Error {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	return &Error{Kind: kind, Msg: format}
}

// typeError creates a TypeError.
//
//go:noinline
func typeError(format string, args ...any) *Error { return raise("TypeError", format, args...) }

// valueError creates a ValueError.
//
//go:noinline
func valueError(format string, args ...any) *Error { return raise("ValueError", format, args...) }

// keyError returns Python's KeyError, whose text is the repr of the key.
//
//go:noinline
func keyError(key any) *Error { return &Error{Kind: "KeyError", Msg: pyobj.Repr(key)} }

// attributeError returns Python's error for a missing attribute.
func attributeError(v any, name string) *Error {
	return raise("AttributeError", "'%s' object has no attribute '%s'", pyobj.TypeName(v), name)
}

// asError returns any Go error as an exception, with Python's class where it is known.
func asError(err error) *Error {
	// Errors of this package, then those of pyobj, then everything else.
	switch err := err.(type) {
	case *Error:
		return err
	case pyobj.TypeError:
		return &Error{Kind: "TypeError", Msg: string(err)}
	}
	return &Error{Kind: "Exception", Msg: err.Error(), Err: err}
}

// isLookup reports whether an error is a TypeError or LookupError, which obj[key] in a template turns into
// undefined.
func (e *Error) isLookup() bool {
	switch e.Kind {
	case "TypeError", "KeyError", "IndexError", "LookupError":
		return true
	}
	return false
}

// quoteAll joins names as Python shows them.
func quoteAll(names []string, sep string) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = pyobj.Repr(n)
	}
	return strings.Join(list, sep)
}
