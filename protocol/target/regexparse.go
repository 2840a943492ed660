package target

import (
	"strconv"
	"strings"
	"unicode"
)

// rxOp is the kind of a node of a parsed regular expression.
type rxOp uint8

// The kinds of nodes. Assertions are at the end.
const (
	rxLiteral rxOp = iota
	rxSet
	rxAny
	rxConcat
	rxAlternate
	rxRepeat
	rxGroup
	rxAtomic
	rxLook
	rxBackref
	rxConditional
	rxLineStart
	rxLineEnd
	rxTextStart
	rxTextEnd
	rxBoundary
)

// rxFlags are the flags that apply to a node.
type rxFlags uint8

// The flags of the letters i, m, s, x, a and u.
const (
	flagFold rxFlags = 1 << iota
	flagMulti
	flagDotAll
	flagVerbose
	flagASCII
	flagUnicode
)

const (
	rxInfinite = 1<<32 - 1 // re's MAXREPEAT
	rxDepth    = 200       // nested groups; Python fails at about 250
)

// An rxNode is a node of a parsed pattern.
type rxNode struct {
	op       rxOp
	flags    rxFlags
	r        rune
	set      *rxCharSet
	subs     []*rxNode
	min, max int64
	// lazy and possessive belong to rxRepeat, negate to rxLook and rxBoundary, behind to rxLook.
	lazy, possessive, negate, behind bool
	group                            int
}

// rxCharSet is the content of brackets, or one class such as \d.
type rxCharSet struct {
	negate bool
	ranges []runeRange
	// classes holds the letters of classes in the set: d, D, w, W, s, S.
	classes string
}

// An rxParser parses Python's grammar (re/_parser.py) by recursive descent. A syntax error is a panic with rxError,
// which parse recovers. Errors can occur at any depth.
type rxParser struct {
	src   []rune
	pos   int
	flags rxFlags
	depth int
	// widths[i] is the width of group i+1, nil while the group is open. names maps the names of groups to their
	// numbers.
	widths []*rxWidth
	names  map[string]int
	// behindFrom is the number of groups at the start of the outermost look-behind, -1 outside of one.
	behindFrom int
	condRefs   []int
	// opened is the position of the last opening parenthesis, for errors.
	opened int
}

// rxWidth is the range of lengths that a group can match.
type rxWidth struct{ lo, hi int64 }

// rxError carries a syntax error out of the recursion.
type rxError struct{ msg string }

// Error returns Python's text, without the position.
func (e rxError) Error() string { return e.msg }

// parseRegex parses a pattern without initial flags.
func parseRegex(pattern string) (root *rxNode, err error) {
	p := &rxParser{src: []rune(pattern), behindFrom: -1}
	root, bad := p.parse()
	if bad != nil {
		return nil, syntaxError("regular expression %s: %s at position %d", quoted(pattern), bad.msg, p.pos)
	}
	return root, nil
}

// parse parses the whole pattern. After an error, pos is its position.
func (p *rxParser) parse() (root *rxNode, bad *rxError) {
	defer func() {
		if e := recover(); e != nil {
			x, ours := e.(rxError)
			if !ours {
				panic(e)
			}
			bad = &x
		}
	}()
	root = p.parseAlternatives(true)
	if p.pos < len(p.src) {
		p.fail("unbalanced parenthesis")
	}
	// A conditional may refer to a later group, so its reference is checked at the end.
	for _, n := range p.condRefs {
		if n > len(p.widths) {
			p.fail("invalid group reference " + strconv.Itoa(n))
		}
	}
	return root, nil
}

// fail ends the parse with an error.
func (p *rxParser) fail(msg string) { panic(rxError{msg}) }

// failAt is like fail for an earlier position, as Python reports it.
func (p *rxParser) failAt(pos int, msg string) {
	p.pos = pos
	p.fail(msg)
}

// next returns the next character without consuming it, or -1 at the end.
func (p *rxParser) next() rune {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return -1
}

// get consumes and returns the next character.
func (p *rxParser) get() rune {
	r := p.next()
	if r >= 0 {
		p.pos++
	}
	return r
}

// accept consumes the next character if it is r, and reports whether it was.
func (p *rxParser) accept(r rune) bool {
	if p.next() == r {
		p.pos++
		return true
	}
	return false
}

// until returns the text up to the character end, and consumes both. what names the text in errors.
func (p *rxParser) until(end rune, what string) string {
	start := p.pos
	for {
		switch p.get() {
		case -1:
			if p.pos == start {
				p.fail("missing " + what)
			}
			p.fail("missing " + string(end) + ", unterminated name")
		case end:
			s := string(p.src[start : p.pos-1])
			if s == "" {
				p.fail("missing " + what)
			}
			return s
		}
	}
}

// parseAlternatives parses a|b|c up to a closing parenthesis or the end. Flags that are set inside do not apply
// outside.
func (p *rxParser) parseAlternatives(top bool) *rxNode {
	if p.depth++; p.depth > rxDepth {
		p.fail("too many nested groups")
	}
	defer func() { p.depth-- }()
	n := &rxNode{op: rxAlternate}
	for {
		n.subs = append(n.subs, p.parseSequence(top && len(n.subs) == 0))
		if !p.accept('|') {
			break
		}
	}
	if len(n.subs) == 1 {
		return n.subs[0]
	}
	return n
}

// parseSequence parses items up to "|", ")" or the end.
func (p *rxParser) parseSequence(first bool) *rxNode {
	n := &rxNode{op: rxConcat}
	for {
		switch c := p.next(); {
		case c < 0, c == '|', c == ')':
			return n
		// In verbose mode white space and comments are skipped, but not inside brackets.
		case p.flags&flagVerbose != 0 && strings.ContainsRune(" \t\n\r\v\f", c):
			p.pos++
		case p.flags&flagVerbose != 0 && c == '#':
			for r := p.get(); r >= 0 && r != '\n'; r = p.get() {
			}
		case c == '*', c == '+', c == '?', c == '{':
			p.parseQuantifier(n)
		default:
			if item := p.parseItem(first && len(n.subs) == 0); item != nil {
				n.subs = append(n.subs, item)
			}
		}
	}
}

// node returns a node with the current flags.
func (p *rxParser) node(op rxOp) *rxNode { return &rxNode{op: op, flags: p.flags} }

// literal returns the node of one character.
func (p *rxParser) literal(r rune) *rxNode {
	n := p.node(rxLiteral)
	n.r = r
	return n
}

// parseItem parses one item, to which a quantifier may apply. It returns nil for comments and flags.
func (p *rxParser) parseItem(first bool) *rxNode {
	switch c := p.get(); c {
	case '\\':
		return p.parseEscape()
	case '[':
		return p.charSet()
	case '.':
		return p.node(rxAny)
	case '^':
		return p.node(rxLineStart)
	case '$':
		return p.node(rxLineEnd)
	case '(':
		return p.parseGroup(first)
	default:
		return p.literal(c)
	}
}

// parseQuantifier applies * + ? {m,n} to the last item of the sequence.
func (p *rxParser) parseQuantifier(seq *rxNode) {
	start := p.pos
	c := p.get()
	lo, hi := int64(0), int64(rxInfinite)
	// A brace that does not begin bounds is an ordinary character.
	switch c {
	case '+':
		lo = 1
	case '?':
		hi = 1
	case '{':
		var ok bool
		if lo, hi, ok = p.parseBounds(); !ok {
			seq.subs = append(seq.subs, p.literal('{'))
			return
		}
	}
	if len(seq.subs) == 0 {
		p.failAt(start, "nothing to repeat")
	}
	// An assertion cannot be repeated, and neither can a repetition without a group around it.
	last := seq.subs[len(seq.subs)-1]
	switch last.op {
	case rxLineStart, rxLineEnd, rxTextStart, rxTextEnd, rxBoundary:
		p.failAt(start, "nothing to repeat")
	case rxRepeat:
		p.failAt(start, "multiple repeat")
	}
	n := p.node(rxRepeat)
	n.subs, n.min, n.max = []*rxNode{last}, lo, hi
	if p.accept('?') {
		n.lazy = true
	} else if p.accept('+') {
		n.possessive = true
	}
	seq.subs[len(seq.subs)-1] = n
}

// parseBounds parses m,n} after a brace. ok is false if the brace does not begin bounds.
func (p *rxParser) parseBounds() (lo, hi int64, ok bool) {
	start := p.pos
	if p.next() == '}' {
		return 0, 0, false
	}
	// digits reads a number, which may be empty.
	digits := func() string {
		from := p.pos
		for p.next() >= '0' && p.next() <= '9' {
			p.pos++
		}
		return string(p.src[from:p.pos])
	}
	low := digits()
	high := low
	if p.accept(',') {
		high = digits()
	}
	if !p.accept('}') {
		p.pos = start
		return 0, 0, false
	}
	lo, hi = 0, rxInfinite
	parse := func(s string) int64 {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v >= rxInfinite {
			p.fail("the repetition number is too large")
		}
		return v
	}
	if low != "" {
		lo = parse(low)
	}
	if high != "" {
		if hi = parse(high); hi < lo {
			p.fail("min repeat greater than max repeat")
		}
	}
	return lo, hi, true
}

// parseEscape parses what follows a backslash outside of brackets.
func (p *rxParser) parseEscape() *rxNode {
	c := p.get()
	switch c {
	case -1:
		p.failAt(p.pos-1, "bad escape (end of pattern)")
	case 'A':
		return p.node(rxTextStart)
	case 'Z':
		return p.node(rxTextEnd)
	case 'b', 'B':
		n := p.node(rxBoundary)
		n.negate = c == 'B'
		return n
	case 'd', 'D', 'w', 'W', 's', 'S':
		n := p.node(rxSet)
		n.set = &rxCharSet{classes: string(c)}
		return n
	}
	if c >= '1' && c <= '9' {
		return p.numericEscape(c)
	}
	return p.literal(p.charEscape(c))
}

// numericEscape parses a group reference, or a character written as three octal digits.
func (p *rxParser) numericEscape(c rune) *rxNode {
	group := int(c - '0')
	if d := p.next(); d >= '0' && d <= '9' {
		// Three octal digits are a character; fewer digits refer to a group.
		p.pos++
		group = group*10 + int(d-'0')
		if e := p.next(); c < '8' && d < '8' && e >= '0' && e < '8' {
			p.pos++
			r := (c-'0')<<6 | (d-'0')<<3 | (e - '0')
			if r > 0o377 {
				p.fail("octal escape value outside of range 0-0o377")
			}
			return p.literal(r)
		}
	}
	return p.backref(group)
}

// backref returns a reference to a group, which must exist and be closed.
func (p *rxParser) backref(group int) *rxNode {
	if group > len(p.widths) {
		p.fail("invalid group reference " + strconv.Itoa(group))
	}
	if p.widths[group-1] == nil {
		p.fail("cannot refer to an open group")
	}
	p.checkBehind(group)
	n := p.node(rxBackref)
	n.group = group
	return n
}

// checkBehind fails for a reference inside a look-behind to a group that begins in it, since its width is not known.
func (p *rxParser) checkBehind(group int) {
	if p.behindFrom < 0 {
		return
	}
	if group > len(p.widths) || p.widths[group-1] == nil || group > p.behindFrom {
		p.fail("cannot refer to group defined in the same lookbehind subpattern")
	}
}

// charEscape parses an escape for one character, inside or outside of brackets.
func (p *rxParser) charEscape(c rune) rune {
	switch c {
	case 'a':
		return 7
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'v':
		return '\v'
	case 'x':
		return p.hexEscape(2)
	case 'u':
		return p.hexEscape(4)
	case 'U':
		return p.hexEscape(8)
	}
	switch {
	case c >= '0' && c <= '7':
		r := c - '0'
		for i := 0; i < 2 && p.next() >= '0' && p.next() <= '7'; i++ {
			r = r<<3 | (p.get() - '0')
		}
		if r > 0o377 {
			p.fail("octal escape value outside of range 0-0o377")
		}
		return r
	// Python reserves letters and digits for later use; other characters are ordinary.
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		p.failAt(p.pos-2, `bad escape \`+string(c))
	}
	return c
}

// hexEscape reads the n hexadecimal digits of an escape.
func (p *rxParser) hexEscape(n int) rune {
	end := p.pos
	for end < len(p.src) && end < p.pos+n && strings.ContainsRune("0123456789abcdefABCDEF", p.src[end]) {
		end++
	}
	start := p.pos - 2
	if end < p.pos+n {
		p.failAt(start, "incomplete escape "+string(p.src[start:end]))
	}
	v, err := strconv.ParseUint(string(p.src[p.pos:end]), 16, 32)
	if err != nil || v > unicode.MaxRune {
		p.failAt(start, "bad escape "+string(p.src[start:end]))
	}
	p.pos = end
	return rune(v)
}

// charSet parses the content of brackets.
func (p *rxParser) charSet() *rxNode {
	n := p.node(rxSet)
	set, start := &rxCharSet{}, p.pos-1
	n.set = set
	set.negate = p.accept('^')
	for count := 0; ; count++ {
		c := p.get()
		if c < 0 {
			p.failAt(start, "unterminated character set")
		}
		// A closing bracket at the beginning belongs to the set.
		if c == ']' && count > 0 {
			return n
		}
		from := p.pos - 1
		lo, class := p.setItem(c)
		// Without a hyphen it is a single character or class.
		if !p.accept('-') {
			set.add(lo, lo, class)
			continue
		}
		c = p.get()
		if c < 0 {
			p.failAt(start, "unterminated character set")
		}
		if c == ']' {
			set.add(lo, lo, class)
			set.add('-', '-', 0)
			return n
		}
		hi, class2 := p.setItem(c)
		if class != 0 || class2 != 0 || hi < lo {
			p.failAt(from, "bad character range "+string(p.src[from:p.pos]))
		}
		set.add(lo, hi, 0)
	}
}

// add adds a range, or the class if it is not 0.
func (s *rxCharSet) add(lo, hi, class rune) {
	if class != 0 {
		s.classes += string(class)
		return
	}
	s.ranges = append(s.ranges, runeRange{lo, hi})
}

// setItem returns a character, or the letter of a class.
func (p *rxParser) setItem(c rune) (r, class rune) {
	if c != '\\' {
		return c, 0
	}
	switch c = p.get(); c {
	case -1:
		p.failAt(p.pos-1, "bad escape (end of pattern)")
	case 'd', 'D', 'w', 'W', 's', 'S':
		return 0, c
	case 'b':
		return '\b', 0
	}
	return p.charEscape(c), 0
}
