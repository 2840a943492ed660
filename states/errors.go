package states

import (
	"fmt"

	"github.com/brine-salt/brine/modules"
)

// renderErrorf returns Salt's SaltRenderError: requisites or top files that make no sense. It ends the whole run.
func renderErrorf(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	return &modules.RenderError{Msg: text, Text: text}
}

// crash carries a recovered panic of a state function, which is a bug of the module. Its stack goes into the
// state's comment, where the user can copy it into a report.
type crash struct {
	value any
	stack []byte
}

func (e *crash) Error() string { return fmt.Sprintf("%v\n%s", e.value, e.stack) }

// tracebackText returns the text that an uncaught exception leaves in a state's comment. Stock prints Python's stack
// frames between the two lines; ours has no frames, since its code is different.
func tracebackText(err error) string {
	name, text := exceptionOf(err)
	if text != "" {
		name += ": " + text
	}
	return "Traceback (most recent call last):\n" + name + "\n"
}

// exceptionOf returns the name and the text of the Python exception that corresponds to an error, "Exception" if it
// has no type.
func exceptionOf(err error) (name, text string) {
	name, text = modules.Exception(err)
	if name == "" {
		name = "Exception"
	}
	return name, text
}

// ErrorText returns Python's str() of the exception that an error stands for. A state that catches it shows this
// text.
func ErrorText(err error) string {
	_, text := exceptionOf(err)
	return text
}

// ErrorClass returns the qualified name of the exception's class.
func ErrorClass(err error) string {
	name, _ := exceptionOf(err)
	return name
}
