package states

import (
	"errors"
	"fmt"

	"github.com/brine-salt/brine/modules"
)

// renderErrorf makes Salt's SaltRenderError: requisites or top files that make no sense. It ends the whole run.
func renderErrorf(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	return &modules.RenderError{Msg: text, Text: text}
}

// crash carries a recovered panic of a state function, which is a bug of the module.
type crash struct {
	value any
	stack []byte
}

func (e *crash) Error() string { return fmt.Sprintf("%v\n%s", e.value, e.stack) }

// traceback is what an exception leaves in a state's comment. Stock has Python's frames between the lines.
func traceback(err error) string {
	name, text := exception(err)
	if text != "" {
		name += ": " + text
	}
	return "Traceback (most recent call last):\n" + name + "\n"
}

// exception is the qualified name and the text of the Python exception that an error stands for.
func exception(err error) (name, text string) {
	var (
		exec    *modules.ExecError
		usage   *modules.UsageError
		typ     *modules.TypeError
		missing *modules.MissingCommandError
		absent  *modules.NotAvailableError
		python  *modules.PythonError
		render  *modules.RenderError
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
	case errors.As(err, &python) && python.Type == "error":
		return "re.error", python.Msg
	case errors.As(err, &python) && python.Type == "Error":
		return "binascii.Error", python.Msg
	case errors.As(err, &python):
		return python.Type, python.Msg
	case errors.As(err, &missing):
		return "salt.exceptions.CommandNotFoundError", err.Error()
	case errors.As(err, &render):
		return "salt.exceptions.SaltRenderError", err.Error()
	}
	return "Exception", err.Error()
}

// ErrorText is Python's str() of the exception that an error stands for: what a state shows that catches it.
func ErrorText(err error) string {
	_, text := exception(err)
	return text
}

// ErrorClass is the qualified name of that exception's class.
func ErrorClass(err error) string {
	name, _ := exception(err)
	return name
}
