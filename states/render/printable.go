package render

import (
	"strings"
	"unsafe"

	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/jinja"
)

// maxPrintDepth limits how deeply collections may be nested in a value that a template prints.
const maxPrintDepth = 200

// printable implements Salt's finalizer: a dict of any class prints as {…}, with texts that YAML can read.
func printable(v any) (any, error) {
	// A collection without a dict prints as Python prints it.
	switch v := v.(type) {
	case *pyobj.Dict:
		return printed(v)
	case *pyobj.List, pyobj.Tuple, *pyobj.Set:
		if l, ok := v.(*pyobj.List); ok && len(l.Items) > 0 && pyobj.TypeName(l.Items[0]) == "_GroupTuple" {
			// Salt creates a new tuple of the same class. The constructor of this class takes its parts as separate
			// arguments, so it fails.
			return nil, raiseAs("TypeError", "_GroupTuple.__new__() missing 1 required positional argument: 'list'")
		}
		if holdsDict(v, 0, visited{}) {
			return printed(v)
		}
	}
	return v, nil
}

// holdsDict reports whether v is a dict or contains one.
func holdsDict(v any, depth int, seen visited) bool {
	if depth > maxPrintDepth || seen.before(v, depth) {
		return false
	}
	// Sets cannot hold dicts.
	var items []any
	switch v := v.(type) {
	case *pyobj.Dict:
		return true
	case *pyobj.List:
		items = v.Items
	case pyobj.Tuple:
		items = v
	}
	for _, x := range items {
		if holdsDict(x, depth+1, seen) {
			return true
		}
	}
	return false
}

// visited holds the depth at which each collection was searched. A list that contains another one 50,000 times needs
// little memory, but a search that treats each as new would not end.
type visited map[any]int

// before reports whether a collection was searched before, at this depth or above it, and notes that it is being
// searched now.
func (s visited) before(v any, depth int) bool {
	var id any
	switch v := v.(type) {
	case *pyobj.Dict, *pyobj.List:
		// Tuples have no identity in Go; their storage stands for it.
		id = v
	case pyobj.Tuple:
		id = unsafe.SliceData(v)
	default:
		return false
	}
	// guard: endless-texts TestSearchForDicts
	if at, ok := s[id]; ok && at <= depth {
		return true
	}
	s[id] = depth
	return false
}

// printed returns the text of a collection that contains PrintableDicts. The text has at most [jinja.MaxText] bytes.
func printed(v any) (string, error) {
	var p printer
	d, top := v.(*pyobj.Dict)
	var err error
	if top {
		err = p.dict(d, true, 0)
	} else {
		err = p.repr(v, 0)
	}
	if err != nil {
		return "", err
	}
	return p.String(), nil
}

// printer writes the texts of PrintableDicts and of the collections that contain them.
type printer struct{ strings.Builder }

// text appends s, up to the limit.
func (p *printer) text(s string) error {
	// guard: endless-texts TestPrintedTexts
	if p.Len()+len(s) > jinja.MaxText {
		return jinja.TooLong()
	}
	p.WriteString(s)
	return nil
}

// dict writes a dict: as PrintableDict's str if top is set, else as its repr. The two differ for undefined values.
func (p *printer) dict(d *pyobj.Dict, top bool, depth int) error {
	// guard: endless-texts TestPrintedTexts
	if depth > maxPrintDepth {
		return tooDeep()
	}
	sep := "{"
	// Only the values are made safe, not the keys.
	for k, v := range d.All() {
		if err := p.text(sep + pyobj.Repr(k) + ": "); err != nil {
			return err
		}
		sep = ", "
		if err := p.member(v, top, depth+1); err != nil {
			return err
		}
	}
	if d.Len() == 0 {
		return p.text("{}")
	}
	return p.text("}")
}

// member writes a value of a dict. Texts are quoted so that YAML reads them back.
func (p *printer) member(v any, top bool, depth int) error {
	switch v := v.(type) {
	case string:
		return p.text(safeRepr(v))
	case *pyobj.Dict:
		return p.dict(v, top, depth)
	case *jinja.Undefined:
		if top {
			text, err := jinja.Str(v)
			if err != nil {
				return err
			}
			return p.text(text)
		}
	}
	return p.repr(v, depth)
}

// repr writes Python's repr, with PrintableDicts inside.
func (p *printer) repr(v any, depth int) error {
	open, end := "[", "]"
	var items []any
	switch v := v.(type) {
	case *pyobj.Dict:
		return p.dict(v, false, depth)
	case *pyobj.List:
		items = v.Items
	case pyobj.Tuple:
		items, open, end = v, "(", ")"
		if len(v) == 1 {
			end = ",)"
		}
	default:
		return p.text(pyobj.Repr(v))
	}
	// guard: endless-texts TestPrintedTexts
	if depth > maxPrintDepth {
		return tooDeep()
	}
	if err := p.text(open); err != nil {
		return err
	}
	// Members of lists are written as repr shows them, so texts in them are quoted by Python's rules.
	for i, x := range items {
		if i > 0 {
			if err := p.text(", "); err != nil {
				return err
			}
		}
		if err := p.repr(x, depth+1); err != nil {
			return err
		}
	}
	return p.text(end)
}

// tooDeep returns Python's error for a value that is nested too deeply.
func tooDeep() error {
	return &jinja.Error{Kind: "RecursionError", Msg: "maximum recursion depth exceeded"}
}

// safeRepr returns a text that YAML reads back unchanged: a double quoted scalar if it has line breaks, else
// Python's repr.
func safeRepr(s string) string {
	if !strings.ContainsAny(s, "\n\r\t") {
		return pyobj.Repr(s)
	}
	return doubleQuoted(s)
}
