package modules

import (
	"errors"
	"fmt"
	"strings"
)

// ExecError means that the function failed. It is Salt's CommandExecutionError, shown as "ERROR: <text>".
type ExecError struct {
	Msg string
	// Info is the content of the exception's info, for callers that read it: the changes made before the failure. The
	// text includes it; Brief is the text without it.
	Info  any
	Brief string
}

func (e *ExecError) Error() string { return e.Msg }

// Errorf returns an [ExecError] with a formatted text.
func Errorf(format string, args ...any) error { return &ExecError{Msg: fmt.Sprintf(format, args...)} }

// IsExecError reports whether an error is or wraps an [ExecError], so that "except CommandExecutionError" would catch
// it in Salt.
func IsExecError(err error) bool {
	var e *ExecError
	return errors.As(err, &e)
}

// UsageError means that the arguments are invalid. It is Salt's SaltInvocationError, shown as "ERROR executing '<fun>':
// <text>".
type UsageError struct {
	Msg string
	// Early means that the function was not called. salt-call does not show its documentation then.
	Early bool
}

func (e *UsageError) Error() string { return e.Msg }

// Usagef returns a [UsageError] with a formatted text.
func Usagef(format string, args ...any) error { return &UsageError{Msg: fmt.Sprintf(format, args...)} }

// TypeError means that the arguments do not fit the function's parameters. It is Python's TypeError, shown as "Passed
// invalid arguments to <fun>: <text>" with the function's documentation.
type TypeError struct{ Msg string }

func (e *TypeError) Error() string { return e.Msg }

// MissingCommandError means that a required program is not installed. It is Salt's CommandNotFoundError.
type MissingCommandError struct{ Command string }

func (e *MissingCommandError) Error() string { return e.Command }

// IsCommandError reports whether a program failed or is not installed, so that "except (CommandNotFoundError,
// CommandExecutionError)" would catch the error in Salt.
func IsCommandError(err error) bool {
	var e *MissingCommandError
	return IsExecError(err) || errors.As(err, &e)
}

// PythonError is an error that stock Salt raises as some other Python exception and shows with a traceback.
type PythonError struct{ Type, Msg string }

func (e *PythonError) Error() string { return e.Type + ": " + e.Msg }

// Answer converts the two results of a Go function to those of a module function, which returns nil with an error.
func Answer[T any](v T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// AnswerList is like Answer for a list of texts. It converts the list to []any, the form in which Salt values hold
// lists.
func AnswerList(list []string, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out, nil
}

// NoAttribute returns the AttributeError that stock raises for a value of an unexpected type, which lacks the method
// name.
func NoAttribute(v any, name string) error {
	return &PythonError{Type: "AttributeError", Msg: "'" + TypeName(v) + "' object has no attribute '" + name + "'"}
}

// Text returns v as a text, or the AttributeError that stock raises where it calls this method of a text on it.
func Text(v any, method string) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	return "", NoAttribute(v, method)
}

// IndexError returns the exception that stock raises if a program prints fewer words or lines than expected.
func IndexError() error { return &PythonError{Type: "IndexError", Msg: "list index out of range"} }

// ExceptionText returns the text of the Python exception that corresponds to an error.
func ExceptionText(err error) string {
	_, text := Exception(err)
	return text
}

// Exception returns the qualified name and the text of the Python exception that corresponds to an error. The name is
// empty if no Python exception corresponds.
func Exception(err error) (name, text string) {
	var (
		exec    *ExecError
		usage   *UsageError
		typ     *TypeError
		missing *MissingCommandError
		absent  *NotAvailableError
		python  *PythonError
		render  *RenderError
	)
	switch {
	case errors.As(err, &absent):
		return "KeyError", "'" + absent.Fun + "'"
	case errors.As(err, &exec):
		return "salt.exceptions.CommandExecutionError", err.Error()
	case errors.As(err, &usage):
		return "salt.exceptions.SaltInvocationError", err.Error()
	case errors.As(err, &typ):
		return "TypeError", err.Error()
	case errors.As(err, &python):
		switch python.Type {
		case "error":
			return "re.error", python.Msg
		case "Error":
			return "binascii.Error", python.Msg
		}
		if strings.HasPrefix(python.Type, "Salt") || python.Type == "TimedProcTimeoutError" || python.Type == "MinionError" {
			return "salt.exceptions." + python.Type, python.Msg
		}
		return python.Type, python.Msg
	case errors.As(err, &missing):
		return "salt.exceptions.CommandNotFoundError", err.Error()
	case errors.As(err, &render):
		return "salt.exceptions.SaltRenderError", err.Error()
	}
	return "", err.Error()
}

// ExitError is an error with a specific return code: that of a failed program. Its text is that of the wrapped error.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *ExitError) Unwrap() error { return e.Err }

// ErrEngine is the error of [Call.Render] for a template engine that the program does not have.
var ErrEngine = errors.New("no such template engine")

// NotAvailableError means that a function does not exist on this minion.
type NotAvailableError struct {
	Fun string
	// Virtual is the reason why the module does not support this host, or "" if there is no such module.
	Virtual string
}

// Error returns Salt's text for a missing function (salt/loader/lazy.py missing_fun_string).
func (e *NotAvailableError) Error() string {
	if e.Virtual != "" {
		return e.Virtual
	}
	return fmt.Sprintf("'%s' is not available.", e.Fun)
}

// errorText returns the text that a failed call returns to the master (salt/minion.py _thread_return). help returns
// the documentation of the function.
func errorText(fun string, help func() string, err error) string {
	var (
		exec    *ExecError
		usage   *UsageError
		typ     *TypeError
		missing *MissingCommandError
		absent  *NotAvailableError
		crash   *panicError
	)
	switch {
	case errors.As(err, &absent):
		return absent.Error()
	case errors.As(err, &missing):
		return fmt.Sprintf("Command required for '%s' not found: %s", fun, missing)
	case errors.As(err, &exec):
		return "ERROR: " + err.Error()
	case errors.As(err, &usage):
		return fmt.Sprintf("ERROR executing '%s': %s", fun, err)
	case errors.As(err, &typ):
		return fmt.Sprintf("Passed invalid arguments to %s: %s\n%s", fun, err, help())
	case errors.As(err, &crash):
		return fmt.Sprintf("The minion function caused an exception: %s\n%s", crash.value, crash.stack)
	}
	return "The minion function caused an exception: " + err.Error()
}

// panicError carries a recovered panic of a function.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprint(e.value) }

// Panicked reports whether the error of a [Result] is a panic of the function, which is a bug of the module.
func Panicked(err error) bool {
	var crash *panicError
	return errors.As(err, &crash)
}
