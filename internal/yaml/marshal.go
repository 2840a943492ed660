package yaml

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/pytext"
)

// Flow says which collections are written on one line, as [a, b] and {a: b}.
type Flow int

// The values of PyYAML's default_flow_style.
const (
	FlowNever Flow = iota // False
	FlowLeafs             // None: collections that hold only plain scalars
	FlowAll               // True
)

// Style is how MarshalStyle writes. The zero value is that of Marshal.
type Style struct {
	Flow Flow
	// Indent is the number of blanks per level, 2 unless it is between 2 and 9.
	Indent int
}

// Marshal writes a value as salt.utils.yaml.safe_dump(v, default_flow_style=False) does: keys sorted, block style,
// lines folded after 80 columns, unicode as it is. Values are those of Parse, Map (whose order is kept), other integers
// and floats, []string, other slices and maps. What cannot be represented is an error.
func Marshal(v any) (string, error) { return MarshalStyle(v, Style{}) }

// MarshalStyle is Marshal with a style.
func MarshalStyle(v any, s Style) (string, error) {
	root, err := represent(v, s.Flow, 0)
	if err != nil {
		return "", err
	}
	e := &emitter{indentBy: s.Indent, indent: -1, whitespace: true, indention: true}
	if s.Indent < 2 || s.Indent > 9 {
		e.indentBy = 2
	}
	e.node(root, context{})
	e.writeIndent()
	if e.openEnded {
		e.out.WriteString("...\n")
	}
	return e.out.String(), nil
}

// node is a value on its way to text: PyYAML's nodes after the serializer.
type node struct {
	kind  reflect.Kind // String, Slice or Map
	tag   string       // for scalars, and for collections "" or a tag to write
	text  string
	style byte // '|' for literal, 0 for any
	flow  bool
	items []*node // of a sequence; keys and values in turn of a mapping
}

// maxDepth bounds recursion; nothing that Salt carries nests so deep.
const maxDepth = 1000

func scalarNode(tag, text string) *node { return &node{kind: reflect.String, tag: tag, text: text} }

// represent is PyYAML's SafeRepresenter.
func represent(v any, flow Flow, depth int) (*node, error) {
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
		return scalarNode(tagTimestamp, v.Format("2006-01-02 15:04:05.999999-07:00")), nil
	case []any:
		n := &node{kind: reflect.Slice}
		for _, e := range v {
			if err := n.add(e, flow, depth); err != nil {
				return nil, err
			}
		}
		return n.decide(flow), nil
	case Map:
		n := &node{kind: reflect.Map}
		for _, it := range v {
			if err := n.add(it.Key, flow, depth); err != nil {
				return nil, err
			}
			if err := n.add(it.Value, flow, depth); err != nil {
				return nil, err
			}
		}
		return n.decide(flow), nil
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		m := make(Map, len(keys))
		for i, k := range keys {
			m[i] = Item{k, v[k]}
		}
		return represent(m, flow, depth)
	case map[any]any:
		m := make(Map, 0, len(v))
		for _, k := range pytext.SortKeys(v) {
			m = append(m, Item{k, v[k]})
		}
		return represent(m, flow, depth)
	}
	return representOther(v, flow, depth)
}

func representOther(v any, flow Flow, depth int) (*node, error) {
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return scalarNode(tagInt, strconv.FormatInt(r.Int(), 10)), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return scalarNode(tagInt, strconv.FormatUint(r.Uint(), 10)), nil
	case reflect.Float32:
		return scalarNode(tagFloat, floatText(r.Float())), nil
	case reflect.String:
		return scalarNode(tagStr, r.String()), nil
	case reflect.Slice:
		list := make([]any, r.Len())
		for i := range list {
			list[i] = r.Index(i).Interface()
		}
		return represent(list, flow, depth)
	case reflect.Map:
		m := make(map[any]any, r.Len())
		for it := r.MapRange(); it.Next(); {
			m[it.Key().Interface()] = it.Value().Interface()
		}
		return represent(m, flow, depth)
	}
	return nil, fmt.Errorf("cannot write YAML: cannot represent an object of type %T", v)
}

func (n *node) add(v any, flow Flow, depth int) error {
	child, err := represent(v, flow, depth+1)
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

// floatText is represent_float of PyYAML.
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

// encodeBase64 is encodebytes of Python: lines of 76 characters.
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
