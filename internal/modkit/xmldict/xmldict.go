// Package xmldict converts XML to plain data, as Salt does (salt/utils/xmlutil.py, to_dict).
package xmldict

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// Element is an XML element like one of Python's ElementTree.
type Element struct {
	name  string
	text  any // nil if the element has no text
	items []*Element
}

// maxDepth limits the nesting of elements.
const maxDepth = 200

// Parse returns the root element of a document. Names are returned without their namespaces.
func Parse(text string) (*Element, error) {
	d := xml.NewDecoder(strings.NewReader(text))
	var stack []*Element
	var root *Element
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			e := &Element{name: t.Name.Local}
			if len(stack) > 0 {
				top := stack[len(stack)-1]
				top.items = append(top.items, e)
			} else if root != nil {
				return nil, errors.New("junk after document element")
			} else {
				root = e
			}
			if stack = append(stack, e); len(stack) > maxDepth {
				return nil, errors.New("the document is nested too deep")
			}
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			if len(stack) > 0 {
				if top := stack[len(stack)-1]; len(top.items) == 0 { // text after a child is the child's tail
					s, _ := top.text.(string)
					top.text = s + string(t)
				}
			}
		}
	}
	if root == nil {
		return nil, errors.New("no element found")
	}
	return root, nil
}

// Children returns the data of each child.
func (e *Element) Children() []any {
	out := []any{}
	for _, item := range e.items {
		out = append(out, item.Data())
	}
	return out
}

// Data converts the element like to_dict: to a dictionary of its children or, if it has no children, to one that maps
// its name to its text.
func (e *Element) Data() map[string]any {
	if len(e.items) == 0 {
		return map[string]any{e.name: e.text}
	}
	out := map[string]any{}
	for _, item := range e.items {
		have, seen := out[item.name]
		switch {
		case seen:
			list, ok := have.([]any)
			if !ok {
				list = []any{have}
			}
			out[item.name] = append(list, item.Data())
		case len(item.items) > 0:
			out[item.name] = item.Data()
		default:
			out[item.name] = item.text
		}
	}
	return out
}
