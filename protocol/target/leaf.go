package target

import (
	"fmt"
	"slices"
	"strings"
)

// compileLeaf compiles a target of one of the simple types.
func compileLeaf(tgtType string, tgt any, delimiter string) (node, error) {
	s, isText := textOf(tgt)
	switch tgtType {
	case "", TypeGlob:
		if !isText {
			return constant(no), nil
		}
		if len(s) > maxExpression {
			return nil, ErrLimit
		}
		return compileGlob(s), nil
	case TypePCRE:
		if !isText {
			return nil, syntaxError("a regular expression must be text, not %T", tgt)
		}
		re, err := CompileRegex(s)
		if err != nil {
			return nil, err
		}
		return pcreNode{re}, nil
	case TypeList:
		return compileList(tgt), nil
	case TypeGrain, TypeGrainPCRE, TypePillar, TypePillarPCRE, TypePillarExact:
		return compileDelimited(tgtType, tgt, delimiter)
	case TypeIPCIDR:
		if !isText {
			return nil, syntaxError("a network must be text, not %T", tgt)
		}
		return compileCIDR(s)
	case TypeData:
		if !isText {
			return nil, syntaxError("a data expression must be text, not %T", tgt)
		}
		return compileData(s)
	case TypeRange:
		// Salt's answer is no, too, unless a library for range servers is installed.
		return constant(no), nil
	}
	return nil, fmt.Errorf("%w %s", ErrUnknownType, quoted(tgtType))
}

func (g *glob) eval(r *run) (answer, error) { return answerOf(g.match(r.subject.ID)), nil }

// pcreNode matches the id against a regular expression, from its start.
type pcreNode struct{ re *Regex }

func (n pcreNode) eval(r *run) (answer, error) {
	ok, err := n.re.MatchStart(r.subject.ID)
	return answerOf(ok), err
}

// A listNode is a set of ids, from an array or a string with commas.
type listNode struct {
	text  string
	ids   map[string]struct{}
	array bool
}

// compileList compiles a list of ids. A string is stored as it is, since Salt searches it.
func compileList(tgt any) node {
	n := listNode{}
	switch t := tgt.(type) {
	case string:
		n.text = t
		return n
	case []any:
		n.array = true
		n.ids = make(map[string]struct{}, len(t))
		for _, v := range t {
			if s, ok := v.(string); ok {
				n.ids[s] = struct{}{}
			}
		}
	case []string:
		n.array = true
		n.ids = make(map[string]struct{}, len(t))
		for _, s := range t {
			n.ids[s] = struct{}{}
		}
	case map[string]any:
		// Python's "in" looks at the keys of a map.
		n.array = true
		n.ids = make(map[string]struct{}, len(t))
		for s := range t {
			n.ids[s] = struct{}{}
		}
	default:
		return constant(no)
	}
	return n
}

func (n listNode) eval(r *run) (answer, error) {
	id := r.subject.ID
	if n.array {
		_, ok := n.ids[id]
		return answerOf(ok), nil
	}
	// Salt searches the string, so even an id with a comma is found.
	i := strings.Index(n.text, id)
	for from := 0; i >= 0; {
		end := from + i + len(id)
		if (from+i == 0 || n.text[from+i-1] == ',') && (end == len(n.text) || n.text[end] == ',') {
			return yes, nil
		}
		from += i + 1
		if from > len(n.text) {
			break
		}
		i = strings.Index(n.text[from:], id)
	}
	return no, nil
}

// sortedIDs returns the ids of a list target: those of an array sorted, those of a string in its order.
func (n listNode) sortedIDs() []string {
	if n.array {
		// The map has no order, and errors list the ids.
		ids := make([]string, 0, len(n.ids))
		for id := range n.ids {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		return ids
	}
	words := strings.Split(n.text, ",")
	return slices.DeleteFunc(words, func(s string) bool { return s == "" })
}

// A delimitedNode is a grain or pillar expression.
type delimitedNode struct {
	pillar    bool
	mode      SubdictMode
	expr      string
	delimiter string
}

// compileDelimited compiles a grain or pillar expression. eval parses it again for each minion, since keys may
// contain the delimiter.
func compileDelimited(tgtType string, tgt any, delimiter string) (node, error) {
	s, ok := textOf(tgt)
	if !ok {
		return constant(no), nil
	}
	if len(s) > maxExpression {
		return nil, ErrLimit
	}
	n := delimitedNode{expr: s, delimiter: delimiter}
	switch tgtType {
	case TypeGrainPCRE:
		n.mode = SubdictRegex
	case TypePillar:
		n.pillar = true
	case TypePillarPCRE:
		n.pillar, n.mode = true, SubdictRegex
	case TypePillarExact:
		n.pillar, n.mode = true, SubdictExact
	}
	if !strings.Contains(s, delimiter) {
		// Salt logs "Got insufficient arguments" and answers no.
		return constant(no), nil
	}
	return n, nil
}

func (n delimitedNode) eval(r *run) (answer, error) {
	source := r.subject.Grains
	if n.pillar {
		source = r.subject.Pillar
	}
	var data map[string]any
	if source != nil {
		data = source()
	}
	if data == nil {
		if r.partial {
			return unknown, nil
		}
		return no, nil
	}
	// Each expression of a target has its own budget.
	r.steps = 0
	ok, err := r.matchSubdict(data, n.expr, n.delimiter, n.mode)
	return answerOf(ok), err
}

// A dataNode is an expression on the minion's data store (salt/matchers/data_match.py).
type dataNode struct{ key, pattern string }

// compileData compiles an expression of type "data".
func compileData(s string) (node, error) {
	if len(s) > maxExpression {
		return nil, ErrLimit
	}
	key, rest, found := strings.Cut(s, ":")
	if !found {
		return constant(no), nil
	}
	// Salt uses only the first two parts.
	pattern, _, _ := strings.Cut(rest, ":")
	return dataNode{key, pattern}, nil
}

func (n dataNode) eval(r *run) (answer, error) {
	if r.subject.Data == nil {
		return no, nil
	}
	// As in Salt, the type of the value decides how it is compared.
	switch v := r.subject.Data()[n.key].(type) {
	case nil:
		return no, nil
	case []any:
		g := compileGlob(lower(n.pattern))
		for _, member := range v {
			if g.match(lower(Str(member))) {
				return yes, nil
			}
		}
		return no, nil
	case map[string]any:
		_, ok := v[n.pattern]
		return answerOf(ok), nil
	case map[any]any:
		_, ok := v[n.pattern]
		return answerOf(ok), nil
	case string:
		return answerOf(compileGlob(n.pattern).match(v)), nil
	default:
		return no, syntaxError("the data value %s is neither text, list nor map", quoted(n.key))
	}
}
