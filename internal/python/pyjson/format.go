package pyjson

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Options are the arguments of json.dumps.
type Options struct {
	Sort bool
	// Indent is the number of blanks per level, or -1 for one line. IndentText replaces the blanks if it is not empty.
	Indent       int
	IndentText   string
	ASCII        bool
	Comma, Colon string // separators; "" means Python's default
	SkipKeys     bool
	RefuseNaN    bool
	// Default returns a replacement for a value that JSON does not support.
	Default func(v any) (any, error)
	// MaxText limits the length of the output if it is not 0.
	MaxText int
}

// Error is an exception of json.dumps or json.loads.
type Error struct{ Type, Msg string }

func (e *Error) Error() string { return e.Msg }

// Format implements Python's json.dumps for an ordered value (package pyobj) or a plain one.
func Format(v any, o Options) (string, error) {
	w := &writer{o: o}
	if o.IndentText == "" && o.Indent > 0 {
		w.o.IndentText = strings.Repeat(" ", min(o.Indent, 1000))
	}
	w.lines = o.Indent >= 0 || o.IndentText != ""
	if w.o.Colon == "" {
		w.o.Colon = ": "
	}
	if w.o.Comma == "" {
		w.o.Comma = ", "
		if w.lines {
			w.o.Comma = ","
		}
	}
	if err := w.value(v, 0); err != nil {
		return "", err
	}
	return w.b.String(), nil
}

type writer struct {
	b     strings.Builder
	o     Options
	lines bool
}

func (w *writer) newLine(level int) {
	if w.lines {
		w.b.WriteByte('\n')
		for range level {
			w.b.WriteString(w.o.IndentText)
		}
	}
}

func (w *writer) float(f float64) (string, error) {
	if w.o.RefuseNaN && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return "", &Error{"ValueError", "Out of range float values are not JSON compliant"}
	}
	switch {
	case math.IsNaN(f):
		return "NaN", nil
	case math.IsInf(f, 1):
		return "Infinity", nil
	case math.IsInf(f, -1):
		return "-Infinity", nil
	}
	return pytext.Float(f), nil
}

func typeName(v any) string {
	name := pyobj.TypeName(v)
	return name[strings.LastIndexByte(name, '.')+1:]
}

func (w *writer) value(v any, level int) error {
	if level > 900 {
		return &Error{"RecursionError", "maximum recursion depth exceeded while encoding a JSON object"}
	}
	if w.o.MaxText > 0 && w.b.Len() > w.o.MaxText {
		return &Error{"MemoryError", fmt.Sprintf("text of more than %d bytes", w.o.MaxText)}
	}
	switch v := pyobj.From(v).(type) {
	case nil:
		w.b.WriteString("null")
	case bool:
		if v {
			w.b.WriteString("true")
		} else {
			w.b.WriteString("false")
		}
	case string:
		w.text(v)
	case pyobj.Markup:
		w.text(string(v))
	case int64, *big.Int:
		w.b.WriteString(pyobj.Str(v))
	case float64:
		s, err := w.float(v)
		if err != nil {
			return err
		}
		w.b.WriteString(s)
	case *pyobj.List:
		return w.list(v.Items, level)
	case pyobj.Tuple:
		return w.list(v, level)
	case *pyobj.Dict:
		return w.dict(v, level)
	default:
		if w.o.Default == nil {
			return &Error{"TypeError", "Object of type " + typeName(v) + " is not JSON serializable"}
		}
		x, err := w.o.Default(v)
		if err != nil {
			return err
		}
		return w.value(x, level+1)
	}
	return nil
}

func (w *writer) list(items []any, level int) error {
	if len(items) == 0 {
		w.b.WriteString("[]")
		return nil
	}
	w.b.WriteByte('[')
	for i, x := range items {
		if i > 0 {
			w.b.WriteString(w.o.Comma)
		}
		w.newLine(level + 1)
		if err := w.value(x, level+1); err != nil {
			return err
		}
	}
	w.newLine(level)
	w.b.WriteByte(']')
	return nil
}

// sorted returns the keys in Python's order, or an error if Python cannot compare them.
func sorted(keys []any) ([]any, error) {
	kind := func(k any) string {
		switch k.(type) {
		case string, pyobj.Markup:
			return "str"
		case bool, int64, float64, *big.Int:
			return "number"
		}
		return ""
	}
	for i := 1; i < len(keys); i++ {
		if a, b := kind(keys[i-1]), kind(keys[i]); a == "" || a != b {
			return nil, &Error{"TypeError", fmt.Sprintf("'<' not supported between instances of '%s' and '%s'", pyobj.TypeName(keys[i]), pyobj.TypeName(keys[i-1]))}
		}
	}
	sort.SliceStable(keys, func(i, j int) bool { return pytext.Less(pyobj.Plain(keys[i]), pyobj.Plain(keys[j])) })
	return keys, nil
}

var errSkip = errors.New("no key")

// key returns the JSON text for a key.
func (w *writer) key(k any) (string, error) {
	switch k := k.(type) {
	case string:
		return k, nil
	case pyobj.Markup:
		return string(k), nil
	case nil:
		return "null", nil
	case bool:
		if k {
			return "true", nil
		}
		return "false", nil
	case int64, *big.Int:
		return pyobj.Str(k), nil
	case float64:
		return w.float(k)
	}
	if w.o.SkipKeys {
		return "", errSkip
	}
	return "", &Error{"TypeError", "keys must be str, int, float, bool or None, not " + typeName(k)}
}

func (w *writer) dict(d *pyobj.Dict, level int) error {
	keys := d.Keys()
	if w.o.Sort {
		var err error
		if keys, err = sorted(keys); err != nil {
			return err
		}
	}
	first := true
	for _, k := range keys {
		name, err := w.key(k)
		if err == errSkip {
			continue
		}
		if err != nil {
			return err
		}
		if first {
			w.b.WriteByte('{')
		} else {
			w.b.WriteString(w.o.Comma)
		}
		first = false
		w.newLine(level + 1)
		w.text(name)
		w.b.WriteString(w.o.Colon)
		if err := w.value(d.Value(k), level+1); err != nil {
			return err
		}
	}
	if first {
		w.b.WriteString("{}")
		return nil
	}
	w.newLine(level)
	w.b.WriteByte('}')
	return nil
}

func (w *writer) text(s string) {
	b := &w.b
	b.WriteByte('"')
	for i, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\b':
			b.WriteString(`\b`)
		case c == '\f':
			b.WriteString(`\f`)
		case c < ' ' || c > 0x7f && w.o.ASCII && c <= 0xffff:
			if c == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
				fmt.Fprintf(b, `\udc%02x`, s[i])
				break
			}
			fmt.Fprintf(b, `\u%04x`, c)
		case c > 0xffff && w.o.ASCII:
			c -= 0x10000
			fmt.Fprintf(b, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
}
