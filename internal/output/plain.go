package output

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules/pyobj"
)

// txt implements salt/output/txt.py.
func (r *renderer) txt(v any) string {
	var b strings.Builder
	m, ok := entries(v)
	if !ok {
		if s, ok := v.(string); ok {
			return s + "\n"
		}
		return pytext.Pretty(plain(v), 1) + "\n"
	}
	for _, e := range m {
		key := pytext.Str(e.key)
		switch value := e.value.(type) {
		case string:
			for _, line := range pytext.SplitLines(value, false) {
				b.WriteString(key + ": " + line + "\n")
			}
		case []byte:
			for _, line := range splitByteLines(value) {
				b.WriteString(key + ": " + pytext.Bytes(line) + "\n")
			}
		default:
			b.WriteString(key + ": " + pyobj.Str(pythonic(value)) + "\n")
		}
	}
	return b.String()
}

// splitByteLines implements Python's bytes.splitlines, which splits only at \n, \r and \r\n.
func splitByteLines(b []byte) [][]byte {
	var lines [][]byte
	start := 0
	for i := 0; i < len(b); i++ {
		if b[i] != '\n' && b[i] != '\r' {
			continue
		}
		lines = append(lines, b[start:i])
		if b[i] == '\r' && i+1 < len(b) && b[i+1] == '\n' {
			i++
		}
		start = i + 1
	}
	if start < len(b) {
		lines = append(lines, b[start:])
	}
	return lines
}

// values implements salt/output/newline_values_only.py.
func (r *renderer) values(v any) (string, error) {
	m, ok := entries(v)
	if !ok {
		return "", errShape
	}
	var lines []string
	for _, e := range m {
		if list, ok := items(e.value); ok {
			for _, item := range list {
				lines = append(lines, pyobj.Str(pythonic(item)))
			}
		} else {
			lines = append(lines, pyobj.Str(pythonic(e.value)))
		}
	}
	return strings.Join(lines, "\n"), nil
}

// yaml implements salt/output/yaml_out.py.
func (r *renderer) yaml(v any) (string, error) {
	s := yaml.Style{}
	if r.Indent != nil {
		s.Indent = *r.Indent
		if *r.Indent < 0 {
			s = yaml.Style{Flow: yaml.FlowAll}
		}
	}
	text, err := yaml.MarshalStyle(v, s)
	if err != nil {
		return "", fmt.Errorf("cannot write result: %w", err)
	}
	return text, nil
}

// json implements salt/output/json_out.py over Python's json.dumps(ensure_ascii=False, default=repr).
func (r *renderer) json(v any) (string, error) {
	w := jsonWriter{indent: 4}
	switch {
	case r.Pretty:
	case r.Indent != nil:
		w.indent = *r.Indent
	}
	w.value(v, 0)
	return w.String(), nil
}

type jsonWriter struct {
	strings.Builder
	indent int // negative: everything on one line
}

func (w *jsonWriter) newLine(level int) {
	if w.indent >= 0 {
		w.WriteByte('\n')
		w.WriteString(strings.Repeat(" ", w.indent*level))
	}
}

func (w *jsonWriter) comma(level int) {
	if w.indent < 0 {
		w.WriteString(", ")
		return
	}
	w.WriteByte(',')
	w.newLine(level)
}

func (w *jsonWriter) value(v any, level int) {
	if list, ok := items(v); ok {
		if len(list) == 0 {
			w.WriteString("[]")
			return
		}
		w.WriteByte('[')
		w.newLine(level + 1)
		for i, e := range list {
			if i > 0 {
				w.comma(level + 1)
			}
			w.value(e, level+1)
		}
		w.newLine(level)
		w.WriteByte(']')
		return
	}
	if m, ok := entries(v); ok {
		if len(m) == 0 {
			w.WriteString("{}")
			return
		}
		w.WriteByte('{')
		w.newLine(level + 1)
		for i, e := range m {
			if i > 0 {
				w.comma(level + 1)
			}
			w.key(e.key)
			w.WriteString(": ")
			w.value(e.value, level+1)
		}
		w.newLine(level)
		w.WriteByte('}')
		return
	}
	w.scalar(v)
}

func (w *jsonWriter) key(k any) {
	if s, ok := k.(string); ok {
		w.text(s)
		return
	}
	inner := jsonWriter{indent: -1}
	inner.scalar(k)
	w.text(inner.String())
}

func (w *jsonWriter) scalar(v any) {
	switch v := v.(type) {
	case nil:
		w.WriteString("null")
	case bool:
		w.WriteString(strconv.FormatBool(v))
	case string:
		w.text(v)
	case []byte:
		w.text(pytext.Bytes(v))
	case float64:
		switch s := pytext.Float(v); s {
		case "nan":
			w.WriteString("NaN")
		case "inf":
			w.WriteString("Infinity")
		case "-inf":
			w.WriteString("-Infinity")
		default:
			w.WriteString(s)
		}
	default:
		if isNumber(v) {
			w.WriteString(pytext.Repr(v))
			return
		}
		w.text(pytext.Repr(v))
	}
}

func (w *jsonWriter) text(s string) {
	w.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			w.WriteByte('\\')
			w.WriteRune(r)
		case r == '\n':
			w.WriteString(`\n`)
		case r == '\r':
			w.WriteString(`\r`)
		case r == '\t':
			w.WriteString(`\t`)
		case r == '\f':
			w.WriteString(`\f`)
		case r == '\b':
			w.WriteString(`\b`)
		case r < 0x20:
			fmt.Fprintf(w, `\u%04x`, r)
		default:
			w.WriteRune(r)
		}
	}
	w.WriteByte('"')
}
