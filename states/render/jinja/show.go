package jinja

import (
	"math"
	"math/big"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/pytext"
)

// JSONOptions are the arguments of json.dumps.
type JSONOptions struct {
	Sort bool
	// Indent is the number of blanks per level, or -1 for one line. IndentText is used in their place if it is not empty.
	Indent       int
	IndentText   string
	ASCII        bool
	Comma, Colon string // separators, "" for Python's
	SkipKeys     bool
	RefuseNaN    bool
}

// JSON is Python's json.dumps.
func JSON(v any, o JSONOptions) (string, error) {
	w := &jsonWriter{o: o}
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

type jsonWriter struct {
	b     strings.Builder
	o     JSONOptions
	lines bool
}

func (w *jsonWriter) newLine(level int) {
	if w.lines {
		w.b.WriteByte('\n')
		for range level {
			w.b.WriteString(w.o.IndentText)
		}
	}
}

func (w *jsonWriter) float(f float64) (string, error) {
	if w.o.RefuseNaN && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return "", valueError("Out of range float values are not JSON compliant")
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

func (w *jsonWriter) value(v any, level int) error {
	if level > 900 {
		return raise("RecursionError", "maximum recursion depth exceeded while encoding a JSON object")
	}
	if w.b.Len() > maxText {
		return tooLong()
	}
	switch v := v.(type) {
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
	case *group2:
		return w.list(v.t, level)
	case *pyobj.Dict:
		return w.dict(v, level)
	default:
		return typeError("Object of type %s is not JSON serializable", shortType(v))
	}
	return nil
}

func (w *jsonWriter) list(items []any, level int) error {
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

func (w *jsonWriter) dict(d *pyobj.Dict, level int) error {
	keys := d.Keys()
	if w.o.Sort {
		var err error
		if keys, err = sortItems(keys, nil, false); err != nil {
			return err
		}
	}
	first := true
	for _, k := range keys {
		var name string
		switch x := k.(type) {
		case string:
			name = x
		case pyobj.Markup:
			name = string(x)
		case nil:
			name = "null"
		case bool:
			name = "false"
			if x {
				name = "true"
			}
		case int64, *big.Int:
			name = pyobj.Str(x)
		case float64:
			var err error
			if name, err = w.float(x); err != nil {
				return err
			}
		default:
			if w.o.SkipKeys {
				continue
			}
			return typeError("keys must be str, int, float, bool or None, not %s", shortType(k))
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

func (w *jsonWriter) text(s string) {
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
		case c < ' ' || c > 0x7e && w.o.ASCII && c <= 0xffff:
			if c == 0x7f {
				b.WriteRune(c)
				break
			}
			if c == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
				b.WriteString(`\udc` + hexPad(rune(s[i]), 2))
				break
			}
			b.WriteString(`\u` + hexPad(c, 4))
		case c > 0xffff && w.o.ASCII:
			c -= 0x10000
			b.WriteString(`\u` + hexPad(0xd800+c>>10, 4) + `\u` + hexPad(0xdc00+c&0x3ff, 4))
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
}

// filterToJSON is Jinja's tojson, which is safe inside of HTML.
func filterToJSON(_ *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_tojson", []string{"indent"}, nil)
	if err != nil {
		return nil, err
	}
	o := JSONOptions{Sort: true, ASCII: true}
	if err := o.SetIndent(args[0]); err != nil {
		return nil, err
	}
	s, err := JSON(v, o)
	return pyobj.Markup(HTMLSafe(s)), err
}

// SetIndent takes json.dumps' argument indent.
func (o *JSONOptions) SetIndent(v any) error {
	o.Indent = -1
	if v == nil {
		return nil
	}
	if s, ok := isText(v); ok {
		o.IndentText, o.Indent = s, 0
		return nil
	}
	n, err := index(v)
	o.Indent = min(max(n, 0), 1000)
	return err
}

// HTMLSafe escapes JSON as Jinja does.
func HTMLSafe(s string) string {
	return strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`, "'", `\u0027`).Replace(s)
}

// Pretty is Python's pprint.pformat.
func Pretty(v any) string {
	p := &printer{}
	p.format(v, 0, 0, 0)
	return p.b.String()
}

type printer struct {
	b     strings.Builder
	depth int
}

const prettyWidth = 80

// sortedRepr is pprint's repr: dicts are sorted at every depth.
func sortedRepr(v any) string {
	return pyobj.Repr(sortedCopy(v, 0))
}

func sortedCopy(v any, depth int) any {
	if depth > 200 {
		return v
	}
	switch v := v.(type) {
	case *pyobj.Dict:
		if v.Ordered {
			return v
		}
		out := &pyobj.Dict{}
		for _, k := range safeSort(v.Keys()) {
			_ = out.Set(k, sortedCopy(v.Value(k), depth+1))
		}
		return out
	case *pyobj.List:
		out := &pyobj.List{Items: make([]any, len(v.Items))}
		for i, x := range v.Items {
			out.Items[i] = sortedCopy(x, depth+1)
		}
		return out
	case pyobj.Tuple:
		out := make(pyobj.Tuple, len(v))
		for i, x := range v {
			out[i] = sortedCopy(x, depth+1)
		}
		return out
	}
	return v
}

// safeSort sorts keys; those that Python cannot compare are sorted by the names of their types.
func safeSort(keys []any) []any {
	sort.SliceStable(keys, func(i, j int) bool {
		c, ok, _ := cmpValues(keys[i], keys[j])
		if ok {
			return c < 0
		}
		return "<class '"+pyobj.TypeName(keys[i])+"'>" < "<class '"+pyobj.TypeName(keys[j])+"'>"
	})
	return keys
}

func (p *printer) format(v any, indent, allowance, level int) {
	rep := sortedRepr(v)
	if runes(rep) <= prettyWidth-indent-allowance || p.depth > 200 {
		p.b.WriteString(rep)
		return
	}
	p.depth++
	defer func() { p.depth-- }()
	switch v := v.(type) {
	case *pyobj.Dict:
		if v.Ordered {
			p.ordered(v, indent, allowance, level+1)
			return
		}
		p.b.WriteByte('{')
		p.dict(v, indent, allowance+1, level+1)
		p.b.WriteByte('}')
	case *pyobj.List:
		p.b.WriteByte('[')
		p.items(v.Items, indent, allowance+1, level+1)
		p.b.WriteByte(']')
	case pyobj.Tuple:
		end := ")"
		if len(v) == 1 {
			end = ",)"
		}
		p.b.WriteByte('(')
		p.items(v, indent, allowance+len(end), level+1)
		p.b.WriteString(end)
	case *pyobj.Set:
		items := safeSort(v.Items())
		open, end := "{", "}"
		if v.Frozen {
			open, end = "frozenset({", "})"
			indent += len("frozenset(")
		}
		p.b.WriteString(open)
		p.items(items, indent, allowance+len(end), level+1)
		p.b.WriteString(end)
	case string:
		p.b.WriteString(pytext.PrettyText(v, indent, allowance, level+1))
	default:
		p.b.WriteString(rep)
	}
}

func (p *printer) line(indent int) { p.b.WriteString(",\n" + strings.Repeat(" ", indent)) }

func (p *printer) items(items []any, indent, allowance, level int) {
	indent++
	for i, x := range items {
		after := 1
		if i > 0 {
			p.line(indent)
		}
		if i == len(items)-1 {
			after = allowance
		}
		p.format(x, indent, after, level)
	}
}

func (p *printer) dict(d *pyobj.Dict, indent, allowance, level int) {
	indent++
	keys := safeSort(d.Keys())
	for i, k := range keys {
		if i > 0 {
			p.line(indent)
		}
		after := 1
		if i == len(keys)-1 {
			after = allowance
		}
		rep := sortedRepr(k)
		p.b.WriteString(rep + ": ")
		p.format(d.Value(k), indent+runes(rep)+2, after, level)
	}
}

// ordered is an OrderedDict that does not fit on a line.
func (p *printer) ordered(d *pyobj.Dict, indent, allowance, level int) {
	const name = "OrderedDict"
	if d.Len() == 0 {
		p.b.WriteString(pyobj.Repr(d))
		return
	}
	p.b.WriteString(name + "([")
	pairs := (&view{d, "items"}).items()
	indent += len(name) + 1
	allowance += 2
	inner := indent + 1
	for i, x := range pairs {
		if i > 0 {
			p.line(inner)
		}
		after := 1
		if i == len(pairs)-1 {
			after = allowance
		}
		p.format(x, inner, after, level)
	}
	p.b.WriteString("])")
}
