package target

import (
	"slices"
	"strings"
)

// Needs are the parts of a minion's grains and pillar on which the answer of an expression depends.
type Needs struct {
	// Grains and Pillar are keys of the top level, sorted.
	Grains, Pillar []string
	// AllGrains and AllPillar mean that the answer may depend on any key.
	AllGrains, AllPillar bool
}

// Nothing reports whether the expression depends on ids alone.
func (n Needs) Nothing() bool {
	return len(n.Grains) == 0 && len(n.Pillar) == 0 && !n.AllGrains && !n.AllPillar
}

// Needs returns what the expression depends on.
func (e *Expr) Needs() Needs {
	var n Needs
	collectNeeds(e.root, &n)
	for _, list := range []*[]string{&n.Grains, &n.Pillar} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return n
}

func collectNeeds(x node, n *Needs) {
	switch x := x.(type) {
	case orNode:
		for _, part := range x {
			collectNeeds(part, n)
		}
	case andNode:
		for _, part := range x {
			collectNeeds(part, n)
		}
	case notNode:
		collectNeeds(x.inner, n)
	case cidrNode:
		n.Grains = append(n.Grains, "ipv4", "ipv6")
	case delimitedNode:
		// The first part of any expression is a key of the top level (see matchSubdict).
		key, _, _ := strings.Cut(x.expr, x.delimiter)
		keys, all := &n.Grains, &n.AllGrains
		if x.pillar {
			keys, all = &n.Pillar, &n.AllPillar
		}
		*all = *all || key == "*"
		*keys = append(*keys, key)
		if other, ok := yamlKey(key); ok {
			if s, ok := other.(string); ok {
				*keys = append(*keys, s)
			}
		}
	case *glob, pcreNode, listNode, dataNode, constant:
	default: // a node type that this function does not know
		n.AllGrains, n.AllPillar = true, true
	}
}
