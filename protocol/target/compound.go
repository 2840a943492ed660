package target

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Word is one word of a compound expression, split into its parts: "G|@os|Debian" has engine 'G', delimiter "|"
// and the rest as pattern. Engine is 0 for a plain glob (salt.utils.minions.parse_target).
type Word struct {
	Engine    byte
	Delimiter string
	Pattern   string
}

// ParseWord splits a word of a compound expression.
func ParseWord(w string) Word {
	if w == "" || !strings.Contains("GPIJLNSER", w[:1]) {
		return Word{Pattern: w}
	}
	// Only these four engines may have a delimiter, which is any single character before the "@".
	rest := w[1:]
	if strings.Contains("GPIJ", w[:1]) && rest != "" {
		_, size := utf8.DecodeRuneInString(rest)
		if rest[0] != '\n' && strings.HasPrefix(rest[size:], "@") && len(rest) > size+1 {
			if pattern, ok := oneLine(rest[size+1:]); ok {
				return Word{w[0], rest[:size], pattern}
			}
		}
	}
	// Without a delimiter the "@" follows the letter.
	if pattern, ok := oneLine(strings.TrimPrefix(rest, "@")); ok && strings.HasPrefix(rest, "@") {
		return Word{w[0], "", pattern}
	}
	return Word{Pattern: w}
}

// oneLine implements ".+$" of Python's pattern: at least one character, and no line break but a final one, which is
// removed.
func oneLine(s string) (string, bool) {
	s = strings.TrimSuffix(s, "\n")
	return s, s != "" && !strings.Contains(s, "\n")
}

// ParseCompound compiles a compound expression, a string or a list of words. N@ words need the definitions of the
// node groups.
func ParseCompound(expr any, nodegroups map[string]any) (*Expr, error) {
	root, err := compileCompound(expr, nodegroups, false)
	if err != nil {
		return nil, err
	}
	return &Expr{root: root}, nil
}

// compileNodegroup compiles the expression of a node group. An unknown group matches no minion, as in Salt.
func compileNodegroup(tgt any, nodegroups map[string]any) (node, error) {
	name, ok := textOf(tgt)
	if !ok {
		return nil, fmt.Errorf("%w: the name is not text", ErrNodegroup)
	}
	// Check this first: NodegroupWords would return an error for an unknown group.
	if _, ok := nodegroups[name]; !ok {
		return constant(no), nil
	}
	words, err := NodegroupWords(name, nodegroups)
	if err != nil {
		return nil, err
	}
	return compileWords(words, nodegroups, false)
}

// compileCompound compiles a compound expression. exact forbids patterns in pillar words, which access rules need:
// a minion could otherwise guess a pillar value by patterns.
func compileCompound(tgt any, nodegroups map[string]any, exact bool) (node, error) {
	switch t := tgt.(type) {
	case string:
		return compileWords(splitWords(t), nodegroups, exact)
	case []string:
		return compileWords(t, nodegroups, exact)
	case []any:
		words := make([]string, len(t))
		for i, v := range t {
			w, ok := v.(string)
			if !ok {
				return nil, syntaxError("word %d of the compound target is not text", i)
			}
			words[i] = w
		}
		return compileWords(words, nodegroups, exact)
	}
	return nil, syntaxError("a compound target is text or a list, not %T", tgt)
}

// A token is one word: an operator, or a compiled operand.
type token struct {
	op      string
	operand node
}

// compileWords converts words to tokens as Salt does, inserts the "and" that a "not" after an operand implies, and
// parses the tokens by Python's precedence: not, and, or. Salt builds a Python expression and calls eval on it; here
// nothing is evaluated as code.
func compileWords(words []string, nodegroups map[string]any, exact bool) (node, error) {
	if len(words) > maxWords {
		return nil, ErrLimit
	}
	var tokens []token
	// spent also counts the words of node groups, which may contain each other.
	spent := len(words)
	queue := words
	for len(queue) > 0 {
		w := queue[0]
		queue = queue[1:]
		if isOperator(w) {
			var err error
			if tokens, err = appendOperator(tokens, w); err != nil {
				return nil, err
			}
			continue
		}
		word := ParseWord(w)
		if word.Engine == 'N' {
			expanded, err := NodegroupWords(word.Pattern, nodegroups)
			if err != nil {
				return nil, err
			}
			if spent += len(expanded); spent > maxWords {
				return nil, ErrLimit
			}
			// The words of the group take the place of its name.
			queue = append(append(make([]string, 0, len(expanded)+len(queue)), expanded...), queue...)
			continue
		}
		operand, err := compileWord(word, exact)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, token{operand: operand})
	}
	p := parser{tokens: tokens}
	root, err := p.parseOr()
	if err != nil {
		return nil, err
	}
	// Two operands have no operator between them. Python would see a call or a syntax error.
	if p.pos < len(tokens) {
		return nil, syntaxError("operator missing before word %d of the compound target", p.pos+1)
	}
	return root, nil
}

// appendOperator checks an operator against the token before it, with the errors that Salt logs.
func appendOperator(tokens []token, w string) ([]token, error) {
	last := "start"
	if len(tokens) > 0 {
		last = tokens[len(tokens)-1].op
	}
	switch {
	case last == "start" && w != "(" && w != "not":
		return nil, syntaxError("a compound target cannot begin with %s", w)
	case last == "(" && (w == "and" || w == "or"):
		return nil, syntaxError("%s after an opening parenthesis", w)
	// "a not b" means "a and not b" in Salt.
	case w == "not" && last != "start" && last != "and" && last != "or" && last != "(":
		tokens = append(tokens, token{op: "and"})
	}
	return append(tokens, token{op: w}), nil
}

// compileWord compiles one operand.
func compileWord(w Word, exact bool) (node, error) {
	delimiter := w.Delimiter
	// A word without a delimiter has the default one.
	if delimiter == "" {
		delimiter = DefaultDelimiter
	}
	switch w.Engine {
	case 0:
		return compileLeaf(TypeGlob, w.Pattern, delimiter)
	case 'G':
		return compileLeaf(TypeGrain, w.Pattern, delimiter)
	case 'P':
		return compileLeaf(TypeGrainPCRE, w.Pattern, delimiter)
	case 'I', 'J':
		if exact {
			return compileLeaf(TypePillarExact, w.Pattern, delimiter)
		}
		if w.Engine == 'I' {
			return compileLeaf(TypePillar, w.Pattern, delimiter)
		}
		return compileLeaf(TypePillarPCRE, w.Pattern, delimiter)
	case 'L':
		return compileLeaf(TypeList, w.Pattern, delimiter)
	case 'S':
		n, err := compileLeaf(TypeIPCIDR, w.Pattern, delimiter)
		if err != nil {
			// Salt's matcher returns an empty list here, so "not S@junk" is true.
			return constant(no), nil
		}
		return n, nil
	case 'E':
		return compileLeaf(TypePCRE, w.Pattern, delimiter)
	}
	// R needs a library for range servers, which Salt's packages do not contain. There, too, the letter is unknown.
	return nil, syntaxError("unrecognized target engine %q", string(w.Engine))
}

// A parser is a recursive-descent parser of the tokens, one method per precedence.
type parser struct {
	tokens []token
	pos    int
	depth  int
}

// currentOp returns the operator at the current position, "" for an operand and "end" after the last token.
func (p *parser) currentOp() string {
	if p.pos < len(p.tokens) {
		return p.tokens[p.pos].op
	}
	return "end"
}

// parseOr parses operands joined by "or".
func (p *parser) parseOr() (node, error) {
	left, err := p.parseAnd()
	if err != nil || p.currentOp() != "or" {
		return left, err
	}
	// Only two or more operands need a list.
	list := orNode{left}
	for p.currentOp() == "or" {
		p.pos++
		right, err := p.parseAnd()
		if err != nil {
			return nil, err
		}
		list = append(list, right)
	}
	return list, nil
}

// parseAnd parses operands joined by "and".
func (p *parser) parseAnd() (node, error) {
	left, err := p.parseNot()
	if err != nil || p.currentOp() != "and" {
		return left, err
	}
	list := andNode{left}
	for p.currentOp() == "and" {
		p.pos++
		right, err := p.parseNot()
		if err != nil {
			return nil, err
		}
		list = append(list, right)
	}
	return list, nil
}

// parseNot parses an operand with an optional "not".
func (p *parser) parseNot() (node, error) {
	if p.currentOp() != "not" {
		return p.parseAtom()
	}
	p.pos++
	inner, err := p.parseAtom()
	if err != nil {
		return nil, err
	}
	return notNode{inner}, nil
}

// parseAtom parses an operand or an expression in parentheses.
func (p *parser) parseAtom() (node, error) {
	switch op := p.currentOp(); op {
	case "":
		p.pos++
		return p.tokens[p.pos-1].operand, nil
	case "(":
		// Each level is a recursion, so the depth is limited.
		if p.depth++; p.depth > maxNesting {
			return nil, ErrLimit
		}
		p.pos++
		if p.currentOp() == ")" {
			// Python reads "()" as an empty tuple, which is false.
			p.pos++
			p.depth--
			return constant(no), nil
		}
		inner, err := p.parseOr()
		if err != nil {
			return nil, err
		}
		if p.currentOp() != ")" {
			return nil, syntaxError("closing parenthesis missing in the compound target")
		}
		p.pos++
		p.depth--
		return inner, nil
	case "end":
		return nil, syntaxError("the compound target ends too early")
	default:
		return nil, syntaxError("unexpected %s in the compound target", op)
	}
}

// The operators follow Kleene's logic: unknown stays unknown unless the other side decides.
type (
	orNode  []node
	andNode []node
	notNode struct{ inner node }
)

// eval stops at the first yes, which decides. andNode's eval stops at the first no.
func (n orNode) eval(r *run) (answer, error) {
	result := no
	for _, part := range n {
		v, err := part.eval(r)
		if err != nil {
			return no, err
		}
		if v == yes {
			return yes, nil
		}
		if v == unknown {
			result = unknown
		}
	}
	return result, nil
}

func (n andNode) eval(r *run) (answer, error) {
	result := yes
	for _, part := range n {
		v, err := part.eval(r)
		if err != nil {
			return no, err
		}
		if v == no {
			return no, nil
		}
		if v == unknown {
			result = unknown
		}
	}
	return result, nil
}

func (n notNode) eval(r *run) (answer, error) {
	v, err := n.inner.eval(r)
	if err != nil || v == unknown {
		return v, err
	}
	if v == yes {
		return no, nil
	}
	return yes, nil
}
