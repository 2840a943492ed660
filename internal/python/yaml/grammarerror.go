package yaml

import (
	"reflect"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// grammarError converts an error of the grammar package to an Error. The package's error text only has a line number,
// which is not always right. Its parser, like libyaml's, has the context, the problem and both positions in
// unexported fields, which this function reads by reflection. If another version of the package lacks them, it uses
// the text only.
func grammarError(err error, dec *yamlv3.Decoder, name string) error {
	e := &Error{Class: "ParserError", Name: name, Line: 1, Problem: problemText(err)}
	p := field(reflect.ValueOf(dec).Elem(), "parser")
	grammar := field(p, "parser")
	if strings.HasPrefix(e.Problem, "unknown anchor '") {
		e.Class, e.Problem = "ComposerError", "found undefined alias"
		e.Line, e.Column = mark(field(field(p, "event"), "start_mark"))
		return e
	}
	problem := field(grammar, "problem")
	if !problem.IsValid() || problem.String() != e.Problem {
		return e
	}
	if kind := field(grammar, "error"); kind.IsValid() && kind.Int() == scannerError {
		e.Class = "ScannerError"
	}
	e.Line, e.Column = mark(field(grammar, "problem_mark"))
	if e.Context = field(grammar, "context").String(); e.Context != "" {
		e.ContextLine, e.ContextColumn = mark(field(grammar, "context_mark"))
	}
	return e
}

// scannerError is libyaml's YAML_SCANNER_ERROR.
const scannerError = 3

// problemText returns the text of the grammar package's error without its line number.
func problemText(err error) string {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(msg, "line "); ok {
		if _, text, ok := strings.Cut(rest, ": "); ok {
			return text
		}
	}
	return msg
}

// field returns a field of a struct or of the struct that a pointer points to, or the zero Value if there is no such
// field.
func field(v reflect.Value, name string) reflect.Value {
	if v.IsValid() && v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() || v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.FieldByName(name)
}

// mark returns the line and column of one of libyaml's positions, counted from 1.
func mark(v reflect.Value) (line, column int) {
	l, c := field(v, "line"), field(v, "column")
	if !l.IsValid() || !c.IsValid() {
		return 1, 0
	}
	return int(l.Int()) + 1, int(c.Int()) + 1
}
