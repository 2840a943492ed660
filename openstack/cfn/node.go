package cfn

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
)

// initKey is the key of the metadata that cfn-init uses.
const initKey = "AWS::CloudFormation::Init"

// node is a value in the metadata, with its path for errors.
type node struct {
	path string
	v    any
}

// DocumentError describes an invalid value in the metadata.
type DocumentError struct {
	// Path is the value's path, with the keys joined by dots: config.files."/etc/motd".mode.
	Path string
	// Problem describes the error, such as "must be a text, not a list".
	Problem string
}

func (e *DocumentError) Error() string { return e.Path + " " + e.Problem }

func (n node) wrong(format string, args ...any) error {
	return &DocumentError{Path: n.path, Problem: fmt.Sprintf(format, args...)}
}

func (n node) mustBe(what string) error { return n.wrong("must be %s, not %s", what, kindOf(n.v)) }

// kindOf returns the kind of a value in JSON's terms.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case string:
		return "a text"
	case *pyobj.Dict:
		return "a map"
	case *pyobj.List:
		return "a list"
	}
	return "a number"
}

// join returns the path of a value below n.
func (n node) join(key string) string {
	if strings.ContainsAny(key, ". \"'[]") || key == "" {
		key = strconv.Quote(key)
	}
	if n.path == "" {
		return key
	}
	return n.path + "." + key
}

// entry is a key and value of a map.
type entry struct {
	key string
	node
}

// entries returns the entries of a map in order. null counts as an empty map.
func (n node) entries() ([]entry, error) {
	if n.v == nil {
		return nil, nil
	}
	d, ok := n.v.(*pyobj.Dict)
	if !ok {
		return nil, n.mustBe("a map")
	}
	list := make([]entry, 0, d.Len())
	for k, v := range d.All() {
		key, ok := k.(string)
		if !ok {
			return nil, n.wrong("has the key %s, which is not a text", pyobj.Repr(k))
		}
		list = append(list, entry{key, node{n.join(key), v}})
	}
	return list, nil
}

// child returns the value under a key. ok is false if it is missing or n is not a map.
func (n node) child(key string) (node, bool) {
	d, ok := n.v.(*pyobj.Dict)
	if !ok {
		return node{}, false
	}
	v, ok := d.Text(key)
	return node{n.join(key), v}, ok
}

// items returns the values of a list.
func (n node) items() ([]node, error) {
	l, ok := n.v.(*pyobj.List)
	if !ok {
		return nil, n.mustBe("a list")
	}
	out := make([]node, len(l.Items))
	for i, v := range l.Items {
		out[i] = node{fmt.Sprintf("%s[%d]", n.path, i), v}
	}
	return out, nil
}

// text returns a text, or a number as text: templates contain both forms for user ids and versions.
func (n node) text() (string, error) {
	switch v := n.v.(type) {
	case string:
		return v, nil
	case nil, bool, *pyobj.Dict, *pyobj.List:
		return "", n.mustBe("a text")
	default:
		return pyobj.Str(v), nil
	}
}

// texts returns a list of texts. A text counts as a list of one, null as an empty list.
func (n node) texts() ([]string, error) {
	if n.v == nil {
		return nil, nil
	}
	if _, ok := n.v.(*pyobj.List); !ok {
		s, err := n.text()
		if err != nil {
			return nil, n.mustBe("a list of texts")
		}
		if s == "" {
			return nil, nil
		}
		return []string{s}, nil
	}
	list, err := n.items()
	if err != nil {
		return nil, err
	}
	out := make([]string, len(list))
	for i, x := range list {
		if out[i], err = x.text(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// truth converts a value to a bool by the rules of heat-cfntools: true, 1 and the texts "true", "yes" and "1" are
// true.
func (n node) truth() (bool, error) {
	switch v := n.v.(type) {
	case bool:
		return v, nil
	case string:
		switch strings.ToLower(pytext.Strip(v)) {
		case "true", "yes", "1":
			return true, nil
		}
		return false, nil
	case nil, *pyobj.Dict, *pyobj.List:
		return false, n.mustBe("true or false")
	}
	return pyobj.Equal(n.v, int64(1)), nil
}
