package target

import (
	"strconv"
	"strings"
	"unicode"
)

// parseGroup parses what follows an opening parenthesis. It returns nil for comments and global flags.
func (p *rxParser) parseGroup(first bool) *rxNode {
	p.opened = p.pos - 1
	if !p.accept('?') {
		return p.parseCapture("")
	}
	// The character after "(?" determines the kind of the group.
	c := p.get()
	switch c {
	case -1:
		p.fail("unexpected end of pattern")
	case 'P':
		return p.parseNamed()
	case ':':
		return p.parseInner(p.flags)
	case '#':
		for {
			switch p.get() {
			case -1:
				p.fail("missing ), unterminated comment")
			case ')':
				return nil
			}
		}
	case '=', '!':
		return p.parseLook(false, c == '!')
	case '<':
		if c = p.get(); c != '=' && c != '!' {
			p.fail("unknown extension ?<")
		}
		return p.parseLook(true, c == '!')
	case '(':
		return p.parseConditional()
	case '>':
		n := p.node(rxAtomic)
		n.subs = []*rxNode{p.parseInner(p.flags)}
		return n
	}
	if c == '-' || flagOf(c) != 0 || c == 'L' {
		return p.flagGroup(c, first)
	}
	p.fail("unknown extension ?" + string(c))
	return nil
}

// parseInner parses up to the closing parenthesis with the given flags.
func (p *rxParser) parseInner(flags rxFlags) *rxNode {
	saved, start := p.flags, p.opened
	p.flags = flags
	n := p.parseAlternatives(false)
	p.flags = saved
	if !p.accept(')') {
		p.failAt(start, "missing ), unterminated subpattern")
	}
	// The node keeps the content apart from the surrounding sequence: a quantifier must apply to one item, and a
	// repetition inside may be repeated.
	return &rxNode{op: rxConcat, flags: flags, subs: []*rxNode{n}}
}

// parseCapture parses a capturing group with an optional name. The width of the group is known once it is closed.
func (p *rxParser) parseCapture(name string) *rxNode {
	p.widths = append(p.widths, nil)
	n := p.node(rxGroup)
	n.group = len(p.widths)
	if name != "" {
		if p.names == nil {
			p.names = make(map[string]int)
		}
		if _, taken := p.names[name]; taken {
			p.fail("redefinition of group name " + name)
		}
		p.names[name] = n.group
	}
	n.subs = []*rxNode{p.parseInner(p.flags)}
	w := p.widthOf(n.subs[0])
	p.widths[n.group-1] = &w
	return n
}

// parseNamed parses (?P<name>…) and (?P=name).
func (p *rxParser) parseNamed() *rxNode {
	switch p.get() {
	case '<':
		return p.parseCapture(p.groupName(p.until('>', "group name")))
	case '=':
		name := p.groupName(p.until(')', "group name"))
		group, ok := p.names[name]
		if !ok {
			p.fail("unknown group name " + name)
		}
		return p.backref(group)
	case -1:
		p.fail("unexpected end of pattern")
	}
	p.fail("unknown extension ?P")
	return nil
}

// groupName checks the name of a group.
func (p *rxParser) groupName(s string) string {
	if !isIdentifier(s) {
		p.fail("bad character in group name")
	}
	return s
}

// isIdentifier reports whether a text is an identifier by Python's rules.
func isIdentifier(s string) bool {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.In(r, unicode.Nd, unicode.Mn, unicode.Mc, unicode.Nl)) {
			return false
		}
	}
	return s != ""
}

// parseLook parses a look-ahead or look-behind. As in Python, a look-behind needs a fixed width.
func (p *rxParser) parseLook(behind, negate bool) *rxNode {
	n := p.node(rxLook)
	n.behind, n.negate = behind, negate
	saved := p.behindFrom
	if behind && saved < 0 {
		p.behindFrom = len(p.widths)
	}
	n.subs = []*rxNode{p.parseInner(p.flags)}
	p.behindFrom = saved
	if behind {
		if w := p.widthOf(n.subs[0]); w.lo != w.hi {
			p.fail("look-behind requires fixed-width pattern")
		}
	}
	return n
}

// parseConditional parses (?(group)yes|no).
func (p *rxParser) parseConditional() *rxNode {
	start := p.opened
	name := p.until(')', "group name")
	group, ok := 0, false
	// The reference is a name, or else a number, which may be that of a later group.
	if isIdentifier(name) {
		if group, ok = p.names[name]; !ok {
			p.fail("unknown group name " + name)
		}
	} else {
		n, valid := pythonInt(name)
		if !valid || n < 0 {
			p.fail("bad character in group name")
		}
		if n == 0 || n > rxInfinite/16 {
			p.fail("bad group number")
		}
		group = int(n)
		p.condRefs = append(p.condRefs, group)
	}
	p.checkBehind(group)
	n := p.node(rxConditional)
	n.group = group
	n.subs = []*rxNode{p.parseSequence(false)}
	if p.accept('|') {
		n.subs = append(n.subs, p.parseSequence(false))
		if p.next() == '|' {
			p.fail("conditional backref with more than two branches")
		}
	}
	if !p.accept(')') {
		p.failAt(start, "missing ), unterminated subpattern")
	}
	return n
}

// flagOf returns the flag of a letter, or 0 if the letter is not a flag.
func flagOf(c rune) rxFlags {
	switch c {
	case 'i':
		return flagFold
	case 'm':
		return flagMulti
	case 's':
		return flagDotAll
	case 'x':
		return flagVerbose
	case 'a':
		return flagASCII
	case 'u':
		return flagUnicode
	}
	return 0
}

// flagGroup parses (?flags) at the start of the pattern and (?flags-flags:…) anywhere.
func (p *rxParser) flagGroup(c rune, first bool) *rxNode {
	var set, clear rxFlags
	// The flags to set come first.
	for c != '-' && c != ':' && c != ')' {
		f := flagOf(c)
		if f == 0 {
			p.fail("unknown flag, or one that text patterns cannot have")
		}
		if set |= f; set&flagASCII != 0 && set&flagUnicode != 0 {
			p.fail("flags 'a' and 'u' are incompatible")
		}
		if c = p.get(); c < 0 {
			p.fail("missing -, : or )")
		}
	}
	if c == ')' {
		if !first {
			p.failAt(p.opened, "global flags not at the start of the expression")
		}
		p.flags |= set
		return nil
	}
	if c == '-' {
		for c = p.get(); c != ':' || clear == 0; c = p.get() {
			f := flagOf(c)
			if f == 0 || f&(flagASCII|flagUnicode) != 0 {
				p.fail("bad inline flags")
			}
			clear |= f
		}
	}
	if set&clear != 0 {
		p.fail("flag turned on and off")
	}
	flags := (p.flags | set) &^ clear
	if set&flagUnicode != 0 {
		flags &^= flagASCII
	}
	return p.parseInner(flags)
}

// widthOf returns the range of lengths that a node can match, as Python computes it for look-behind.
func (p *rxParser) widthOf(n *rxNode) rxWidth {
	switch n.op {
	case rxLiteral, rxSet, rxAny:
		return rxWidth{1, 1}
	case rxConcat:
		var w rxWidth
		for _, s := range n.subs {
			x := p.widthOf(s)
			w.lo, w.hi = cap32(w.lo+x.lo), cap32(w.hi+x.hi)
		}
		return w
	case rxAlternate:
		w := p.widthOf(n.subs[0])
		for _, s := range n.subs[1:] {
			x := p.widthOf(s)
			w.lo, w.hi = min(w.lo, x.lo), max(w.hi, x.hi)
		}
		return w
	case rxRepeat:
		w := p.widthOf(n.subs[0])
		return rxWidth{product(w.lo, n.min), product(w.hi, n.max)}
	case rxGroup, rxAtomic:
		return p.widthOf(n.subs[0])
	case rxBackref:
		return *p.widths[n.group-1]
	case rxConditional:
		w := p.widthOf(n.subs[0])
		if len(n.subs) == 1 {
			return rxWidth{0, w.hi}
		}
		x := p.widthOf(n.subs[1])
		return rxWidth{min(w.lo, x.lo), max(w.hi, x.hi)}
	}
	return rxWidth{}
}

// cap32 and product compute with widths that stay at MAXREPEAT once they reach it, as Python's do.
func cap32(n int64) int64 { return min(n, rxInfinite) }

func product(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	if a > rxInfinite/b {
		return rxInfinite
	}
	return a * b
}

// An emitter writes a parsed pattern for Go's engine (linear) or for the backtracking one.
type emitter struct {
	out    strings.Builder
	linear bool
	// captures keeps the groups of a linear pattern. Matching alone does not need them.
	captures bool
	// unsupported means that linear cannot express the pattern. boundary, dollar and nonEmpty mean that the linear
	// pattern is right for some strings only; see Regex.
	unsupported, boundary, dollar, nonEmpty bool
}

// writeNode writes one node and its children.
func (e *emitter) writeNode(n *rxNode) {
	switch n.op {
	case rxLiteral:
		// With re.ASCII only ASCII letters have two cases; Go's engines would add others.
		if n.flags&(flagFold|flagASCII) == flagFold|flagASCII {
			one := rxCharSet{ranges: []runeRange{{n.r, n.r}}}
			e.writeSet(one.foldASCII(), n.flags)
			return
		}
		e.writeFolded(n, func() { e.writeChar(n.r) })
	case rxSet:
		if n.flags&(flagFold|flagASCII) == flagFold|flagASCII {
			e.writeSet(n.set.foldASCII(), n.flags)
			return
		}
		e.writeFolded(n, func() { e.writeSet(n.set, n.flags) })
	case rxAny:
		if n.flags&flagDotAll != 0 {
			e.out.WriteString(`[\x00-` + e.last() + `]`)
		} else {
			e.out.WriteString(`[^\n]`)
		}
	case rxConcat:
		// Each sequence becomes a group, so that a quantifier after it applies to all of it.
		e.out.WriteString(`(?:`)
		for _, s := range n.subs {
			e.writeNode(s)
		}
		e.out.WriteByte(')')
	case rxAlternate:
		e.writeAlternate(`(?:`, n.subs)
	case rxRepeat:
		e.writeRepeat(n)
	case rxGroup:
		// Groups cost time in the linear engine, so they are left out.
		if e.linear && !e.captures {
			e.writeNode(n.subs[0])
			return
		}
		e.writeAlternate(`(`, n.subs)
	default:
		e.writeSpecial(n)
	}
}

// writeAlternate writes alternatives between open and a closing parenthesis.
func (e *emitter) writeAlternate(open string, subs []*rxNode) {
	e.out.WriteString(open)
	for i, s := range subs {
		if i > 0 {
			e.out.WriteByte('|')
		}
		e.writeNode(s)
	}
	e.out.WriteByte(')')
}

// writeSpecial writes assertions and everything else that is not plain matching.
func (e *emitter) writeSpecial(n *rxNode) {
	switch n.op {
	case rxTextStart:
		e.out.WriteString(`\A`)
	case rxTextEnd:
		e.out.WriteString(`\z`)
	case rxLineStart:
		if n.flags&flagMulti != 0 {
			e.out.WriteString(`(?m:^)`)
		} else {
			e.out.WriteString(`\A`)
		}
	case rxLineEnd:
		switch {
		case n.flags&flagMulti != 0:
			e.out.WriteString(`(?m:$)`)
		// Python's $ also matches before a final line break, which \z does not, so linear is limited to strings without
		// one.
		case e.linear:
			e.dollar = true
			e.out.WriteString(`\z`)
		default:
			e.out.WriteString(`\Z`)
		}
	case rxBoundary:
		e.wordBoundary(n)
	default:
		if e.linear {
			e.unsupported = true
			return
		}
		e.writeIrregular(n)
	}
}

// writeIrregular writes what only the backtracking engine supports.
func (e *emitter) writeIrregular(n *rxNode) {
	switch n.op {
	case rxAtomic:
		e.writeAlternate(`(?>`, n.subs)
	case rxLook:
		open := `(?`
		if n.behind {
			open += `<`
		}
		if n.negate {
			open += `!`
		} else {
			open += `=`
		}
		e.writeAlternate(open, n.subs)
	case rxBackref:
		e.writeFolded(n, func() { e.out.WriteString(`(?:\k<` + strconv.Itoa(n.group) + `>)`) })
	case rxConditional:
		e.writeAlternate(`(?(`+strconv.Itoa(n.group)+`)`, n.subs)
	}
}

// wordBoundary writes \b or \B. Go's version knows only ASCII letters, so the backtracking engine gets look-arounds.
func (e *emitter) wordBoundary(n *rxNode) {
	if e.linear {
		e.boundary = n.flags&flagASCII == 0 || e.boundary
		if n.negate {
			// In Python neither \b nor \B matches in an empty string.
			e.nonEmpty = true
			e.out.WriteString(`\B`)
		} else {
			e.out.WriteString(`\b`)
		}
		return
	}
	w := `[` + classText('w', n.flags) + `]`
	if n.negate {
		e.out.WriteString(`(?:(?<=` + w + `)(?=` + w + `)|(?<!` + w + `)(?!` + w + `)(?!\A\z))`)
	} else {
		e.out.WriteString(`(?:(?<=` + w + `)(?!` + w + `)|(?<!` + w + `)(?=` + w + `))`)
	}
}

// writeRepeat writes a repetition.
func (e *emitter) writeRepeat(n *rxNode) {
	if n.possessive {
		if e.linear {
			e.unsupported = true
			return
		}
		e.out.WriteString(`(?>`)
		defer e.out.WriteByte(')')
	}
	e.out.WriteString(`(?:`)
	e.writeNode(n.subs[0])
	e.out.WriteByte(')')
	switch {
	case n.min == 0 && n.max == rxInfinite:
		e.out.WriteByte('*')
	case n.min == 1 && n.max == rxInfinite:
		e.out.WriteByte('+')
	case n.min == 0 && n.max == 1:
		e.out.WriteByte('?')
	default:
		e.out.WriteString(`{` + strconv.FormatInt(n.min, 10) + `,`)
		if n.max != rxInfinite {
			e.out.WriteString(strconv.FormatInt(n.max, 10))
		}
		e.out.WriteByte('}')
	}
	if n.lazy {
		e.out.WriteByte('?')
	}
}

// writeFolded writes a node that ignores case.
func (e *emitter) writeFolded(n *rxNode, write func()) {
	if n.flags&flagFold == 0 {
		write()
		return
	}
	e.out.WriteString(`(?i:`)
	write()
	e.out.WriteByte(')')
}

// writeChar writes one character so that neither engine gives it a special meaning, inside or outside of brackets.
func (e *emitter) writeChar(r rune) {
	switch {
	case r >= 0x80:
		e.out.WriteRune(r)
	case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
		e.out.WriteByte(byte(r))
	default:
		e.out.WriteString(`\x`)
		e.out.WriteByte("0123456789abcdef"[r>>4])
		e.out.WriteByte("0123456789abcdef"[r&15])
	}
}

// last returns the last character of Unicode, the end of a range of all characters.
func (e *emitter) last() string { return string(unicode.MaxRune) }

// writeSet writes a set of characters.
func (e *emitter) writeSet(s *rxCharSet, flags rxFlags) {
	negate, classes := s.negate, s.classes
	// A single negative class is written as the negation of the positive one, which is far shorter.
	if len(classes) == 1 && len(s.ranges) == 0 && unicode.IsUpper(rune(classes[0])) {
		negate, classes = !negate, strings.ToLower(classes)
	}
	e.out.WriteByte('[')
	if negate {
		e.out.WriteByte('^')
	}
	for _, c := range classes {
		e.out.WriteString(classText(c, flags))
	}
	for _, r := range s.ranges {
		e.writeChar(r.lo)
		if r.hi != r.lo {
			e.out.WriteByte('-')
			e.writeChar(r.hi)
		}
	}
	e.out.WriteByte(']')
}
