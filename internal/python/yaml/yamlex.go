package yaml

import (
	"errors"
	"fmt"
	"math/big"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
)

// maxJoined limits the total number of items that duplicate keys join.
const maxJoined = 10_000_000

// ParseAggregate parses a document of Salt's YAMLEX (salt/serializers/yamlex.py) into ordered values. Duplicate keys
// are allowed: a value tagged !aggregate is joined with the key's earlier value, and !reset before a key discards
// that value. Dates and times are time.Time (see package pytext). Tagged collections are marked (pyobj.Aggregate).
func ParseAggregate(b []byte, name string) (any, error) {
	if err := checkInput(b, name); err != nil {
		return nil, err
	}
	node, err := compose(b, name)
	if err != nil || node == nil {
		return nil, err
	}
	x := &aggregator{constructor: &constructor{name: name, forms: forms{objects: true, orderedDict: true}}, done: map[*yamlv3.Node]any{},
		flat: map[*yamlv3.Node]bool{}}
	if err := x.survey(node); err != nil {
		return nil, err
	}
	v, err := x.build(node, false)
	for err == nil && len(x.later) > 0 {
		fill := x.later[0]
		x.later = x.later[1:]
		err = fill()
	}
	return v, err
}

// aggregator constructs values from nodes. As in PyYAML, lists, sets and plain maps are empty at first and filled
// after the values around them exist, unless they are inside a tagged node. So an untagged list under a duplicate key
// is still empty when the two values are merged, and stays empty. Users of Salt know this as disappearing lists.
type aggregator struct {
	*constructor
	deep   bool
	later  []func() error
	done   map[*yamlv3.Node]any // values of anchored nodes
	flat   map[*yamlv3.Node]bool
	joined int
}

func (x *aggregator) build(n *yamlv3.Node, deep bool) (any, error) {
	n = target(n)
	if v, ok := x.done[n]; ok {
		return v, nil
	}
	if deep && !x.deep {
		x.deep = true
		defer func() { x.deep = false }()
	}
	v, err := x.value(n, tag(n))
	if n.Anchor != "" && err == nil {
		x.done[n] = v
	}
	return v, err
}

// fill runs the second half of a construction, now or later.
func (x *aggregator) fill(f func() error) error {
	if x.deep {
		return f()
	}
	x.later = append(x.later, f)
	return nil
}

// untagged returns the tag that a node would have without its explicit tag. deep reports whether the node's contents
// are constructed at once.
func untagged(n *yamlv3.Node) (t string, deep bool) {
	switch n.Kind {
	case yamlv3.SequenceNode:
		return tagSeq, true
	case yamlv3.MappingNode:
		return tagOmap, true
	}
	return resolve(n.Value), false
}

func (x *aggregator) value(n *yamlv3.Node, t string) (any, error) {
	if t == tagMap && n.Style&yamlv3.TaggedStyle == 0 {
		t = tagOmap
	}
	switch t {
	case "!aggregate", "!reset":
		plain, deep := untagged(n)
		if deep && !x.deep {
			x.deep = true
			defer func() { x.deep = false }()
		}
		v, err := x.value(n, plain)
		if err != nil || t == "!reset" {
			return v, err
		}
		return aggregated(v), nil
	case tagOmap:
		return x.omap(n)
	case tagSeq:
		if n.Kind != yamlv3.SequenceNode {
			return nil, x.fail(n, "expected a sequence node, but found %s", kindName(n))
		}
		list := &pyobj.List{}
		return list, x.fill(func() error {
			for _, child := range n.Content {
				v, err := x.build(child, false)
				if err != nil {
					return err
				}
				list.Items = append(list.Items, v)
			}
			return nil
		})
	case tagMap:
		d := &pyobj.Dict{}
		return d, x.fill(func() error { return x.pyMap(n, d) })
	case tagSet:
		set, d := &pyobj.Set{}, &pyobj.Dict{}
		return set, x.fill(func() error {
			err := x.pyMap(n, d)
			for _, k := range d.Keys() {
				_ = set.Add(k) // the key is already in a dict, so it is valid
			}
			return err
		})
	case tagInt:
		if n.Kind == yamlv3.ScalarNode {
			return x.integer(n)
		}
	case tagTimestamp:
		if n.Kind == yamlv3.ScalarNode {
			v, msg := parseTimestamp(n.Value)
			if msg != "" {
				return nil, x.valueError(n, msg)
			}
			return v, nil
		}
	case tagNull, tagBool, tagFloat, tagStr, tagBinary:
		if n.Kind == yamlv3.ScalarNode {
			return x.scalar(n, t)
		}
	case tagPairs:
		list := &pyobj.List{}
		return list, x.fill(func() error {
			v, err := x.pairs(n, "pairs", 0)
			if l, ok := v.(*pyobj.List); ok {
				list.Items = l.Items
			}
			return err
		})
	default:
		if rest, ok := strings.CutPrefix(t, shortTag); ok {
			t = longTag + rest
		}
		return nil, x.fail(n, "could not determine a constructor for the tag '%s'", t)
	}
	return nil, x.fail(n, "expected a scalar node, but found %s", kindName(n))
}

// aggregated marks a value that was tagged. A value that is not a collection becomes a list.
func aggregated(v any) any {
	switch v := v.(type) {
	case nil:
		return &pyobj.List{Aggregate: true}
	case *pyobj.Dict:
		d := v.Copy()
		d.Aggregate = true
		return d
	case *pyobj.List:
		return &pyobj.List{Items: v.Items, Aggregate: true}
	}
	return &pyobj.List{Items: []any{v}, Aggregate: true}
}

// integer parses a decimal number, whatever its prefix.
func (x *aggregator) integer(n *yamlv3.Node) (any, error) {
	s := n.Value
	if strings.HasPrefix(s, "0") && !strings.HasPrefix(s, "0b") && !strings.HasPrefix(s, "0x") {
		if s = strings.TrimLeft(s, "0"); s == "" {
			s = "0"
		}
	}
	digits := unsign(s)
	if strings.HasPrefix(digits, "_") || strings.HasSuffix(digits, "_") || strings.Contains(digits, "__") || digits == "" ||
		span(digits, isDigit_) != len(digits) {
		return nil, x.valueError(n, "invalid literal for int() with base 10: "+pytext.Repr(s))
	}
	if len(digits) > 4300 { // Python's limit
		return nil, fmt.Errorf("cannot parse %s: the number in line %d has more than 4300 digits: %w", x.name, n.Line, ErrLimit)
	}
	v, _ := new(big.Int).SetString(strings.TrimPrefix(strings.ReplaceAll(s, "_", ""), "+"), 10)
	return pyobj.Int(v), nil
}

// valueError returns a Python ValueError without a position.
func (x *aggregator) valueError(n *yamlv3.Node, msg string) error {
	e := x.fail(n, "%s", msg)
	e.Class, e.Line, e.Column = "ValueError", 0, 0
	return e
}

// merges moves the entries of merge keys before the mapping's own entries, as PyYAML does. It keeps duplicate keys.
func (x *aggregator) merges(n *yamlv3.Node) error {
	if n.Kind != yamlv3.MappingNode || x.flat[n] {
		return nil
	}
	x.flat[n] = true
	var merged, own []*yamlv3.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := target(n.Content[i]), target(n.Content[i+1])
		if k.Kind != yamlv3.ScalarNode || tag(k) != tagMerge {
			own = append(own, n.Content[i], n.Content[i+1])
			continue
		}
		from := []*yamlv3.Node{v}
		switch v.Kind {
		case yamlv3.MappingNode:
		case yamlv3.SequenceNode:
			from = nil
			for j := len(v.Content) - 1; j >= 0; j-- {
				from = append(from, target(v.Content[j]))
			}
		default:
			return x.failIn(n, v, "expected a mapping or list of mappings for merging, but found %s", kindName(v))
		}
		for _, sub := range from {
			if sub.Kind != yamlv3.MappingNode {
				return x.failIn(n, sub, "expected a mapping for merging, but found %s", kindName(sub))
			}
			if err := x.merges(sub); err != nil {
				return err
			}
			if x.joined += len(sub.Content); x.joined > maxJoined {
				return x.tooMuch(n)
			}
			merged = append(merged, sub.Content...)
		}
	}
	if merged != nil || len(own) < len(n.Content) {
		n.Content = append(merged, own...)
	}
	return nil
}

func (x *aggregator) tooMuch(n *yamlv3.Node) error {
	return fmt.Errorf("cannot parse %s: the values to merge up to line %d have more than %d items: %w", x.name, n.Line, maxJoined, ErrLimit)
}

// keyOf constructs a key.
func (x *aggregator) keyOf(n *yamlv3.Node) (any, error) {
	n = target(n)
	if n.Kind == yamlv3.ScalarNode && tag(n) == tagValue {
		return n.Value, nil
	}
	return x.build(n, false)
}

// omap constructs a mapping and merges the values of duplicate keys.
func (x *aggregator) omap(n *yamlv3.Node) (any, error) {
	if n.Kind != yamlv3.MappingNode {
		return nil, x.fail(n, "expected a mapping node, but found %s", kindName(n))
	}
	if err := x.merges(n); err != nil {
		return nil, err
	}
	d := &pyobj.Dict{Ordered: true}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := target(n.Content[i]), target(n.Content[i+1])
		reset := tag(k) == "!reset"
		if tag(k) == "!aggregate" { // meant for the value
			v.Tag, v.Style = "!aggregate", v.Style|yamlv3.TaggedStyle
			k.Tag, _ = untagged(k)
		}
		key, err := x.keyOf(k)
		if err != nil {
			return nil, err
		}
		if _, err := pyobj.Hash(key); err != nil {
			mark := func(n *yamlv3.Node) string {
				return fmt.Sprintf("  in %q, line %d, column %d", x.name, n.Line, n.Column)
			}
			return nil, &Error{Class: "ConstructorError", Name: x.name,
				Problem: "While constructing a mapping " + mark(n) + " found unacceptable key " + mark(k)}
		}
		value, err := x.build(v, false)
		if err != nil {
			return nil, err
		}
		if have, ok := d.Get(key); ok && !reset {
			if x.joined += length(have) + length(value); x.joined > maxJoined {
				return nil, x.tooMuch(k)
			}
			value = pyobj.Aggregate(have, value, false)
		}
		_ = d.Set(key, value)
	}
	return d, nil
}

func length(v any) int {
	switch v := v.(type) {
	case *pyobj.Dict:
		return v.Len()
	case *pyobj.List:
		return len(v.Items)
	}
	return 1
}

// pyMap fills the dict of a mapping tagged !!map or !!set. The last of duplicate keys is kept.
func (x *aggregator) pyMap(n *yamlv3.Node, d *pyobj.Dict) error {
	if n.Kind != yamlv3.MappingNode {
		return x.fail(n, "expected a mapping node, but found %s", kindName(n))
	}
	if err := x.merges(n); err != nil {
		return err
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, err := x.keyOf(n.Content[i])
		if err != nil {
			return err
		}
		if _, err := pyobj.Hash(key); err != nil {
			return x.failIn(n, target(n.Content[i]), "found unhashable key")
		}
		value, err := x.build(n.Content[i+1], false)
		if err != nil {
			return err
		}
		_ = d.Set(key, value)
	}
	return nil
}

// Problem returns the text of Salt's error for a YAMLEX document, and the line, or 0 if the error has no line.
func Problem(err error) (msg string, line int) {
	var e *Error
	if errors.As(err, &e) && e.Class == "ScannerError" {
		if e.Problem == `found character '\t' that cannot start any token` {
			return "Illegal tab character", e.Line
		}
		return "Unknown yaml render error", e.Line
	}
	return err.Error(), 0
}
