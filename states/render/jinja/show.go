package jinja

import (
	"errors"
	"sort"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
)

// JSON implements Python's json.dumps within [MaxText]. It fails with TypeError for values that JSON does not have.
func JSON(v any, o pyjson.Options) (string, error) {
	o.MaxText = MaxText
	o.Default = func(v any) (any, error) {
		if g, ok := v.(*group2); ok {
			return g.t, nil
		}
		return nil, typeError("Object of type %s is not JSON serializable", shortType(v))
	}
	s, err := pyjson.Format(v, o)
	var e *pyjson.Error
	if errors.As(err, &e) {
		return "", &Error{Kind: e.Type, Msg: e.Msg}
	}
	return s, err
}

// filterToJSON implements Jinja's tojson, whose text is safe inside of HTML.
func filterToJSON(_ *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_tojson", []string{"indent"}, nil)
	if err != nil {
		return nil, err
	}
	o := pyjson.Options{Sort: true, ASCII: true}
	if err := SetIndent(&o, args[0]); err != nil {
		return nil, err
	}
	s, err := JSON(v, o)
	return pyobj.Markup(HTMLSafe(s)), err
}

// SetIndent sets o's indent from json.dumps' argument of that name: None, a text, or a number of blanks up to
// 1,000.
func SetIndent(o *pyjson.Options, v any) error {
	o.Indent = -1
	if v == nil {
		return nil
	}
	if s, ok := isText(v); ok {
		o.IndentText, o.Indent = s, 0
		return nil
	}
	n, err := toIndex(v)
	o.Indent = min(max(n, 0), 1000)
	return err
}

// HTMLSafe escapes JSON as Jinja does, so that it can stand inside of a script element.
func HTMLSafe(s string) string {
	return strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`, "'", `\u0027`).Replace(s)
}

// Pretty implements Python's pprint.pformat, with its width of 80.
func Pretty(v any) string {
	p := &printer{}
	p.format(v, 0, 0, 0)
	return p.b.String()
}

// printer is one call of pprint.
type printer struct {
	b     strings.Builder
	depth int
}

const prettyWidth = 80

// sortedRepr returns pprint's repr, in which dicts are sorted at every depth.
func sortedRepr(v any) string {
	return pyobj.Repr(sortedCopy(v, 0))
}

// sortedCopy copies a value with its dicts sorted. Below 200 levels it stops, as a value may contain itself.
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

// safeSort sorts keys in place. Keys that Python cannot compare are sorted by the names of their types (pprint's
// _safe_key).
func safeSort(keys []any) []any {
	// For keys that cannot be compared, pprint compares the texts of their types.
	sort.SliceStable(keys, func(i, j int) bool {
		a, b := keys[i], keys[j]
		c, ok, _ := cmpValues(&a, &b)
		if ok {
			return c < 0
		}
		return "<class '"+pyobj.TypeName(keys[i])+"'>" < "<class '"+pyobj.TypeName(keys[j])+"'>"
	})
	return keys
}

// format writes a value. indent is the column where it begins, and allowance is how many columns must stay free after
// its last line.
func (p *printer) format(v any, indent, allowance, level int) {
	// A value that fits on the line is written as repr shows it.
	rep := sortedRepr(v)
	if runeCount(rep) <= prettyWidth-indent-allowance || p.depth > 200 {
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
		items := safeSort(v.Members())
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

// line begins the next item on a new line.
func (p *printer) line(indent int) { p.b.WriteString(",\n" + strings.Repeat(" ", indent)) }

// items writes the members of a sequence, one on each line.
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

// dict writes the entries of a dict, sorted by their keys.
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
		p.format(d.Value(k), indent+runeCount(rep)+2, after, level)
	}
}

// ordered writes an OrderedDict that does not fit on a line, as a list of pairs.
func (p *printer) ordered(d *pyobj.Dict, indent, allowance, level int) {
	const name = "OrderedDict"
	if d.Len() == 0 {
		p.b.WriteString(pyobj.Repr(d))
		return
	}
	p.b.WriteString(name + "([")
	pairs := (&view{d, "items"}).viewItems()
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
