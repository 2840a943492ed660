package render

import (
	"context"
	"errors"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// textOf returns the input of a renderer that takes text, or an error that names the renderer.
func textOf(in any, name string) (string, error) {
	switch in := in.(type) {
	case string:
		// Markup comes from a template with autoescape.
		return in, nil
	case pyobj.Markup:
		return string(in), nil
	}
	return "", modules.Errorf("cannot render with %s: the renderer before it did not return text", name)
}

// marker points at the line in an excerpt, as in stock.
const marker = "    <======================"

// Excerpt returns a line of a text with five lines before and after it (salt.utils.stringutils.get_context). more
// means that the original continues after text, which is shown as "[...]". If line is outside the text, the result is
// the whole text.
func Excerpt(text string, line int, more bool) string {
	const around = 5
	// Python's splitlines, which also ends lines at form feeds and other separators.
	lines := pytext.SplitLines(text, false)
	if line > len(lines) || line < 1 {
		return text
	}
	start, end := max(0, line-around-1), min(len(lines), line+around)
	var b strings.Builder
	b.WriteString("---\n")
	if start > 0 {
		b.WriteString("[...]\n")
	}
	for i := start; i < end; i++ {
		b.WriteString(lines[i])
		if i == line-1 {
			b.WriteString(marker)
		}
		b.WriteByte('\n')
	}
	if past := line + around - len(lines); past == 1 && more && strings.HasSuffix(text, "\n") {
		b.WriteString("\n[...]\n") // the part that is left out begins with a line end
	} else if end < len(lines) || past == 0 && more {
		b.WriteString("[...]\n")
	}
	return b.String() + "---"
}

// renderYAML reads YAML into OrderedDicts (salt/renderers/yaml.py). An empty document is an empty dict.
func renderYAML(_ context.Context, _ *modules.Call, _ *modules.Template, in any, _ string) (any, error) {
	text, err := textOf(in, "yaml")
	if err != nil {
		return nil, err
	}
	// The name of the stream shows in errors.
	v, err := yaml.ParseObject([]byte(text), "<unicode string>", true)
	var e *yaml.Error
	switch {
	case errors.As(err, &e) && e.Class == "ScannerError":
		msg := e.Problem
		// Stock rewords this error, because tabs are the most frequent mistake.
		if msg == `found character '\t' that cannot start any token` {
			msg = "Illegal tab character"
		}
		// PyYAML's C scanner does not keep the text for an excerpt.
		return nil, &modules.RenderError{Msg: msg, Line: e.Line, Text: msg, Err: err}
	case e != nil && (e.Class == "ComposerError" || e.Class == "ReaderError"):
		// Salt's renderer catches neither of these, nor the Python errors below.
		return nil, &modules.PythonError{Type: "yaml." + strings.ToLower(strings.TrimSuffix(e.Class, "Error")) + "." + e.Class, Msg: e.Error()}
	case e != nil && (e.Class == "ValueError" || e.Class == "KeyError"):
		return nil, &modules.PythonError{Type: e.Class, Msg: e.Problem}
	case err != nil:
		return nil, &modules.RenderError{Msg: err.Error(), Text: err.Error(), Err: err}
	}
	// Every false value is an empty dict: a file with nothing but comments, for example.
	if !pyobj.Truth(v) {
		return &pyobj.Dict{}, nil
	}
	return v, nil
}

// renderJSON reads JSON (salt/renderers/json.py). A shebang line is skipped, since JSON has no comments.
func renderJSON(_ context.Context, _ *modules.Call, _ *modules.Template, in any, _ string) (any, error) {
	text, err := textOf(in, "json")
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(text, "#!") {
		_, text, _ = strings.Cut(text, "\n")
	}
	if strings.TrimSpace(text) == "" {
		return &pyobj.Dict{}, nil
	}
	v, err := pyjson.ParseObject([]byte(text))
	if err != nil {
		return nil, &modules.RenderError{Msg: err.Error(), Text: err.Error(), Err: err}
	}
	return v, nil
}
