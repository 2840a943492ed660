package jinja

import (
	"github.com/brine-salt/brine/modules/pyobj"
)

// expression reads an expression with all operators. Each of the functions below reads one level of precedence, from
// the loosest to the tightest. Their names are those of jinja2/parser.py.
//
//go:noinline
func (p *parser) expression() expr { return p.cond() }

// cond reads x if test else y.
func (p *parser) cond() expr {
	p.enterNesting()
	defer func() { p.depth-- }()
	line := p.cur().line
	missing := len(p.missing)
	x := p.or()
	// Conditions nest to the right in their else part.
	for p.skipName("if") {
		c := &condExpr{pos: pos(line), yes: x, test: p.or()}
		if p.skipName("else") {
			c.no = p.cond()
		}
		// Unknown filters inside are not errors here, because Jinja compiles conditions leniently.
		p.missing = p.missing[:missing]
		x = c
		line = p.cur().line
	}
	return x
}

// or reads operands joined by or. As in Jinja, the line of a node is that of the token behind the previous operand.
func (p *parser) or() expr {
	line := p.cur().line
	x := p.and()
	for p.skipName("or") {
		x = &orExpr{pos(line), x, p.and()}
		line = p.cur().line
	}
	return x
}

// and reads operands joined by and.
func (p *parser) and() expr {
	line := p.cur().line
	x := p.not()
	for p.skipName("and") {
		x = &andExpr{pos(line), x, p.not()}
		line = p.cur().line
	}
	return x
}

// not reads a negation.
func (p *parser) not() expr {
	if p.isName("not") {
		p.enterNesting()
		defer func() { p.depth-- }()
		line := p.next().line
		return &notExpr{pos(line), p.not()}
	}
	return p.compare()
}

// compare reads a chain of comparisons.
func (p *parser) compare() expr {
	line := p.cur().line
	// Comparisons are collected into one chain.
	x := p.parseSum()
	var ops []operand
	for {
		t := p.cur()
		switch {
		case t.kind == tEq || t.kind == tNe || t.kind == tGt || t.kind == tGtEq || t.kind == tLt || t.kind == tLtEq:
			p.next()
			ops = append(ops, operand{t.kind, p.parseSum()})
		case p.skipName("in"):
			ops = append(ops, operand{tIn, p.parseSum()})
		case p.isName("not") && p.peek().kind == tName && p.peek().text == "in":
			p.next()
			p.next()
			ops = append(ops, operand{tNotIn, p.parseSum()})
		default:
			if ops == nil {
				return x
			}
			return &compareExpr{pos(line), x, ops}
		}
		line = p.cur().line
	}
}

// parseSum reads + and - (parse_math1).
func (p *parser) parseSum() expr {
	line := p.cur().line
	x := p.concat()
	for {
		switch k := p.cur().kind; k {
		case tAdd, tSub:
			p.next()
			x = &binExpr{pos(line), k, x, p.concat()}
			line = p.cur().line
		default:
			return x
		}
	}
}

// concat reads a ~ b ~ c.
func (p *parser) concat() expr {
	line := p.cur().line
	items := []expr{p.parseProduct()}
	for p.skipKind(tTilde) {
		items = append(items, p.parseProduct())
	}
	if len(items) == 1 {
		return items[0]
	}
	return &concatExpr{pos(line), items}
}

// parseProduct reads *, /, // and % (parse_math2).
func (p *parser) parseProduct() expr {
	line := p.cur().line
	x := p.power()
	for {
		switch k := p.cur().kind; k {
		case tMul, tDiv, tFloorDiv, tMod:
			p.next()
			x = &binExpr{pos(line), k, x, p.power()}
			line = p.cur().line
		default:
			return x
		}
	}
}

// power reads **, which is left-associative in Jinja, unlike in Python.
func (p *parser) power() expr {
	line := p.cur().line
	x := p.unary(true)
	for p.skipKind(tPow) {
		x = &binExpr{pos(line), tPow, x, p.unary(true)}
		line = p.cur().line
	}
	return x
}

// unary reads signs and their operands. Filters bind less tightly than a sign: -1|abs is (-1)|abs.
func (p *parser) unary(filters bool) expr {
	p.enterNesting()
	defer func() { p.depth-- }()
	t := p.cur()
	var x expr
	switch t.kind {
	case tSub, tAdd:
		p.next()
		x = &signExpr{pos(t.line), t.kind == tSub, p.unary(false)}
	default:
		x = p.primary(false)
	}
	x = p.postfix(x)
	if filters {
		x = p.filterExpr(x)
	}
	return x
}

// primary reads a name, a constant, or brackets. With namespace a dotted name is a target.
func (p *parser) primary(namespace bool) expr {
	t := p.cur()
	switch t.kind {
	// A name, or one of the three constants.
	case tName:
		p.next()
		switch t.text {
		case "true", "True":
			return &constExpr{pos(t.line), true}
		case "false", "False":
			return &constExpr{pos(t.line), false}
		case "none", "None":
			return &constExpr{pos(t.line), nil}
		}
		if namespace && p.cur().kind == tDot {
			p.next()
			attr := p.expect(tName)
			return &nsRefExpr{pos(t.line), p.loadName(t.text, t.line), attr.text}
		}
		return p.loadName(t.text, t.line)
	case tString:
		p.next()
		// Adjacent strings are joined, as in Python.
		text := t.text
		for p.cur().kind == tString {
			text += p.next().text
		}
		return &constExpr{pos(t.line), text}
	case tInteger, tFloat:
		p.next()
		return &constExpr{pos(t.line), t.value}
	case tLParen:
		p.next()
		x := p.tuple(tupleOptions{cond: true, parens: true})
		p.expect(tRParen)
		return x
	case tLBracket:
		return p.list()
	case tLBrace:
		return p.dict()
	}
	p.fail(t.line, "unexpected %s", pyobj.Repr(t.describe()))
	return nil
}

// tupleOptions define where a tuple without parentheses ends and which expressions it may contain.
type tupleOptions struct {
	simple    bool   // only primary expressions, for targets
	cond      bool   // with inline if
	end       string // a word that ends it, as "in" does
	parens    bool   // it stands in parentheses and may be empty
	namespace bool
}

// tuple reads expressions separated by commas. A single expression without a comma is returned as it is.
func (p *parser) tuple(o tupleOptions) expr {
	p.enterNesting()
	defer func() { p.depth-- }()
	line := p.cur().line
	var items []expr
	isTuple := false
	for {
		if items != nil {
			p.expect(tComma)
		}
		// A comma may end the tuple.
		if k := p.cur().kind; k == tVariableEnd || k == tBlockEnd || k == tRParen || o.end != "" && p.isName(o.end) {
			break
		}
		switch {
		case o.simple:
			items = append(items, p.primary(o.namespace))
		case o.cond:
			items = append(items, p.cond())
		default:
			items = append(items, p.or())
		}
		if p.cur().kind != tComma {
			break
		}
		isTuple = true
		line = p.cur().line
	}
	if !isTuple {
		if items != nil {
			return items[0]
		}
		if !o.parens {
			p.fail(0, "Expected an expression, got %s", pyobj.Repr(p.cur().describe()))
		}
	}
	return &tupleExpr{pos(line), items}
}

// list reads a list; a comma may follow the last item.
func (p *parser) list() expr {
	x := &listExpr{pos: pos(p.expect(tLBracket).line)}
	for p.cur().kind != tRBracket {
		if x.items != nil {
			p.expect(tComma)
		}
		if p.cur().kind == tRBracket {
			break
		}
		x.items = append(x.items, p.expression())
	}
	p.expect(tRBracket)
	return x
}

// dict reads a dict.
func (p *parser) dict() expr {
	x := &dictExpr{pos: pos(p.expect(tLBrace).line)}
	for p.cur().kind != tRBrace {
		if x.keys != nil {
			p.expect(tComma)
		}
		if p.cur().kind == tRBrace {
			break
		}
		key := p.expression()
		p.expect(tColon)
		x.keys = append(x.keys, key)
		x.values = append(x.values, p.expression())
	}
	p.expect(tRBrace)
	return x
}

// postfix reads attributes, items and calls behind an expression.
func (p *parser) postfix(x expr) expr {
	for {
		switch p.cur().kind {
		case tDot, tLBracket:
			x = p.subscript(x)
		case tLParen:
			x = p.call(x)
		default:
			return x
		}
	}
}

// filterExpr reads filters and tests behind an expression, and calls of their results.
func (p *parser) filterExpr(x expr) expr {
	for {
		switch t := p.cur(); {
		case t.kind == tPipe:
			x = p.parseFilters(x, false)
		case t.kind == tName && t.text == "is":
			x = p.parseTest(x)
		case t.kind == tLParen:
			x = p.call(x)
		default:
			return x
		}
	}
}

// subscript reads .name, .1 or [key].
func (p *parser) subscript(x expr) expr {
	t := p.next()
	if t.kind == tDot {
		a := p.next()
		switch a.kind {
		case tName:
			p.noteAttr(x, a.text, t.line)
			return &attrExpr{pos(t.line), x, a.text}
		case tInteger:
			return &itemExpr{pos(t.line), x, &constExpr{pos(a.line), a.value}}
		}
		p.fail(a.line, "expected name or number")
	}
	// Brackets may hold several keys, as for numpy arrays.
	var items []expr
	for p.cur().kind != tRBracket {
		if items != nil {
			p.expect(tComma)
		}
		items = append(items, p.subscribed())
	}
	p.expect(tRBracket)
	if len(items) == 1 {
		p.noteItem(x, items[0], t.line)
		return &itemExpr{pos(t.line), x, items[0]}
	}
	// Several keys are a tuple: x[1, 2].
	return &itemExpr{pos(t.line), x, &tupleExpr{pos(t.line), items}}
}

// subscribed reads a key or a slice.
func (p *parser) subscribed() expr {
	line := p.cur().line
	s := &sliceExpr{pos: pos(line)}
	if p.cur().kind == tColon {
		p.next()
	} else {
		x := p.expression()
		if p.cur().kind != tColon {
			return x
		}
		p.next()
		s.start = x
	}
	if k := p.cur().kind; k != tColon && k != tRBracket && k != tComma {
		s.stop = p.expression()
	}
	if p.skipKind(tColon) {
		if k := p.cur().kind; k != tRBracket && k != tComma {
			s.step = p.expression()
		}
	}
	return s
}

// callArgs reads the arguments of a call in parentheses, in Python's order.
func (p *parser) callArgs() arguments {
	// ensure fails if an argument follows one that must be the last.
	t := p.expect(tLParen)
	var a arguments
	ensure := func(ok bool) {
		if !ok {
			p.fail(t.line, "invalid syntax for function call expression")
		}
	}
	for comma := false; p.cur().kind != tRParen; comma = true {
		if comma {
			p.expect(tComma)
			if p.cur().kind == tRParen {
				break
			}
		}
		// The form of each argument decides which arguments may follow.
		switch c := p.cur(); {
		case c.kind == tMul:
			ensure(a.dynArgs == nil && a.dynKwds == nil)
			p.next()
			a.dynArgs = p.expression()
		case c.kind == tPow:
			ensure(a.dynKwds == nil)
			p.next()
			a.dynKwds = p.expression()
		case c.kind == tName && p.peek().kind == tAssign:
			ensure(a.dynKwds == nil)
			p.next()
			p.next()
			a.names = append(a.names, c.text)
			a.values = append(a.values, p.expression())
		default:
			ensure(a.dynArgs == nil && a.dynKwds == nil && a.names == nil)
			a.args = append(a.args, p.expression())
		}
	}
	p.expect(tRParen)
	a.fix()
	return a
}

// fix computes the positional arguments if all of them are constants.
func (a *arguments) fix() {
	fixed := make([]any, len(a.args))
	for i, x := range a.args {
		c, ok := x.(*constExpr)
		if !ok {
			return
		}
		fixed[i] = c.value
	}
	a.fixed = fixed
}

// call reads the arguments of a call of x.
func (p *parser) call(x expr) expr {
	line := p.cur().line
	return &callExpr{pos(line), x, p.callArgs()}
}

// parseFilters reads filters after a value, or after the word filter, which has no pipe (inline).
func (p *parser) parseFilters(x expr, inline bool) expr {
	for p.cur().kind == tPipe || inline {
		if !inline {
			p.next()
		}
		t := p.expect(tName)
		name := p.dottedName(t.text)
		f := &filterExpr{pos: pos(t.line), x: x, name: name}
		if p.cur().kind == tLParen {
			f.arguments = p.callArgs()
		}
		f.fn = p.lookupFilter(name, t.line)
		x, inline = f, false
	}
	return x
}

// dottedName reads the rest of a name with dots, which filters and tests may have.
func (p *parser) dottedName(name string) string {
	for p.skipKind(tDot) {
		name += "." + p.expect(tName).text
	}
	return name
}

// lookupFilter finds a filter. Inside of conditions an unknown one is an error only when it is used.
func (p *parser) lookupFilter(name string, line int) Filter {
	fn := p.env.findFilter(name)
	p.noteUse(Use{Kind: UseFilter, Name: name, Line: line, Known: fn != nil, Guarded: p.scope.soft > 0})
	if fn == nil {
		p.noteMissing(line, "No filter named %s.", name)
	}
	return fn
}

// noteMissing keeps the error for an unknown filter or test, unless the code is inside of a condition.
func (p *parser) noteMissing(line int, format, name string) {
	if p.scope.soft == 0 {
		e := raise("TemplateAssertionError", format, pyobj.Repr(name))
		e.Line = line
		p.missing = append(p.missing, e)
	}
}

// parseTest reads a test after "is". One argument may follow without parentheses.
func (p *parser) parseTest(x expr) expr {
	line := p.next().line
	negated := p.skipName("not")
	t := &testExpr{pos: pos(line), x: x}
	t.name = p.dottedName(p.expect(tName).text)
	switch c := p.cur(); c.kind {
	case tLParen:
		t.arguments = p.callArgs()
	// An argument may follow without parentheses, if it is a simple expression.
	case tName, tString, tInteger, tFloat, tLBracket, tLBrace:
		if c.kind == tName && (c.text == "else" || c.text == "or" || c.text == "and") {
			break
		}
		if c.kind == tName && c.text == "is" {
			p.fail(0, "You cannot chain multiple tests with is")
		}
		t.args = []expr{p.postfix(p.primary(false))}
	}
	t.fn = p.env.findTest(t.name)
	p.noteUse(Use{Kind: UseTest, Name: t.name, Line: line, Known: t.fn != nil, Guarded: p.scope.soft > 0})
	if t.fn == nil {
		p.noteMissing(line, "No test named %s.", t.name)
	}
	if negated {
		return &notExpr{pos(line), t}
	}
	return t
}
