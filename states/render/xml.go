package render

import (
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/jinja"
)

// element is a node of the XML that the filter xml writes. Attributes keep the order of the dict.
type element struct {
	tag      string
	attrs    [][2]string
	text     string
	hasText  bool
	children []*element
}

// filterXML writes data as indented XML: the scalars of a dict are attributes, its dicts and lists are elements.
// Only the last of several roots is shown, as in Salt.
func filterXML(_ *jinja.Run, v any, _ jinja.Args) (any, error) {
	pairs, err := xmlPairs(v)
	if err != nil {
		return nil, err
	}
	var root *element
	// Each entry creates a root; only the last one is written.
	for _, p := range pairs {
		if root, err = xmlTree(p, nil, 0); err != nil {
			return nil, err
		}
	}
	if root == nil {
		return nil, raiseAs("AttributeError", "'NoneType' object has no attribute 'iter'")
	}
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\" ?>\n")
	root.writeTo(&b, 0)
	return pyobj.Markup(b.String()), nil
}

// xmlPairs returns the entries of a value (normalize_iter). A list whose first member is not a text has none.
func xmlPairs(v any) ([]any, error) {
	var items []any
	switch v := v.(type) {
	case *pyobj.Dict:
		var out []any
		for k, x := range v.All() {
			out = append(out, pyobj.Tuple{k, x})
		}
		return out, nil
	case *pyobj.List:
		items = v.Items
	case pyobj.Tuple:
		items = v
	default:
		return nil, raiseAs("TemplateRuntimeError", "Value is not a dict or list. Cannot render as XML")
	}
	if len(items) == 0 {
		return nil, raiseAs("IndexError", "list index out of range")
	}
	if _, text := items[0].(string); text {
		return items, nil
	}
	return nil, nil
}

// xmlTree adds the element of a pair to its parent and returns it. A list adds an element per member.
func xmlTree(pair any, parent *element, depth int) (*element, error) {
	if depth > 200 {
		return nil, raiseAs("RecursionError", "maximum recursion depth exceeded")
	}
	kv, err := jinja.Collect(pair)
	if err != nil {
		return nil, err
	}
	if len(kv) != 2 {
		return nil, raiseAs("ValueError", "too many values to unpack (expected 2)")
	}
	tag, value := pyobj.Str(kv[0]), kv[1]
	var e *element
	if l, ok := value.(*pyobj.List); ok {
		for _, x := range l.Items {
			if _, err := xmlTree(pyobj.Tuple{kv[0], x}, parent, depth+1); err != nil {
				return nil, err
			}
		}
	} else {
		e = &element{tag: tag}
		if parent != nil {
			parent.children = append(parent.children, e)
		}
	}
	switch x := value.(type) {
	case string, int64, bool, float64, pyobj.Markup:
		if e != nil {
			e.text, e.hasText = pyobj.Str(x), true
		}
		return e, nil
	case *pyobj.Dict:
		// Scalars are attributes; nested data becomes elements below.
		for k, v := range x.All() {
			switch v.(type) {
			case *pyobj.Dict, *pyobj.List:
			default:
				e.attrs = append(e.attrs, [2]string{pyobj.Str(k), pyobj.Str(v)})
			}
		}
	}
	pairs, err := xmlPairs(value)
	if err != nil {
		return nil, err
	}
	for _, p := range pairs {
		t, ok := p.(pyobj.Tuple)
		if !ok || len(t) != 2 {
			continue
		}
		switch t[1].(type) {
		case *pyobj.Dict, *pyobj.List:
			if _, err := xmlTree(t, e, depth+1); err != nil {
				return nil, err
			}
		}
	}
	return e, nil
}

// writeTo writes the element and its children, indented by one blank for each level (minidom's toprettyxml).
func (e *element) writeTo(b *strings.Builder, level int) {
	indent := strings.Repeat(" ", level)
	esc := strings.NewReplacer("&", "&amp;", "<", "&lt;", "\"", "&quot;", ">", "&gt;")
	b.WriteString(indent + "<" + e.tag)
	for _, a := range e.attrs {
		b.WriteString(" " + a[0] + "=\"" + esc.Replace(a[1]) + "\"")
	}
	// An element without content has no separate end tag.
	if e.text == "" && len(e.children) == 0 {
		b.WriteString("/>\n")
		return
	}
	b.WriteByte('>')
	if len(e.children) == 0 {
		b.WriteString(esc.Replace(e.text) + "</" + e.tag + ">\n")
		return
	}
	b.WriteByte('\n')
	for _, c := range e.children {
		c.writeTo(b, level+1)
	}
	b.WriteString(indent + "</" + e.tag + ">\n")
}
