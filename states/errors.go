package states

import (
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

// exception is the Python exception that an error stands for; one of no special kind is an Exception.
func exception(err error) (name, text string) {
	name, text = modules.Exception(err)
	if name == "" {
		name = "Exception"
	}
	return name, text
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
