package jinja

import (
	"github.com/brine-salt/brine/modules/pyobj"
)

// maxNesting limits how deeply tags and expressions may be nested. The parser is recursive, and Go cannot recover
// from a stack overflow.
const maxNesting = 300

// parser builds the tree of a template from its tokens, by the rules of jinja2/parser.py. It also makes the checks of
// jinja2/idtracking.py and compiler.py.
type parser struct {
	env  *Env
	toks []token
	// the index of the current token
	i int

	scope *scope
	depth int
	// loads are the uses of names. Their slots are found when all assignments are known.
	loads []load
	// the tags that are open and the end tags that would close them, for Jinja's hints in errors
	tags []string
	ends [][]string
	// blocks are the blocks of the template by name.
	blocks     map[string]*blockStmt
	blockOrder []string
	// whether extends was seen
	extends bool
	// inMacro and inBlock count the captured bodies and the blocks around the current tag. Output outside of both
	// is dropped after extends.
	inMacro, inBlock int
	// loops around the current tag, for break and continue; temp numbers the names of load tags
	loops int
	temp  int
	// missing are the errors of filters and tests that do not exist. Jinja finds them after everything else, and
	// those in conditions only when they are used.
	missing  []*Error
	usesSelf bool
	uses     *[]Use // the names that the template uses, or nil if they are not needed
}

// load is a use of a name in a scope.
type load struct {
	n *nameExpr
	s *scope
}

// bail carries a syntax error out of the parser, as a panic.
type bail struct{ err *Error }

// fail ends the parse with a TemplateSyntaxError; line 0 is the current one.
//
//go:noinline
func (p *parser) fail(line int, format string, args ...any) {
	p.failKind("TemplateSyntaxError", line, format, args...)
}

// failKind ends the parse with an exception of a class.
func (p *parser) failKind(kind string, line int, format string, args ...any) {
	e := raise(kind, format, args...)
	if e.Line = line; line == 0 {
		e.Line = p.cur().line
	}
	panic(bail{e})
}

// cur returns the current token.
//
//go:noinline
func (p *parser) cur() token { return p.toks[p.i] }

// peek returns the token after the current one.
func (p *parser) peek() token {
	if p.i+1 < len(p.toks) {
		p.checkToken(p.i + 1)
		return p.toks[p.i+1]
	}
	return p.toks[p.i]
}

// next returns the current token and moves to the next one. The last token stays current.
//
//go:noinline
func (p *parser) next() token {
	t := p.toks[p.i]
	if p.i+1 < len(p.toks) {
		p.i++
		p.checkToken(p.i)
	}
	return t
}

// checkToken fails if the lexer found an error at token i. Errors before that place have been reported by then.
//
//go:noinline
func (p *parser) checkToken(i int) {
	if err, ok := p.toks[i].value.(*Error); ok {
		panic(bail{err})
	}
}

// isName reports whether the current token is this word.
//
//go:noinline
func (p *parser) isName(name string) bool {
	t := p.cur()
	return t.kind == tName && t.text == name
}

// skipName moves past a word if it is the current token, and reports whether it was.
//
//go:noinline
func (p *parser) skipName(name string) bool {
	if p.isName(name) {
		p.next()
		return true
	}
	return false
}

// skipKind moves past a token of a kind if it is the current one, and reports whether it was.
func (p *parser) skipKind(k kind) bool {
	if p.cur().kind == k {
		p.next()
		return true
	}
	return false
}

// expect takes a token of a kind, or fails; text is the word that a name must be.
func (p *parser) expect(k kind, text ...string) token {
	t := p.cur()
	if t.kind == k && (len(text) == 0 || t.text == text[0]) {
		return p.next()
	}
	want := k.String()
	if len(text) > 0 {
		want = text[0]
	}
	if t.kind == tEOF {
		p.fail(t.line, "unexpected end of template, expected %s.", pyobj.Repr(want))
	}
	p.fail(t.line, "expected token %s, got %s", pyobj.Repr(want), pyobj.Repr(t.describe()))
	return t
}

// enterNesting counts a level of nesting. The caller must decrease depth.
func (p *parser) enterNesting() {
	if p.depth++; p.depth > maxNesting {
		p.failKind("RecursionError", 0, "maximum recursion depth exceeded")
	}
}

// pushScope enters a scope.
//
//go:noinline
func (p *parser) pushScope(s *scope) *scope {
	s.parent = p.scope
	p.scope = s
	return s
}

// popScope returns to the scope outside.
func (p *parser) popScope() { p.scope = p.scope.parent }

// failTag fails for a tag in the wrong place. An empty name is the end of the template. more are end tags that are
// not pushed yet.
func (p *parser) failTag(name string, line int, more []string) {
	ends := p.ends
	if more != nil {
		ends = append(ends[:len(ends):len(ends)], more)
	}
	msg := "Unexpected end of template."
	if name != "" {
		msg = "Encountered unknown tag " + pyobj.Repr(name) + "."
	}
	if len(ends) > 0 {
		looking := quoteAll(ends[len(ends)-1], " or ")
		expected := false
		// The tag is known but in the wrong place: a nesting mistake.
		for _, list := range ends {
			for _, e := range list {
				expected = expected || e == name
			}
		}
		if name != "" && expected {
			msg += " You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for " + looking + "."
		} else {
			msg += " Jinja was looking for the following tags: " + looking + "."
		}
	}
	if len(p.tags) > 0 {
		msg += " The innermost block that needs to be closed is " + pyobj.Repr(p.tags[len(p.tags)-1]) + "."
	}
	p.fail(line, "%s", msg)
}

// parseBody reads the body of a tag up to one of the end tags, which stays the current token unless drop is set.
func (p *parser) parseBody(drop bool, ends ...string) []stmt {
	p.skipKind(tColon)
	p.expect(tBlockEnd)
	body := p.parseUntil(ends)
	if p.cur().kind == tEOF {
		p.failTag("", p.cur().line, ends)
	}
	if drop {
		p.next()
	}
	return body
}

// parseUntil reads statements up to one of the end tags, or with nil up to the end of the template.
func (p *parser) parseUntil(ends []string) []stmt {
	p.enterNesting()
	if ends != nil {
		p.ends = append(p.ends, ends)
		defer func() { p.ends = p.ends[:len(p.ends)-1] }()
	}
	defer func() { p.depth-- }()
	var body []stmt
	// Output is checked for extends only where Jinja generates the check.
	check := p.inMacro == 0 && p.inBlock == 0
	for {
		t := p.cur()
		// Each token of the root rule begins a statement.
		switch t.kind {
		case tEOF:
			return body
		case tData:
			p.next()
			body = append(body, &outputStmt{line: t.line, text: t.text, check: check})
		case tVariableBegin:
			// The line is that of the expression, which may be below the braces.
			p.next()
			x := p.tuple(tupleOptions{cond: true})
			body = append(body, &outputStmt{line: x.at(), x: x, check: check})
			p.expect(tVariableEnd)
		case tBlockBegin:
			p.next()
			if p.cur().kind == tName {
				for _, e := range ends {
					if e == p.cur().text {
						return body
					}
				}
			}
			body = append(body, p.parseTag()...)
			p.expect(tBlockEnd)
		default:
			p.fail(t.line, "internal parsing error")
		}
	}
}

// oneStmt returns a list of one statement. Most tags have only one.
func oneStmt(s stmt) []stmt { return []stmt{s} }

// parseTag reads a tag from its name on.
func (p *parser) parseTag() []stmt {
	t := p.cur()
	if t.kind != tName {
		p.fail(t.line, "tag name expected")
	}
	p.tags = append(p.tags, t.text)
	list, known := p.parseKnown(t)
	p.tags = p.tags[:len(p.tags)-1]
	if !known {
		p.failTag(t.text, t.line, nil)
	}
	return list
}

// parseKnown reads a tag that Jinja or Salt has; known is false for any other name.
func (p *parser) parseKnown(t token) (list []stmt, known bool) {
	// Jinja's own tags.
	switch t.text {
	case "for":
		return p.forTag(), true
	case "if":
		return oneStmt(p.ifTag()), true
	case "block":
		return oneStmt(p.blockTag()), true
	case "extends":
		p.next()
		p.extends = true
		// The error is kept for later, because it comes from Jinja's code generator.
		if !p.isToplevel() {
			e := raise("TemplateAssertionError", "cannot use extend from a non top-level scope")
			e.Line = t.line
			p.missing = append(p.missing, e)
		}
		return oneStmt(&extendsStmt{line: t.line, template: p.expression(), toplevel: true}), true
	case "print":
		return p.printTag(), true
	case "macro":
		return oneStmt(p.macroTag()), true
	case "include":
		return oneStmt(p.includeTag()), true
	case "from":
		return oneStmt(p.fromTag()), true
	case "import":
		return oneStmt(p.importTag()), true
	case "set":
		return oneStmt(p.setTag()), true
	case "with":
		return oneStmt(p.withTag()), true
	case "autoescape":
		p.next()
		s := &autoescapeStmt{value: p.expression(), scope: p.pushScope(&scope{})}
		s.body = p.parseBody(true, "endautoescape")
		p.popScope()
		return oneStmt(s), true
	case "call":
		return oneStmt(p.callTag()), true
	case "filter":
		return oneStmt(p.filterTag()), true
	case "do":
		p.next()
		// do, break and continue are Jinja's extensions, which Salt loads.
		return oneStmt(&doStmt{t.line, p.tuple(tupleOptions{cond: true})}), true
	case "break", "continue":
		p.next()
		if p.loops == 0 {
			p.fail(t.line, "'%s' outside loop", t.text)
		}
		if t.text == "break" {
			return oneStmt(jumpStmt{sigBreak}), true
		}
		return oneStmt(jumpStmt{sigContinue}), true
	}
	// The tags of salt/utils/jinja.py.
	if p.env.Serializers {
		switch t.text {
		case "load_yaml", "load_json", "load_text":
			return p.loadTag(t), true
		case "import_yaml", "import_json", "import_text":
			return p.importDataTag(t), true
		case "profile":
			return p.profileTag(), true
		}
	}
	return nil, false
}

// loadName adds the use of a name. Names that loops and macros provide get a slot in the scope that provides them.
func (p *parser) loadName(name string, line int) *nameExpr {
	n := &nameExpr{pos: pos(line), name: name}
	// Names with a meaning in loops, macros and templates.
	switch name {
	case "loop", "caller", "varargs", "kwargs":
		p.scope.useSpecial(name)
	case "self":
		p.usesSelf = true
	}
	p.loads = append(p.loads, load{n, p.scope})
	return n
}

// isToplevel reports whether assignments are those of the template itself, which importing templates see.
func (p *parser) isToplevel() bool { return p.scope.isolated && p.inBlock == 0 && p.inMacro == 0 }

// nameTarget returns the target for a name, which is a slot in the current scope.
func (p *parser) nameTarget(name string, line int) *nameTarget {
	if name == "loop" && p.loops > 0 && p.scope.loop {
		p.fail(line, "Can't assign to special loop variable in for-loop")
	}
	return &nameTarget{name: name, slot: p.scope.slot(name), export: p.isToplevel()}
}

// assignName reads a single name and returns its token. Constants cannot be assigned to.
func (p *parser) assignName() token {
	t := p.expect(tName)
	switch t.text {
	case "true", "false", "none", "True", "False", "None":
		p.fail(t.line, "can't assign to 'name'")
	}
	return t
}

// assignTarget converts an expression to the target of an assignment.
func (p *parser) assignTarget(x expr) target {
	// The names in a target were parsed as uses.
	switch x := x.(type) {
	case *nameExpr:
		for i := range p.loads { // it was parsed as a use, but is not one
			if p.loads[i].n == x {
				p.loads = append(p.loads[:i], p.loads[i+1:]...)
				break
			}
		}
		return p.nameTarget(x.name, x.at())
	case *nsRefExpr:
		return &nsTarget{x.ns, x.attr}
	case *tupleExpr:
		t := &tupleTarget{}
		for _, it := range x.items {
			t.items = append(t.items, p.assignTarget(it))
		}
		return t
	}
	p.fail(x.at(), "can't assign to '%s'", nodeName(x))
	return nil
}

// canAssign checks a target as Jinja does. The error names the outermost node, whichever part is wrong.
func (p *parser) canAssign(x expr) {
	ok := true
	var check func(x expr)
	check = func(x expr) {
		switch x := x.(type) {
		case *nameExpr, *nsRefExpr:
		case *tupleExpr:
			for _, it := range x.items {
				check(it)
			}
		default:
			ok = false
		}
	}
	if check(x); !ok {
		p.fail(x.at(), "can't assign to '%s'", nodeName(x))
	}
}

// nodeName returns Jinja's name for the class of a node.
func nodeName(x expr) string {
	switch x.(type) {
	case *constExpr:
		return "const"
	case *tupleExpr:
		return "tuple"
	case *listExpr:
		return "list"
	case *dictExpr:
		return "dict"
	case *attrExpr:
		return "getattr"
	case *itemExpr:
		return "getitem"
	case *callExpr:
		return "call"
	case *filterExpr:
		return "filter"
	}
	return "expr"
}

// targetExpr reads the target of an assignment as an expression. In a for tag its scope is not known yet.
func (p *parser) targetExpr(end string, namespace bool) expr {
	x := p.tuple(tupleOptions{simple: true, end: end, namespace: namespace})
	p.canAssign(x)
	return x
}
