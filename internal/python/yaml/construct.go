package yaml

import (
	"encoding/base64"
	"fmt"
	"math/big"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/payload"
)

// constructor converts nodes to values. It implements SaltYamlSafeLoader on PyYAML's SafeConstructor.
type constructor struct {
	name string
	forms
	// built holds the values of anchored collections.
	built map[*yamlv3.Node]any
	// entries holds the entries of mappings with resolved merge keys.
	entries map[*yamlv3.Node][]entry
	// open marks collections under construction. An alias to one of them is a loop.
	open map[*yamlv3.Node]bool
}

type entry struct{ key, value *yamlv3.Node }

// fail returns an error at a node. It is not inlined because it has many callers: that would enlarge the programs.
//
//go:noinline
func (c *constructor) fail(n *yamlv3.Node, format string, args ...any) *Error {
	return &Error{Class: "ConstructorError", Name: c.name, Line: n.Line, Column: n.Column, Problem: fmt.Sprintf(format, args...)}
}

// failIn is like fail, in the context of the construction of a mapping.
func (c *constructor) failIn(mapping, n *yamlv3.Node, format string, args ...any) *Error {
	e := c.fail(n, format, args...)
	e.Context, e.ContextLine, e.ContextColumn = "while constructing a mapping", mapping.Line, mapping.Column
	return e
}

// survey checks the tree before values are constructed: anchors must be unique, nesting is limited to MaxDepth, and
// the nodes behind aliases to MaxAliased. It refuses an alias to an enclosing collection, since such a value would be
// infinite.
func (c *constructor) survey(root *yamlv3.Node) error {
	if c.aliased == nil {
		c.aliased = new(int)
	}
	s := surveyor{constructor: c, anchors: map[string]*yamlv3.Node{}, sizes: map[*yamlv3.Node]int{}}
	_, err := s.visit(root, 0)
	return err
}

type surveyor struct {
	*constructor
	anchors map[string]*yamlv3.Node
	sizes   map[*yamlv3.Node]int // expanded size of anchored nodes; -1 while being counted
}

// visit returns the number of nodes below n, with aliases expanded.
func (s *surveyor) visit(n *yamlv3.Node, depth int) (int, error) {
	// guard: CVE-2013-4438 @yaml-depth TestCVE_2013_4438_Bombs
	if depth > MaxDepth {
		return 0, fmt.Errorf("cannot parse %s: line %d nests deeper than %d: %w", s.name, n.Line, MaxDepth, ErrLimit)
	}
	if n.Kind == yamlv3.AliasNode {
		size, ok := s.sizes[n.Alias]
		if !ok || size < 0 {
			return 0, s.fail(n, "found unconstructable recursive node")
		}
		// guard: CVE-2013-4438 TestCVE_2013_4438_Bombs
		if *s.aliased += size; *s.aliased > MaxAliased {
			return 0, fmt.Errorf("cannot parse %s: aliases up to line %d stand for more than %d nodes: %w", s.name, n.Line, MaxAliased, ErrLimit)
		}
		return size, nil
	}
	if n.Anchor != "" {
		if first := s.anchors[n.Anchor]; first != nil {
			e := s.fail(n, "second occurrence")
			e.Class, e.Context = "ComposerError", "found duplicate anchor; first occurrence"
			e.ContextLine, e.ContextColumn = first.Line, first.Column
			return 0, e
		}
		s.anchors[n.Anchor] = n
		s.sizes[n] = -1
	}
	size := 1
	for _, child := range n.Content {
		m, err := s.visit(child, depth+1)
		if err != nil {
			return 0, err
		}
		if size += m; size > MaxInput {
			return 0, fmt.Errorf("cannot parse %s: more than %d nodes: %w", s.name, MaxInput, ErrLimit)
		}
	}
	if n.Anchor != "" {
		s.sizes[n] = size
	}
	return size, nil
}

func target(n *yamlv3.Node) *yamlv3.Node {
	if n.Kind == yamlv3.AliasNode {
		return n.Alias
	}
	return n
}

// tag returns the node's explicit tag, or the tag from PyYAML's resolvers.
func tag(n *yamlv3.Node) string {
	switch {
	case n.Style&yamlv3.TaggedStyle != 0:
		return n.Tag
	case n.Kind == yamlv3.SequenceNode:
		return tagSeq
	case n.Kind == yamlv3.MappingNode:
		return tagMap
	case n.Style&(yamlv3.DoubleQuotedStyle|yamlv3.SingleQuotedStyle|yamlv3.LiteralStyle|yamlv3.FoldedStyle) != 0:
		return tagStr
	}
	return resolve(n.Value)
}

func kindName(n *yamlv3.Node) string {
	switch n.Kind {
	case yamlv3.SequenceNode:
		return "sequence"
	case yamlv3.MappingNode:
		return "mapping"
	}
	return "scalar"
}

// object constructs the value of one node. depth includes the nesting through aliases, which survey does not count.
func (c *constructor) object(n *yamlv3.Node, depth int) (any, error) {
	n = target(n)
	// guard: CVE-2013-4438 @yaml-depth TestCVE_2013_4438_Bombs
	if depth > MaxDepth {
		return nil, fmt.Errorf("cannot parse %s: line %d nests deeper than %d: %w", c.name, n.Line, MaxDepth, ErrLimit)
	}
	if n.Kind != yamlv3.ScalarNode {
		if c.open[n] {
			return nil, c.fail(n, "found unconstructable recursive node")
		}
		if n.Anchor != "" {
			if c.open == nil {
				c.open = map[*yamlv3.Node]bool{}
			}
			c.open[n] = true
			defer delete(c.open, n)
		}
	}
	if v, ok := c.built[n]; ok {
		return v, nil
	}
	v, err := c.tagged(n, depth)
	if c.objects && n.Anchor != "" && n.Kind != yamlv3.ScalarNode && err == nil {
		if c.built == nil {
			c.built = map[*yamlv3.Node]any{}
		}
		c.built[n] = v
	}
	return v, err
}

func (c *constructor) tagged(n *yamlv3.Node, depth int) (any, error) {
	switch t := tag(n); t {
	case tagSeq:
		return c.sequence(n, depth)
	case tagMap:
		return c.mapping(n, depth)
	case tagSet:
		return c.set(n, depth)
	case tagOmap:
		if c.maps || c.orderedDict {
			// With a custom dict class Salt's loader uses the constructor of !!map for !!omap.
			return c.mapping(n, depth)
		}
		return c.pairs(n, "an ordered map", depth)
	case tagPairs:
		return c.pairs(n, "pairs", depth)
	case tagNull, tagBool, tagInt, tagFloat, tagStr, tagTimestamp, tagBinary, tagPythonUnicode:
		if n.Kind == yamlv3.ScalarNode {
			return c.scalar(n, t)
		}
		return nil, c.fail(n, "expected a scalar node, but found %s", kindName(n))
	default:
		if rest, ok := strings.CutPrefix(t, shortTag); ok {
			t = longTag + rest
		}
		// guard: CVE-2013-4438,CVE-2025-62348 TestCVE_2013_4438_Bombs,master:TestT4PillarBombs instead: return n.Value, nil
		return nil, c.fail(n, "could not determine a constructor for the tag '%s'", t)
	}
}

func (c *constructor) scalar(n *yamlv3.Node, t string) (any, error) {
	var v any
	var msg string
	switch t {
	case tagNull:
	case tagBool:
		switch strings.ToLower(n.Value) {
		case "yes", "true", "on":
			v = true
		case "no", "false", "off":
			v = false
		default:
			e := c.fail(n, "%s", pytext.Repr(strings.ToLower(n.Value)))
			e.Class = "KeyError"
			return nil, e
		}
	case tagInt:
		if v, msg = parseInt(n.Value); c.objects {
			v = bigInt(v)
		}
	case tagFloat:
		v, msg = parseFloat(n.Value)
	case tagBinary:
		b, err := decodeBase64(n.Value)
		if err != nil {
			return nil, c.fail(n, "failed to decode base64 data: %s", err)
		}
		v = b
	default:
		v = n.Value
	}
	if msg != "" {
		e := c.fail(n, "%s", msg)
		e.Class = "ValueError"
		return nil, e
	}
	return v, nil
}

// bigInt converts an integer beyond 64 bits to the *big.Int of ordered values.
func bigInt(v any) any {
	switch v := v.(type) {
	case uint64:
		return new(big.Int).SetUint64(v)
	case string:
		if n, ok := new(big.Int).SetString(v, 10); ok {
			return n
		}
	}
	return v
}

// decodeBase64 skips characters outside of base64, as Python's decodebytes does, and requires correct padding.
func decodeBase64(s string) ([]byte, error) {
	keep := func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '+' || r == '/' || r == '=') {
			return r
		}
		return -1
	}
	b, err := base64.StdEncoding.DecodeString(strings.Map(keep, s))
	if err != nil {
		return nil, fmt.Errorf("Incorrect padding")
	}
	return b, nil
}

func (c *constructor) sequence(n *yamlv3.Node, depth int) (any, error) {
	if n.Kind != yamlv3.SequenceNode {
		return nil, c.fail(n, "expected a sequence node, but found %s", kindName(n))
	}
	list := make([]any, len(n.Content))
	for i, child := range n.Content {
		v, err := c.object(child, depth+1)
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return c.list(list), nil
}

func (c *constructor) list(items []any) any {
	if c.objects {
		return &pyobj.List{Items: items}
	}
	return items
}

func (c *constructor) mapping(n *yamlv3.Node, depth int) (any, error) {
	items, err := c.items(n, depth)
	if err != nil {
		return nil, err
	}
	if c.objects {
		d := &pyobj.Dict{Ordered: c.orderedDict}
		for i := range items {
			_ = d.Set(items[i].Key, items[i].Value) // scalars are hashable
		}
		return d, nil
	}
	if c.maps {
		return items, nil
	}
	text := true
	for i := range items {
		if _, ok := items[i].Key.(string); !ok {
			text = false
			break
		}
	}
	if !text {
		m := make(map[any]any, len(items))
		for _, it := range items {
			m[it.Key] = it.Value
		}
		return m, nil
	}
	m := make(map[string]any, len(items))
	for _, it := range items {
		m[it.Key.(string)] = it.Value
	}
	return m, nil
}

// items constructs the entries of a mapping. Like Salt, and unlike PyYAML, it returns an error for duplicate keys.
func (c *constructor) items(n *yamlv3.Node, depth int) (payload.OrderedMap, error) {
	if n.Kind != yamlv3.MappingNode {
		return nil, c.fail(n, "expected a mapping node, but found %s", kindName(n))
	}
	entries, err := c.flatten(n)
	if err != nil {
		return nil, err
	}
	items := make(payload.OrderedMap, 0, len(entries))
	seen := make(map[any]int, len(entries)) // lines of the keys
	for _, e := range entries {
		keyNode := target(e.key)
		if keyNode.Kind != yamlv3.ScalarNode {
			return nil, c.failIn(n, keyNode, "found unacceptable key %s", reprNodes(keyNode))
		}
		key, err := c.key(keyNode)
		if err != nil {
			return nil, err
		}
		value, err := c.object(e.value, depth+1)
		if err != nil {
			return nil, err
		}
		id := pythonEqual(key)
		if c.objects {
			id, _ = pyobj.Hash(key) // scalars are hashable
		}
		if line, dup := seen[id]; dup {
			twice := c.failIn(n, keyNode, "found conflicting ID '%s'", pytext.Str(key))
			twice.FirstLine = line
			return nil, twice
		}
		seen[id] = keyNode.Line
		items = append(items, payload.Pair{Key: key, Value: value})
	}
	return items, nil
}

// key constructs a scalar key. Bytes become text, since they cannot be a key of a Go map.
func (c *constructor) key(n *yamlv3.Node) (any, error) {
	t := tag(n)
	if t == tagValue {
		return n.Value, nil
	}
	key, err := c.object(n, 0)
	if b, ok := key.([]byte); ok && !c.objects {
		return string(b), err
	}
	return key, err
}

// flatten returns the entries of a mapping with resolved merge keys (flatten_mapping of Salt's loader). Merged
// entries come first; keys of the mapping itself take precedence.
func (c *constructor) flatten(n *yamlv3.Node) ([]entry, error) {
	if done, ok := c.entries[n]; ok {
		if done == nil {
			return nil, c.fail(n, "found unconstructable recursive node")
		}
		return done, nil
	}
	var own, merged []entry
	hasMerge := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := target(n.Content[i]); k.Kind == yamlv3.ScalarNode && tag(k) == tagMerge {
			hasMerge = true
			continue
		}
		own = append(own, entry{n.Content[i], n.Content[i+1]})
	}
	if !hasMerge {
		return own, nil
	}
	if c.entries == nil {
		c.entries = map[*yamlv3.Node][]entry{}
	}
	c.entries[n] = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := target(n.Content[i]); k.Kind == yamlv3.ScalarNode && tag(k) == tagMerge {
			more, err := c.mergeOf(n, target(n.Content[i+1]))
			if err != nil {
				return nil, err
			}
			merged = append(merged, more...)
		}
	}
	has := make(map[string]bool, len(own))
	for _, e := range own {
		if k := target(e.key); k.Kind == yamlv3.ScalarNode {
			has[k.Value] = true
		}
	}
	all := make([]entry, 0, len(merged)+len(own))
	for _, e := range merged {
		if k := target(e.key); k.Kind != yamlv3.ScalarNode || !has[k.Value] {
			all = append(all, e)
		}
	}
	all = append(all, own...)
	c.entries[n] = all
	return all, nil
}

func (c *constructor) mergeOf(n, value *yamlv3.Node) ([]entry, error) {
	switch value.Kind {
	case yamlv3.MappingNode:
		return c.flatten(value)
	case yamlv3.SequenceNode:
		var all []entry
		for _, x := range value.Content {
			if sub := target(x); sub.Kind != yamlv3.MappingNode {
				return nil, c.failIn(n, sub, "expected a mapping for merging, but found %s", kindName(sub))
			}
		}
		for i := len(value.Content) - 1; i >= 0; i-- {
			sub := target(value.Content[i])
			more, err := c.flatten(sub)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
		return all, nil
	}
	return nil, c.failIn(n, value, "expected a mapping or list of mappings for merging, but found %s", kindName(value))
}

// set returns the members of a !!set in the order of the document.
func (c *constructor) set(n *yamlv3.Node, depth int) (any, error) {
	items, err := c.items(n, depth)
	if err != nil {
		return nil, err
	}
	list := make([]any, len(items))
	for i := range items {
		list[i] = items[i].Key
	}
	if c.objects {
		set := &pyobj.Set{}
		for _, k := range list {
			_ = set.Add(k)
		}
		return set, nil
	}
	return list, nil
}

// pairs constructs !!omap and !!pairs: a list of lists with two elements.
func (c *constructor) pairs(n *yamlv3.Node, what string, depth int) (any, error) {
	context := func(e *Error) *Error {
		e.Context, e.ContextLine, e.ContextColumn = "while constructing "+what, n.Line, n.Column
		return e
	}
	if n.Kind != yamlv3.SequenceNode {
		return nil, context(c.fail(n, "expected a sequence, but found %s", kindName(n)))
	}
	list := make([]any, 0, len(n.Content))
	for _, child := range n.Content {
		child = target(child)
		if child.Kind != yamlv3.MappingNode {
			return nil, context(c.fail(child, "expected a mapping of length 1, but found %s", kindName(child)))
		}
		if len(child.Content) != 2 {
			return nil, context(c.fail(child, "expected a single mapping item, but found %d items", len(child.Content)/2))
		}
		key, err := c.object(child.Content[0], depth+2)
		if err != nil {
			return nil, err
		}
		value, err := c.object(child.Content[1], depth+2)
		if err != nil {
			return nil, err
		}
		if c.objects {
			list = append(list, pyobj.Tuple{key, value})
		} else {
			list = append(list, []any{key, value})
		}
	}
	return c.list(list), nil
}

// pythonEqual returns the same value for all keys that are equal in Python (1, 1.0, True).
func pythonEqual(key any) any {
	switch k := key.(type) {
	case bool:
		if k {
			return int64(1)
		}
		return int64(0)
	case float64:
		if i := int64(k); k > -1<<63 && k < 1<<63 && float64(i) == k {
			return i
		}
	}
	return key
}

// reprBudget limits the text of an unusable key in an error.
const reprBudget = 8 << 10

// reprNodes returns Python's repr of a collection node's value, which PyYAML prints for a key that cannot be hashed.
func reprNodes(n *yamlv3.Node) string {
	var b strings.Builder
	writeNodes(&b, n)
	return b.String()
}

func writeNodes(b *strings.Builder, n *yamlv3.Node) {
	b.WriteByte('[')
	for i := 0; i < len(n.Content) && b.Len() < reprBudget; i++ {
		if i > 0 {
			b.WriteString(", ")
		}
		if n.Kind == yamlv3.MappingNode && i+1 < len(n.Content) {
			b.WriteByte('(')
			writeNode(b, n.Content[i])
			b.WriteString(", ")
			i++
			writeNode(b, n.Content[i])
			b.WriteByte(')')
		} else {
			writeNode(b, n.Content[i])
		}
	}
	b.WriteByte(']')
}

func writeNode(b *strings.Builder, n *yamlv3.Node) {
	n = target(n)
	kind := "ScalarNode"
	switch n.Kind {
	case yamlv3.MappingNode:
		kind = "MappingNode"
	case yamlv3.SequenceNode:
		kind = "SequenceNode"
	}
	b.WriteString(kind + "(tag='" + longTag + strings.TrimPrefix(tag(n), shortTag) + "', value=")
	if n.Kind == yamlv3.ScalarNode {
		b.WriteString(pytext.Repr(n.Value))
	} else {
		writeNodes(b, n)
	}
	b.WriteByte(')')
}
