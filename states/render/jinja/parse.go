package jinja

import (
	"github.com/brine-salt/brine/internal/pyobj"
)

// maxNesting bounds how deep tags and expressions may nest.
const maxNesting = 300

// parser makes the tree of a template from its tokens, by the rules of jinja2/parser.py.
type parser struct {
	env  *Env
	toks []token
	i    int

	scope *scope
	depth int
	// loads are the uses of names, whose places are found when all assignments are known.
	loads []load
	tags  []string
	ends  [][]string
	// blocks are the blocks of the template by name.
	blocks     map[string]*blockStmt
	blockOrder []string
	extends    bool
	// inMacro and inBlock tell where output goes.
	inMacro, inBlock int
	loops            int
	temp             int
	// missing are the errors of filters and tests that do not exist. Jinja finds them after everything else, and those in
	// conditions only when they are used.
	missing  []*Error
	usesSelf bool
	uses     *[]Use // what the template names, if that was asked for
}

type load struct {
	n *nameExpr
	s *scope
}

// bail carries a syntax error out of the parser.
type bail struct{ err *Error }

func (p *parser) fail(line int, format string, args ...any) {
	p.failKind("TemplateSyntaxError", line, format, args...)
}

func (p *parser) failKind(kind string, line int, format string, args ...any) {
	e := raise(kind, format, args...)
	if e.Line = line; line == 0 {
		e.Line = p.cur().line
	}
	panic(bail{e})
}

func (p *parser) cur() token { return p.toks[p.i] }

func (p *parser) peek() token {
	if p.i+1 < len(p.toks) {
		p.check(p.i + 1)
		return p.toks[p.i+1]
	}
	return p.toks[p.i]
}

func (p *parser) next() token {
	t := p.toks[p.i]
	if p.i+1 < len(p.toks) {
		p.i++
		p.check(p.i)
	}
	return t
}

// check fails where the lexer did. What is wrong before that place counts first.
func (p *parser) check(i int) {
	if err, ok := p.toks[i].value.(*Error); ok {
		panic(bail{err})
	}
}

func (p *parser) isName(name string) bool {
	t := p.cur()
	return t.kind == tName && t.text == name
}

func (p *parser) skipName(name string) bool {
	if p.isName(name) {
		p.next()
		return true
	}
	return false
}

func (p *parser) skipKind(k kind) bool {
	if p.cur().kind == k {
		p.next()
		return true
	}
	return false
}

// expect takes a token of a kind; text names the word that a name must be.
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

func (p *parser) enter() {
	if p.depth++; p.depth > maxNesting {
		p.failKind("RecursionError", 0, "maximum recursion depth exceeded")
	}
}

func (p *parser) push(s *scope) *scope {
	s.parent = p.scope
	p.scope = s
	return s
}

func (p *parser) pop() { p.scope = p.scope.parent }

// failTag is the error of a tag that does not belong where it is; "" is the end of the template.
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

// statements reads the body of a tag up to one of the end tags, which stays unless drop is set.
func (p *parser) statements(drop bool, ends ...string) []stmt {
	p.skipKind(tColon)
	p.expect(tBlockEnd)
	body := p.subparse(ends)
	if p.cur().kind == tEOF {
		p.failTag("", p.cur().line, ends)
	}
	if drop {
		p.next()
	}
	return body
}

func (p *parser) subparse(ends []string) []stmt {
	p.enter()
	if ends != nil {
		p.ends = append(p.ends, ends)
		defer func() { p.ends = p.ends[:len(p.ends)-1] }()
	}
	defer func() { p.depth-- }()
	var body []stmt
	check := p.inMacro == 0 && p.inBlock == 0
	for {
		t := p.cur()
		switch t.kind {
		case tEOF:
			return body
		case tData:
			p.next()
			body = append(body, &outputStmt{line: t.line, text: t.text, check: check})
		case tVariableBegin:
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
			body = append(body, p.statement()...)
			p.expect(tBlockEnd)
		default:
			p.fail(t.line, "internal parsing error")
		}
	}
}

func one(s stmt) []stmt { return []stmt{s} }

func (p *parser) statement() []stmt {
	t := p.cur()
	if t.kind != tName {
		p.fail(t.line, "tag name expected")
	}
	p.tags = append(p.tags, t.text)
	list, known := p.tag(t)
	p.tags = p.tags[:len(p.tags)-1]
	if !known {
		p.failTag(t.text, t.line, nil)
	}
	return list
}

func (p *parser) tag(t token) (list []stmt, known bool) {
	switch t.text {
	case "for":
		return p.forTag(), true
	case "if":
		return one(p.ifTag()), true
	case "block":
		return one(p.blockTag()), true
	case "extends":
		p.next()
		p.extends = true
		if !p.toplevel() {
			e := raise("TemplateAssertionError", "cannot use extend from a non top-level scope")
			e.Line = t.line
			p.missing = append(p.missing, e)
		}
		return one(&extendsStmt{line: t.line, template: p.expression(), toplevel: true}), true
	case "print":
		return p.printTag(), true
	case "macro":
		return one(p.macroTag()), true
	case "include":
		return one(p.includeTag()), true
	case "from":
		return one(p.fromTag()), true
	case "import":
		return one(p.importTag()), true
	case "set":
		return one(p.setTag()), true
	case "with":
		return one(p.withTag()), true
	case "autoescape":
		p.next()
		s := &autoescapeStmt{value: p.expression(), scope: p.push(&scope{})}
		s.body = p.statements(true, "endautoescape")
		p.pop()
		return one(s), true
	case "call":
		return one(p.callTag()), true
	case "filter":
		return one(p.filterTag()), true
	case "do":
		p.next()
		return one(&doStmt{t.line, p.tuple(tupleOptions{cond: true})}), true
	case "break", "continue":
		p.next()
		if p.loops == 0 {
			p.fail(t.line, "'%s' outside loop", t.text)
		}
		if t.text == "break" {
			return one(jumpStmt{sigBreak}), true
		}
		return one(jumpStmt{sigContinue}), true
	}
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

// load makes the use of a name.
func (p *parser) load(name string, line int) *nameExpr {
	n := &nameExpr{pos: pos(line), name: name}
	switch name {
	case "loop", "caller", "varargs", "kwargs":
		p.scope.special(name)
	case "self":
		p.usesSelf = true
	}
	p.loads = append(p.loads, load{n, p.scope})
	return n
}

// toplevel tells whether assignments are those of the template itself.
func (p *parser) toplevel() bool { return p.scope.isolated && p.inBlock == 0 && p.inMacro == 0 }

func (p *parser) nameTarget(name string, line int) *nameTarget {
	if name == "loop" && p.loops > 0 && p.scope.loop {
		p.fail(line, "Can't assign to special loop variable in for-loop")
	}
	return &nameTarget{name: name, slot: p.scope.slot(name), export: p.toplevel()}
}

// assignName reads a single name and gives its token.
func (p *parser) assignName() token {
	t := p.expect(tName)
	switch t.text {
	case "true", "false", "none", "True", "False", "None":
		p.fail(t.line, "can't assign to 'name'")
	}
	return t
}

// assignTarget turns an expression into what it assigns to.
func (p *parser) assignTarget(x expr) target {
	switch x := x.(type) {
	case *nameExpr:
		for i := range p.loads { // it is no use of the name
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

// canAssign checks a target as Jinja does, by the name of the outermost node that is none.
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

// targetExpr reads what an assignment stores into.
func (p *parser) targetExpr(end string, namespace bool) expr {
	x := p.tuple(tupleOptions{simple: true, end: end, namespace: namespace})
	p.canAssign(x)
	return x
}
