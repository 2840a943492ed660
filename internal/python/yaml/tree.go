package yaml

import (
	"fmt"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Node is a node of a document with its position, for tools that report positions to their user.
type Node struct {
	// Line is the line where the node begins, from 1.
	Line int
	// Scalar marks a single value. Text is its source text without quotes. A missing value is a scalar without text.
	Scalar bool
	Text   string
	// Items has the elements of a sequence, Pairs the entries of a mapping.
	Items []*Node
	Pairs []Pair
}

// Pair is an entry of a mapping.
type Pair struct{ Key, Value *Node }

// Get returns the value of a key, or nil if the node does not have it. For a duplicate key it returns the last value.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for i := len(n.Pairs) - 1; i >= 0; i-- {
		if k := n.Pairs[i].Key; k.Scalar && k.Text == key {
			return n.Pairs[i].Value
		}
	}
	return nil
}

// Tree parses a document into nodes without constructing values. It ignores tags, allows duplicate keys, and
// represents an alias as an empty scalar. It returns nil for an empty document.
func Tree(b []byte, name string) (*Node, error) {
	if len(b) > MaxInput {
		return nil, fmt.Errorf("cannot parse %s: %d bytes exceed %d: %w", name, len(b), MaxInput, ErrLimit)
	}
	root, err := compose(b, name)
	if err != nil || root == nil {
		return nil, err
	}
	return tree(root, name, 0)
}

func tree(n *yamlv3.Node, name string, depth int) (*Node, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("cannot parse %s: more than %d levels: %w", name, MaxDepth, ErrLimit)
	}
	out := &Node{Line: n.Line}
	var list []*Node
	for _, c := range n.Content {
		child, err := tree(c, name, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, child)
	}
	switch n.Kind {
	case yamlv3.DocumentNode:
		if len(list) == 1 {
			return list[0], nil
		}
		out.Scalar = true
	case yamlv3.SequenceNode:
		out.Items = list
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(list); i += 2 {
			out.Pairs = append(out.Pairs, Pair{list[i], list[i+1]})
		}
	case yamlv3.ScalarNode:
		out.Scalar, out.Text = true, n.Value
	default:
		out.Scalar = true
	}
	return out, nil
}
