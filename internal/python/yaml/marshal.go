package yaml

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/payload"
)

// Flow selects the collections that are written in flow style, as [a, b] and {a: b}.
type Flow int

// The values of PyYAML's default_flow_style.
const (
	FlowNever Flow = iota // False
	FlowLeafs             // None: collections that contain only plain scalars
	FlowAll               // True
)

// Style configures MarshalStyle. The zero value is the style of Marshal.
type Style struct {
	Flow Flow
	// Indent is the number of blanks per level. A value that is not between 2 and 9 means 2.
	Indent int
	// ASCII escapes all other characters (allow_unicode=False).
	ASCII bool
	// Sorted also sorts OrderedDicts.
	Sorted bool
	// Unsorted keeps the order of all dicts.
	Unsorted bool
	// Width is the column after which scalars are folded. 0 and widths that are too small for libyaml mean 80; a
	// negative width means no limit.
	Width int
	// Start and End write the markers of the document's begin and end.
	Start, End bool
}

// Marshal formats a value as salt.utils.yaml.safe_dump(v, default_flow_style=False) does: sorted keys, block style,
// lines folded after 80 columns, and unescaped unicode. It supports the values of Parse, payload.OrderedMap (whose
// order is kept), other integers and floats, []string, other slices and maps, and returns an error for others.
func Marshal(v any) (string, error) { return MarshalStyle(v, Style{}) }

// MarshalStyle is like [Marshal] with a style.
func MarshalStyle(v any, s Style) (string, error) {
	r := representer{flow: s.Flow, sorted: s.Sorted, unsorted: s.Unsorted}
	root, err := r.represent(v, 0)
	if err != nil {
		return "", err
	}
	if r.seen != nil {
		anchors := 0
		root.anchors(map[*node]bool{}, &anchors)
	}
	e := &emitter{indentBy: s.Indent, indent: -1, whitespace: true, indention: true, ascii: s.ASCII, width: s.Width}
	if s.Indent < 2 || s.Indent > 9 {
		e.indentBy = 2
	}
	switch {
	case e.width < 0:
		e.width = math.MaxInt
	case e.width <= 2*e.indentBy:
		e.width = bestWidth
	}
	if s.Start {
		e.indicator("---", true, false, false)
	}
	e.node(root, context{})
	e.writeIndent()
	if e.openEnded || s.End {
		e.out.WriteString("...\n")
	}
	return e.out.String(), nil
}

// node is a value to be written, like PyYAML's nodes after its serializer.
type node struct {
	kind  reflect.Kind // String, Slice or Map
	tag   string       // for scalars, and for collections "" or a tag to write
	text  string
	style byte // '|' for literal, 0 for any
	flow  bool
	items []*node // elements of a sequence, or alternating keys and values of a mapping
	// anchor is the name of a node that is written more than once. written is set after the first time.
	anchor  string
	written bool
}

// representer converts values to nodes. A collection becomes one node, even if it occurs more than once.
type representer struct {
	flow             Flow
	sorted, unsorted bool
	seen             map[any]*node
}

// anchors names the nodes that occur more than once, in the order of their second occurrence.
func (n *node) anchors(met map[*node]bool, count *int) {
	if n.kind == reflect.String {
		return
	}
	if met[n] {
		if n.anchor == "" {
			*count++
			n.anchor = fmt.Sprintf("id%03d", *count)
		}
		return
	}
	met[n] = true
	for _, it := range n.items {
		it.anchors(met, count)
	}
}

// maxDepth limits the recursion. Salt's data never nests that deep.
const maxDepth = 1000

func scalarNode(tag, text string) *node { return &node{kind: reflect.String, tag: tag, text: text} }

// represent implements PyYAML's SafeRepresenter.
func (r *representer) represent(v any, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("cannot write YAML: %w", ErrLimit)
	}
	switch v := v.(type) {
	case nil:
		return scalarNode(tagNull, "null"), nil
	case bool:
		return scalarNode(tagBool, strconv.FormatBool(v)), nil
	case string:
		return scalarNode(tagStr, v), nil
	case []byte:
		n := scalarNode(tagBinary, encodeBase64(v))
		n.style = '|'
		return n, nil
	case int64:
		return scalarNode(tagInt, strconv.FormatInt(v, 10)), nil
	case float64:
		return scalarNode(tagFloat, floatText(v)), nil
	case time.Time:
		return scalarNode(tagTimestamp, pytext.Str(v)), nil
	case *pyobj.Dict, *pyobj.List, *pyobj.Set:
		if n := r.seen[v]; n != nil {
			return n, nil
		}
		n := &node{} // a collection that contains itself finds this node
		if r.seen == nil {
			r.seen = map[any]*node{}
		}
		r.seen[v] = n
		made, err := r.representObject(v, depth)
		if err == nil {
			*n = *made
		}
		return n, err
	case pyobj.Tuple, pyobj.Markup, *big.Int, pyobj.Object:
		return r.representObject(v, depth)
	case []any:
		n := &node{kind: reflect.Slice}
		for _, e := range v {
			if err := n.add(r, e, depth); err != nil {
				return nil, err
			}
		}
		return n.decide(r.flow), nil
	case payload.OrderedMap:
		n := &node{kind: reflect.Map}
		for _, it := range v {
			if err := n.add(r, it.Key, depth); err != nil {
				return nil, err
			}
			if err := n.add(r, it.Value, depth); err != nil {
				return nil, err
			}
		}
		return n.decide(r.flow), nil
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		m := make(payload.OrderedMap, len(keys))
		for i, k := range keys {
			m[i] = payload.Pair{Key: k, Value: v[k]}
		}
		return r.represent(m, depth)
	case map[any]any:
		m := make(payload.OrderedMap, 0, len(v))
		for _, k := range pytext.SortKeys(v) {
			m = append(m, payload.Pair{Key: k, Value: v[k]})
		}
		return r.represent(m, depth)
	}
	return r.representOther(v, depth)
}

// representObject is like represent for Python's collections. It sorts dicts whose keys can be compared, but not
// OrderedDicts.
func (r *representer) representObject(v any, depth int) (*node, error) {
	switch v := v.(type) {
	case *pyobj.Dict:
		m := make(payload.OrderedMap, 0, v.Len())
		text := true
		for k, x := range v.All() {
			_, ok := k.(string)
			text = text && ok
			m = append(m, payload.Pair{Key: k, Value: x})
		}
		if (!v.Ordered || r.sorted) && !r.unsorted {
			sortItems(m, text)
		}
		return r.represent(m, depth)
	case *pyobj.List:
		return r.represent(v.Items, depth)
	case pyobj.Tuple:
		return r.represent([]any(v), depth)
	case *pyobj.Set:
		m := make(payload.OrderedMap, 0, v.Len())
		text := true
		for _, k := range v.Members() {
			_, ok := k.(string)
			text = text && ok
			m = append(m, payload.Pair{Key: k, Value: nil})
		}
		sortItems(m, text)
		n, err := r.represent(m, depth)
		if err == nil {
			n.tag = tagSet
		}
		return n, err
	case *big.Int:
		return scalarNode(tagInt, v.String()), nil
	}
	return scalarNode(tagNull, "NULL"), nil // Salt writes this for types that it does not support, such as Markup
}

// sortItems sorts entries by key. Like PyYAML it keeps the order if Python cannot compare the keys, such as texts and
// numbers.
func sortItems(m payload.OrderedMap, text bool) {
	if !text {
		for _, it := range m {
			switch it.Key.(type) {
			case bool, int64, float64:
			default:
				return
			}
		}
	}
	sort.SliceStable(m, func(i, j int) bool { return pytext.Less(m[i].Key, m[j].Key) })
}

func (r *representer) representOther(v any, depth int) (*node, error) {
	rv := reflect.ValueOf(v)
	switch rv.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return scalarNode(tagInt, strconv.FormatInt(rv.Int(), 10)), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return scalarNode(tagInt, strconv.FormatUint(rv.Uint(), 10)), nil
	case reflect.Float32:
		return scalarNode(tagFloat, floatText(rv.Float())), nil
	case reflect.String:
		return scalarNode(tagStr, rv.String()), nil
	case reflect.Slice:
		list := make([]any, rv.Len())
		for i := range list {
			list[i] = rv.Index(i).Interface()
		}
		return r.represent(list, depth)
	case reflect.Map:
		m := make(map[any]any, rv.Len())
		for it := rv.MapRange(); it.Next(); {
			m[it.Key().Interface()] = it.Value().Interface()
		}
		return r.represent(m, depth)
	}
	return nil, fmt.Errorf("cannot write YAML: cannot represent an object of type %T", v)
}

func (n *node) add(r *representer, v any, depth int) error {
	child, err := r.represent(v, depth+1)
	if err == nil {
		n.items = append(n.items, child)
	}
	return err
}

func (n *node) decide(flow Flow) *node {
	n.flow = flow != FlowNever
	if flow == FlowLeafs {
		for _, it := range n.items {
			if it.kind != reflect.String || it.style != 0 {
				n.flow = false
			}
		}
	}
	return n
}

// floatText implements PyYAML's represent_float.
func floatText(f float64) string {
	switch s := pytext.Float(f); s {
	case "nan", "inf":
		return "." + s
	case "-inf":
		return "-.inf"
	default:
		if !strings.Contains(s, ".") {
			return strings.Replace(s, "e", ".0e", 1)
		}
		return s
	}
}

// encodeBase64 implements Python's encodebytes: lines of 76 characters.
func encodeBase64(b []byte) string {
	s := base64.StdEncoding.EncodeToString(b)
	var out strings.Builder
	for len(s) > 76 {
		out.WriteString(s[:76])
		out.WriteByte('\n')
		s = s[76:]
	}
	if s != "" {
		out.WriteString(s)
		out.WriteByte('\n')
	}
	return out.String()
}

// DoubleQuoted formats a text as a double-quoted scalar on one line.
func DoubleQuoted(s string) string {
	e := &emitter{indentBy: 2, indent: -1, whitespace: true, indention: true, width: math.MaxInt}
	e.doubleQuoted(strings.ToValidUTF8(s, "\ufffd"), false)
	return e.out.String()
}

// SingleQuoted formats a text as a single-quoted scalar.
func SingleQuoted(s string) string {
	e := &emitter{indentBy: 2, indent: -1, whitespace: true, indention: true, width: math.MaxInt, python: true}
	e.singleQuoted(strings.ToValidUTF8(s, "\ufffd"), false)
	return e.out.String()
}
