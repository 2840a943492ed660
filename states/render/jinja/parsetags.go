package jinja

import (
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// setTag reads set with a value, or the block up to endset.
func (p *parser) setTag() stmt {
	line := p.next().line
	x := p.targetExpr("", true)
	if p.skipKind(tAssign) {
		value := p.tuple(tupleOptions{cond: true})
		return &assignStmt{line: line, target: p.assignTarget(x), value: value}
	}
	s := &assignBlockStmt{line: line}
	soft := p.scope.soft
	p.scope.soft = 0 // Jinja compiles the block's filter in a separate scope, outside of any condition
	if f := p.parseFilters(nil, false); f != nil {
		s.filter = f.(*filterExpr)
	}
	p.scope.soft = soft
	s.target = p.assignTarget(x)
	s.scope = p.pushScope(&scope{})
	// As in a macro, the body's output is a text and not the template's output.
	p.inMacro++
	s.body = p.parseBody(true, "endset")
	p.inMacro--
	p.popScope()
	return s
}

// forTag reads a loop. The target's slots are in the loop's scope, so it is resolved after the iterable.
func (p *parser) forTag() []stmt {
	line := p.expect(tName, "for").line
	loads := len(p.loads)
	// A target named loop is refused. The names in the target were parsed as uses, which are dropped here.
	x := p.targetExpr("in", false)
	for _, l := range p.loads[loads:] {
		if l.n.name == "loop" {
			p.failKind("TemplateAssertionError", line, "Can't assign to special loop variable in for-loop target")
		}
	}
	p.loads = p.loads[:loads]
	p.expect(tName, "in")
	// The iterable belongs to the scope around the loop.
	s := &forStmt{line: line, simple: -1}
	s.iter = p.tuple(tupleOptions{end: "recursive"})
	s.scope = p.pushScope(&scope{loop: true})
	s.target = p.assignTarget(x)
	if n, ok := s.target.(*nameTarget); ok {
		n.export = false
		s.simple = n.slot
	}
	if p.skipName("if") {
		// The test sees the target, but not the loop.
		p.scope = s.scope.parent
		s.testScope = p.pushScope(&scope{})
		s.testTarget = p.assignTarget(x)
		s.test = p.expression()
		p.scope = s.scope
	}
	s.recursive = p.skipName("recursive")
	if s.recursive {
		s.scope.useSpecial("loop")
	}
	// break and continue are allowed in the body only, not in the else part.
	p.loops++
	s.body = p.parseBody(false, "endfor", "else")
	p.loops--
	p.popScope()
	if p.next().text == "else" {
		s.elseScope = p.pushScope(&scope{})
		s.other = p.parseBody(true, "endfor")
		p.popScope()
	}
	s.loopSlot = -1
	if s.scope.usesLoop {
		s.loopSlot = s.scope.slot("loop")
	}
	return oneStmt(s)
}

// ifTag reads if, elif and else. Unknown filters inside are not errors until they are used.
func (p *parser) ifTag() stmt {
	s := &ifStmt{line: p.expect(tName, "if").line}
	p.scope.soft++
	defer func() { p.scope.soft-- }()
	line := s.line
	for {
		s.lines = append(s.lines, line)
		s.tests = append(s.tests, p.tuple(tupleOptions{}))
		s.body = append(s.body, p.parseBody(false, "elif", "else", "endif"))
		switch t := p.next(); t.text {
		case "elif":
			line = p.cur().line
			continue
		case "else":
			s.other = p.parseBody(true, "endif")
		}
		return s
	}
}

// withTag reads with. The values are parsed in the outer scope; the targets belong to the inner scope.
func (p *parser) withTag() stmt {
	p.next()
	s := &withStmt{}
	var targets []expr
	outer := p.scope
	for p.cur().kind != tBlockEnd {
		if len(targets) > 0 {
			p.expect(tComma)
		}
		x := p.targetExpr("", false)
		targets = append(targets, x)
		p.expect(tAssign)
		s.values = append(s.values, p.expression())
	}
	s.scope = p.pushScope(&scope{})
	for _, x := range targets {
		s.targets = append(s.targets, p.assignTarget(x))
	}
	s.body = p.parseBody(true, "endwith")
	p.scope = outer
	return s
}

// blockTag reads a block. Macros and loops around the block do not apply inside it.
func (p *parser) blockTag() stmt {
	s := &blockStmt{line: p.next().line, toplevel: p.isToplevel()}
	s.name = p.expect(tName).text
	s.scoped = p.skipName("scoped")
	s.required = p.skipName("required")
	if p.cur().kind == tSub {
		p.fail(0, "Block names in Jinja have to be valid Python identifiers and may not contain hyphens, use an underscore instead.")
	}
	// Two blocks of a name in one template are an error.
	if _, twice := p.blocks[s.name]; twice {
		p.failKind("TemplateAssertionError", s.line, "block %s defined twice", pyobj.Repr(s.name))
	}
	if p.blocks == nil {
		p.blocks = map[string]*blockStmt{}
	}
	p.blocks[s.name] = s
	p.blockOrder = append(p.blockOrder, s.name)
	// A scoped block sees the loop variable of every loop around it.
	if s.scoped {
		for sc := p.scope; sc != nil && !sc.isolated; sc = sc.parent {
			if sc.loop {
				sc.usesLoop = true
				sc.slot("loop")
			}
		}
	}
	outerMacro, outerLoops := p.inMacro, p.loops
	p.inMacro, p.loops = 0, 0
	p.inBlock++
	outer := p.scope
	s.scope = p.pushScope(&scope{isolated: true})
	s.body = p.parseBody(true, "endblock")
	p.scope = outer
	p.inBlock--
	p.inMacro, p.loops = outerMacro, outerLoops
	// A required block may contain only white space, because anything else would be shown if it is not overridden.
	if s.required {
		for _, b := range s.body {
			if o, ok := b.(*outputStmt); !ok || o.x != nil || strings.TrimSpace(o.text) != "" {
				p.fail(0, "Required blocks can only contain comments or whitespace")
			}
		}
	}
	// endblock may repeat the name.
	p.skipName(s.name)
	return s
}

// contextFlag reads "with context" or "without context", else returns the tag's standard.
func (p *parser) contextFlag(standard bool) bool {
	if (p.isName("with") || p.isName("without")) && p.peek().kind == tName && p.peek().text == "context" {
		with := p.next().text == "with"
		p.next()
		return with
	}
	return standard
}

// includeTag reads include, which is with context by default.
func (p *parser) includeTag() stmt {
	s := &includeStmt{line: p.next().line, scope: p.scope, check: p.inMacro == 0 && p.inBlock == 0}
	s.template = p.expression()
	if p.isName("ignore") && p.peek().kind == tName && p.peek().text == "missing" {
		s.ignoreMissing = true
		p.next()
		p.next()
	}
	s.context = p.contextFlag(true)
	return s
}

// importTag reads import.
func (p *parser) importTag() *importStmt {
	s := &importStmt{line: p.next().line, scope: p.scope, toplevel: p.isToplevel()}
	s.template = p.expression()
	p.expect(tName, "as")
	t := p.assignName()
	s.name, s.target = t.text, p.nameTarget(t.text, t.line)
	s.context = p.contextFlag(false)
	return s
}

// fromTag reads from … import, with the names and the word context in any sensible order.
func (p *parser) fromTag() stmt {
	s := &fromStmt{line: p.next().line, scope: p.scope, toplevel: p.isToplevel()}
	s.template = p.expression()
	p.expect(tName, "import")
	context := func() bool {
		if (p.isName("with") || p.isName("without")) && p.peek().kind == tName && p.peek().text == "context" {
			s.context = p.contextFlag(false)
			return true
		}
		return false
	}
	for {
		if len(s.names) > 0 {
			p.expect(tComma)
		}
		if p.cur().kind != tName {
			p.expect(tName)
		}
		if context() {
			break
		}
		t := p.assignName()
		if strings.HasPrefix(t.text, "_") {
			p.failKind("TemplateAssertionError", t.line, "names starting with an underline can not be imported")
		}
		as := t
		if p.skipName("as") {
			as = p.assignName()
		}
		s.names = append(s.names, t.text)
		s.as = append(s.as, as.text)
		s.targets = append(s.targets, p.nameTarget(as.text, as.line))
		if context() || p.cur().kind != tComma {
			break
		}
	}
	return s
}

// macroSignature reads the parameters of a macro; the macro's scope is the current one.
func (p *parser) macroSignature(m *macroCode) {
	p.expect(tLParen)
	for p.cur().kind != tRParen {
		if len(m.args) > 0 {
			p.expect(tComma)
		}
		t := p.assignName()
		for _, a := range m.args {
			if a == t.text {
				p.fail(t.line, "duplicate argument '%s' in function definition", t.text)
			}
		}
		m.args = append(m.args, t.text)
		m.slots = append(m.slots, p.scope.slot(t.text))
		if t.text == "caller" {
			// A parameter has this name, so the special variable does not exist.
			m.explicit = true
		}
		if p.skipKind(tAssign) {
			m.defaults = append(m.defaults, p.expression())
		} else if m.defaults != nil {
			p.fail(0, "non-default argument follows default argument")
		}
	}
	p.expect(tRParen)
}

// macroRest reads a macro's body and leaves its scope.
func (p *parser) macroRest(m *macroCode, end string) {
	loops := p.loops
	p.loops = 0
	p.inMacro++
	m.body = p.parseBody(true, end)
	p.inMacro--
	p.loops = loops
	// -1 means that the body does not use the variable.
	m.callerSlot, m.varargsSlot, m.kwargsSlot = -1, -1, -1
	s := m.scope
	if s.usesCaller {
		m.callerSlot = s.slot("caller")
	}
	if s.usesVarargs {
		m.varargsSlot = s.slot("varargs")
	}
	if s.usesKwargs {
		m.kwargsSlot = s.slot("kwargs")
	}
	p.popScope()
	// The macro may be called after the round in which it was defined, so no loop around it may reuse its frame.
	for sc := p.scope; sc != nil; sc = sc.parent {
		sc.captured = true
	}
	if m.explicit {
		n := len(m.args) - len(m.defaults)
		for i, a := range m.args {
			if a == "caller" && i < n {
				p.failKind("TemplateAssertionError", 0, "When defining macros or call blocks the special \"caller\" argument must be omitted or be given a default.")
			}
		}
	}
}

// macroTag reads a macro. Its name belongs to the outer scope.
func (p *parser) macroTag() stmt {
	s := &macroStmt{line: p.next().line}
	t := p.assignName()
	s.to = p.nameTarget(t.text, t.line)
	s.code = &macroCode{name: t.text, scope: p.pushScope(&scope{macro: true})}
	p.macroSignature(s.code)
	p.macroRest(s.code, "endmacro")
	return s
}

// callTag reads a call block. The call itself is evaluated in the outer scope; its parameters belong to the body.
func (p *parser) callTag() stmt {
	s := &callStmt{line: p.next().line, code: &macroCode{}}
	s.code.scope = p.pushScope(&scope{macro: true})
	if p.cur().kind == tLParen {
		p.macroSignature(s.code)
	}
	inner := p.scope
	p.scope = inner.parent
	x := p.expression()
	call, ok := x.(*callExpr)
	if !ok {
		p.fail(s.line, "expected call")
	}
	s.call = call
	p.scope = inner
	p.macroRest(s.code, "endcall")
	return s
}

// filterTag reads a filter block.
func (p *parser) filterTag() stmt {
	s := &filterStmt{line: p.next().line, check: p.inMacro == 0 && p.inBlock == 0}
	soft := p.scope.soft
	p.scope.soft = 0 // the block's own scope is outside of any condition
	s.filter = p.parseFilters(nil, true).(*filterExpr)
	p.scope.soft = soft
	s.scope = p.pushScope(&scope{})
	p.inMacro++
	s.body = p.parseBody(true, "endfilter")
	p.inMacro--
	p.popScope()
	return s
}

// printTag reads print, Jinja 1's form of {{ }}.
func (p *parser) printTag() []stmt {
	line := p.next().line
	var list []stmt
	for p.cur().kind != tBlockEnd {
		if len(list) > 0 {
			p.expect(tComma)
		}
		list = append(list, &outputStmt{line: line, x: p.expression(), check: p.inMacro == 0 && p.inBlock == 0})
	}
	return list
}

// loadTag reads {% load_yaml as x %}. As in Salt the body is a macro, whose text goes through the filter of that
// name.
func (p *parser) loadTag(t token) []stmt {
	p.next()
	f := &filterExpr{pos: pos(t.line), name: t.text, fn: p.lookupFilter(t.text, t.line)}
	p.expect(tName, "as")
	x := p.targetExpr("", false)
	m := &macroCode{name: p.temporaryName(), scope: p.pushScope(&scope{macro: true})}
	p.macroRest(m, "endload")
	f.x = &macroBody{pos(t.line), m}
	return oneStmt(&assignStmt{line: t.line, target: p.assignTarget(x), value: f})
}

// temporaryName returns a name as Jinja's free_identifier does, for the macro of a load tag.
func (p *parser) temporaryName() string {
	p.temp++
	return "_fi" + string(rune('0'+p.temp%10))
}

// importDataTag reads {% import_yaml "x" as y %}: an import, then the filter on its text.
func (p *parser) importDataTag(t token) []stmt {
	imp := p.importTag()
	name := "load_" + strings.TrimPrefix(t.text, "import_")
	f := &filterExpr{pos: pos(imp.line), name: name, fn: p.lookupFilter(name, imp.line), x: p.loadName(imp.name, imp.line)}
	return []stmt{imp, &assignStmt{line: imp.line, target: p.nameTarget(imp.name, imp.line), value: f}}
}

// profileTag reads profile, which only evaluates its label and runs its body: nothing is measured.
func (p *parser) profileTag() []stmt {
	line := p.next().line
	p.expect(tName, "as")
	label := p.expression()
	body := p.parseBody(true, "endprofile")
	return append(oneStmt(&doStmt{line, label}), body...)
}
