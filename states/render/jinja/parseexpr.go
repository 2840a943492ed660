package jinja

import (
	"github.com/brine-salt/brine/internal/pyobj"
)

func (p *parser) expression() expr { return p.cond() }

func (p *parser) cond() expr {
	p.enter()
	defer func() { p.depth-- }()
	line := p.cur().line
	missing := len(p.missing)
	x := p.or()
	for p.skipName("if") {
		c := &condExpr{pos: pos(line), yes: x, test: p.or()}
		if p.skipName("else") {
			c.no = p.cond()
		}
		p.missing = p.missing[:missing]
		x = c
		line = p.cur().line
	}
	return x
}

func (p *parser) or() expr {
	line := p.cur().line
	x := p.and()
	for p.skipName("or") {
		x = &orExpr{pos(line), x, p.and()}
		line = p.cur().line
	}
	return x
}

func (p *parser) and() expr {
	line := p.cur().line
	x := p.not()
	for p.skipName("and") {
		x = &andExpr{pos(line), x, p.not()}
		line = p.cur().line
	}
	return x
}

func (p *parser) not() expr {
	if p.isName("not") {
		p.enter()
		defer func() { p.depth-- }()
		line := p.next().line
		return &notExpr{pos(line), p.not()}
	}
	return p.compare()
}

func (p *parser) compare() expr {
	line := p.cur().line
	x := p.math1()
	var ops []operand
	for {
		t := p.cur()
		switch {
		case t.kind == tEq || t.kind == tNe || t.kind == tGt || t.kind == tGtEq || t.kind == tLt || t.kind == tLtEq:
			p.next()
			ops = append(ops, operand{t.kind, p.math1()})
		case p.skipName("in"):
			ops = append(ops, operand{tIn, p.math1()})
		case p.isName("not") && p.peek().kind == tName && p.peek().text == "in":
			p.next()
			p.next()
			ops = append(ops, operand{tNotIn, p.math1()})
		default:
			if ops == nil {
				return x
			}
			return &compareExpr{pos(line), x, ops}
		}
		line = p.cur().line
	}
}

func (p *parser) math1() expr {
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

func (p *parser) concat() expr {
	line := p.cur().line
	items := []expr{p.math2()}
	for p.skipKind(tTilde) {
		items = append(items, p.math2())
	}
	if len(items) == 1 {
		return items[0]
	}
	return &concatExpr{pos(line), items}
}

func (p *parser) math2() expr {
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

func (p *parser) power() expr {
	line := p.cur().line
	x := p.unary(true)
	for p.skipKind(tPow) {
		x = &binExpr{pos(line), tPow, x, p.unary(true)}
		line = p.cur().line
	}
	return x
}

func (p *parser) unary(filters bool) expr {
	p.enter()
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

func (p *parser) primary(namespace bool) expr {
	t := p.cur()
	switch t.kind {
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
			return &nsRefExpr{pos(t.line), p.load(t.text, t.line), attr.text}
		}
		return p.load(t.text, t.line)
	case tString:
		p.next()
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

// tupleOptions say how far a tuple without parentheses goes.
type tupleOptions struct {
	simple    bool   // only names, for targets
	cond      bool   // with inline if
	end       string // a word that ends it
	parens    bool   // it is in parentheses and may be empty
	namespace bool
}

func (p *parser) tuple(o tupleOptions) expr {
	p.enter()
	defer func() { p.depth-- }()
	line := p.cur().line
	var items []expr
	isTuple := false
	for {
		if items != nil {
			p.expect(tComma)
		}
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

func (p *parser) filterExpr(x expr) expr {
	for {
		switch t := p.cur(); {
		case t.kind == tPipe:
			x = p.filters(x, false)
		case t.kind == tName && t.text == "is":
			x = p.test(x)
		case t.kind == tLParen:
			x = p.call(x)
		default:
			return x
		}
	}
}

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
	return &itemExpr{pos(t.line), x, &tupleExpr{pos(t.line), items}}
}

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

func (p *parser) callArgs() arguments {
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

// fix computes arguments that are the same in every call.
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

func (p *parser) call(x expr) expr {
	line := p.cur().line
	return &callExpr{pos(line), x, p.callArgs()}
}

// filters reads filters after a value, or after the word filter (inline).
func (p *parser) filters(x expr, inline bool) expr {
	for p.cur().kind == tPipe || inline {
		if !inline {
			p.next()
		}
		t := p.expect(tName)
		name := p.dotted(t.text)
		f := &filterExpr{pos: pos(t.line), x: x, name: name}
		if p.cur().kind == tLParen {
			f.arguments = p.callArgs()
		}
		f.fn = p.filter(name, t.line)
		x, inline = f, false
	}
	return x
}

func (p *parser) dotted(name string) string {
	for p.skipKind(tDot) {
		name += "." + p.expect(tName).text
	}
	return name
}

// filter finds a filter. Inside of conditions one that does not exist is an error only when it is used.
func (p *parser) filter(name string, line int) Filter {
	fn := p.env.filter(name)
	p.note(Use{Kind: UseFilter, Name: name, Line: line, Known: fn != nil, Guarded: p.scope.soft > 0})
	if fn == nil {
		p.lacks(line, "No filter named %s.", name)
	}
	return fn
}

func (p *parser) lacks(line int, format, name string) {
	if p.scope.soft == 0 {
		e := raise("TemplateAssertionError", format, pyobj.Repr(name))
		e.Line = line
		p.missing = append(p.missing, e)
	}
}

func (p *parser) test(x expr) expr {
	line := p.next().line
	negated := p.skipName("not")
	t := &testExpr{pos: pos(line), x: x}
	t.name = p.dotted(p.expect(tName).text)
	switch c := p.cur(); c.kind {
	case tLParen:
		t.arguments = p.callArgs()
	case tName, tString, tInteger, tFloat, tLBracket, tLBrace:
		if c.kind == tName && (c.text == "else" || c.text == "or" || c.text == "and") {
			break
		}
		if c.kind == tName && c.text == "is" {
			p.fail(0, "You cannot chain multiple tests with is")
		}
		t.args = []expr{p.postfix(p.primary(false))}
	}
	t.fn = p.env.test(t.name)
	p.note(Use{Kind: UseTest, Name: t.name, Line: line, Known: t.fn != nil, Guarded: p.scope.soft > 0})
	if t.fn == nil {
		p.lacks(line, "No test named %s.", t.name)
	}
	if negated {
		return &notExpr{pos(line), t}
	}
	return t
}
