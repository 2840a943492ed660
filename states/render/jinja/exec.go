package jinja

import (
	"maps"
	"strconv"

	"github.com/brine-salt/brine/modules/pyobj"
)

// execAll runs statements until one ends with break, continue or an error.
func execAll(f *frame, body []stmt) (signal, error) {
	for _, s := range body {
		if sig, err := s.exec(f); err != nil || sig != goOn {
			return sig, err
		}
	}
	return goOn, nil
}

// isSilent reports whether output is dropped here: after extends only blocks count.
func (f *frame) isSilent(check bool) bool { return check && f.main != nil && f.main.parent != nil }

// exec writes template data, or the value of an expression. Errors get the line of the print statement.
func (s *outputStmt) exec(f *frame) (signal, error) {
	if f.isSilent(s.check) {
		return goOn, nil
	}
	// Template data.
	if s.x == nil {
		return goOn, f.writeText(s.text)
	}
	v, err := s.x.eval(f)
	if err == nil {
		err = f.printValue(v)
	}
	if err != nil {
		return goOn, f.t.placeError(err, s.line)
	}
	return goOn, nil
}

// printValue writes a value: through Finalize, then escaped if autoescape is on.
func (f *frame) printValue(v any) error {
	// Finalize sees every value, undefined ones included.
	if f.r.env.Finalize != nil {
		var err error
		if v, err = f.r.env.Finalize(v); err != nil {
			return err
		}
	}
	if f.r.autoescape {
		m, err := escapeValue(v)
		if err != nil {
			return err
		}
		return f.writeText(string(m))
	}
	// The most frequent value in loops, formatted without an allocation.
	if n, ok := v.(int64); ok {
		var digits [20]byte
		return f.writeBytes(strconv.AppendInt(digits[:0], n, 10))
	}
	s, err := Str(v)
	if err != nil {
		return err
	}
	return f.writeText(s)
}

// store sets the slot and, at the top level, makes the name visible to importing templates.
func (t *nameTarget) store(f *frame, v any) error {
	f.slots[t.slot] = v
	if t.export {
		f.ctx.exportName(t.name, v, true)
	}
	return nil
}

// store unpacks an iterable. The number of items must fit, as in Python.
func (t *tupleTarget) store(f *frame, v any) error {
	var items []any
	switch x := v.(type) {
	case pyobj.Tuple:
		items = x
	default:
		// Anything iterable can be unpacked.
		var err error
		if items, err = Collect(v); err != nil {
			if e := asError(err); e.Kind == "TypeError" {
				return typeError("cannot unpack non-iterable %s object", pyobj.TypeName(v))
			}
			return err
		}
	}
	switch {
	case len(items) < len(t.items):
		return valueError("not enough values to unpack (expected %d, got %d)", len(t.items), len(items))
	case len(items) > len(t.items):
		return valueError("too many values to unpack (expected %d)", len(t.items))
	}
	for i, x := range t.items {
		if err := x.store(f, items[i]); err != nil {
			return err
		}
	}
	return nil
}

// store sets an attribute of a namespace, which is how a loop passes a value out.
func (t *nsTarget) store(f *frame, v any) error {
	ns, err := t.ns.eval(f)
	if err != nil {
		return err
	}
	n, ok := ns.(*Namespace)
	if !ok {
		return raise("TemplateRuntimeError", "cannot assign attribute on non-namespace object")
	}
	return n.d.Set(t.attr, v)
}

func (s *assignStmt) exec(f *frame) (signal, error) {
	v, err := s.value.eval(f)
	if err == nil {
		err = s.target.store(f, v)
	}
	if err != nil {
		return goOn, f.t.placeError(err, s.line)
	}
	return goOn, nil
}

// captureBody runs a body and returns what it wrote, as Markup with autoescape.
func (f *frame) captureBody(s *scope, body []stmt) (any, error) {
	inner := f.newFrame(s)
	// An output of its own; the frame's copy leaves the outer one alone.
	inner.out = &output{}
	if _, err := execAll(inner, body); err != nil {
		return nil, err
	}
	return textLike(inner.out.b.String(), f.r.autoescape), nil
}

func (s *assignBlockStmt) exec(f *frame) (signal, error) {
	v, err := f.captureBody(s.scope, s.body)
	if err == nil && s.filter != nil {
		v, err = s.filter.applyChain(f, v)
	}
	// Jinja marks the result of the block as safe, even if a filter returned plain text.
	if err == nil {
		if text, ok := v.(string); ok && f.r.autoescape {
			v = pyobj.Markup(text)
		}
		err = s.target.store(f, v)
	}
	if err != nil {
		return goOn, f.t.placeError(err, s.line)
	}
	return goOn, nil
}

// exec runs the body of the first test that holds. Each test has its own line for errors.
func (s *ifStmt) exec(f *frame) (signal, error) {
	for i, t := range s.tests {
		yes, err := evalTruth(f, t)
		if err != nil {
			return goOn, f.t.placeError(err, s.lines[i])
		}
		if yes {
			return execAll(f, s.body[i])
		}
	}
	return execAll(f, s.other)
}

// exec evaluates the iterable outside of the loop's scope, so that "for x in x" sees the outer x.
func (s *forStmt) exec(f *frame) (signal, error) {
	v, err := s.iter.eval(f)
	if err != nil {
		return goOn, f.t.placeError(err, s.line)
	}
	// An undefined value fails at the loop itself, and not at its first use.
	if u, ok := v.(*Undefined); ok && u.kind == Strict {
		return goOn, f.t.placeError(u.fail(), s.line)
	}
	if err := s.runLoop(f, v, 0); err != nil {
		return goOn, f.t.placeError(err, s.line)
	}
	return goOn, nil
}

// acceptedItems returns an iterator over the items for which the loop's test holds. It is lazy, so the length of
// such a loop is found by going through it.
func (s *forStmt) acceptedItems(f *frame, next func() (any, bool, error)) *Iter {
	inner := f.newFrame(s.testScope)
	return &Iter{Kind: "generator", Next: func() (any, bool, error) {
		for {
			v, ok, err := next()
			if err != nil || !ok {
				return nil, false, err
			}
			if one, once := v.(*Iter); once && s.simple < 0 { // unpacking for the test would use it up before the loop's own target can
				items, err := Collect(one)
				if err != nil {
					return nil, false, err
				}
				v = pyobj.Tuple(items)
			}
			if err := s.testTarget.store(inner, v); err != nil {
				return nil, false, err
			}
			yes, err := evalTruth(inner, s.test)
			if err != nil {
				return nil, false, err
			}
			if yes {
				return v, true, nil
			}
		}
	}}
}

// runLoop runs the loop over a value; depth is that of a recursive loop.
func (s *forStmt) runLoop(f *frame, v any, depth int) error {
	next, err := Iterate(v)
	if err != nil {
		return err
	}
	if s.test != nil {
		it := s.acceptedItems(f, next)
		v, next = it, it.Next
	}
	// loop exists only if the body uses it: it costs an allocation and a look ahead.
	var loop *Loop
	if s.loopSlot >= 0 {
		// after, current and before are missing until there is such an item.
		loop = &Loop{r: f.r, over: v, next: next, depth0: depth, index0: -1, after: missing, current: missing, before: missing, changedTo: nil}
		if s.recursive {
			loop.recurse = func(v any, depth int) (any, error) { return s.recurseLoop(f, v, depth) }
		}
		next = loop.advance
	}
	empty := true // stays true if every round ended by break or continue; Jinja then runs the else part as well
	var inner *frame
	for {
		x, ok, err := next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		// Counted before the body runs, so that an empty body is limited as well.
		if err := f.r.countStep(); err != nil {
			return err
		}
		// A frame per round is needed only if a macro inside keeps it; otherwise one frame is cleared and used
		// again.
		if inner == nil || s.scope.captured {
			inner = f.newFrame(s.scope)
		} else {
			for i := range inner.slots {
				inner.slots[i] = missing
			}
		}
		// The loop object is the same in every round.
		if s.loopSlot >= 0 {
			inner.slots[s.loopSlot] = loop
		}
		if s.simple >= 0 {
			inner.slots[s.simple] = x
		} else if err := s.target.store(inner, x); err != nil {
			return err
		}
		sig, err := execAll(inner, s.body)
		if err != nil {
			return err
		}
		if sig == sigBreak {
			break
		}
		// Jinja keeps a flag that the end of a round clears, and break and continue jump over it.
		empty = empty && sig != goOn
	}
	if empty && s.other != nil {
		_, err := execAll(f.newFrame(s.elseScope), s.other)
		return err
	}
	return nil
}

// recurseLoop is loop(…) inside of a recursive loop: the same loop over another iterable, into a text.
// Counted as a call, so that endless recursion fails with RecursionError.
func (s *forStmt) recurseLoop(f *frame, v any, depth int) (any, error) {
	if err := f.r.enterCall(); err != nil {
		return nil, err
	}
	defer func() { f.r.depth-- }()
	inner := &frame{}
	*inner = *f
	inner.out = &output{}
	if err := s.runLoop(inner, v, depth); err != nil {
		return nil, f.t.placeError(err, s.line)
	}
	return textLike(inner.out.b.String(), f.r.autoescape), nil
}

func (s jumpStmt) exec(*frame) (signal, error) { return s.sig, nil }

// exec stores the values one by one into the inner frame.
func (s *withStmt) exec(f *frame) (signal, error) {
	inner := f.newFrame(s.scope)
	for i, x := range s.values {
		v, err := x.eval(f)
		if err == nil {
			err = s.targets[i].store(inner, v)
		}
		if err != nil {
			return goOn, f.t.placeError(err, x.at())
		}
	}
	return execAll(inner, s.body)
}

// exec sets autoescape for the body. The old setting is restored even if the body fails.
func (s *autoescapeStmt) exec(f *frame) (signal, error) {
	yes, err := evalTruth(f, s.value)
	if err != nil {
		return goOn, f.t.placeError(err, s.value.at())
	}
	old := f.r.autoescape
	f.r.autoescape = yes
	defer func() { f.r.autoescape = old }()
	return execAll(f.newFrame(s.scope), s.body)
}

func (s *doStmt) exec(f *frame) (signal, error) {
	if _, err := s.x.eval(f); err != nil {
		return goOn, f.t.placeError(err, s.line)
	}
	return goOn, nil
}

// exec runs the most derived version of the block.
func (s *blockStmt) exec(f *frame) (signal, error) {
	if f.isSilent(s.toplevel) {
		return goOn, nil
	}
	list := f.ctx.blocks[s.name]
	// A required block with one version only was not overridden.
	if s.required && len(list) <= 1 {
		return goOn, f.t.placeError(raise("TemplateRuntimeError", "Required block %s not found", pyobj.Repr(s.name)), s.line)
	}
	c := f.ctx
	// A block sees the names around it only if it is scoped.
	if s.scoped {
		c = c.withScope(f, s.scope.parent)
	}
	if err := f.r.runBlock(c, s.name, list, 0, f.out); err != nil {
		return goOn, f.t.placeError(err, s.line)
	}
	return goOn, nil
}

// runBlock runs the version of a block at a level, 0 being the most derived, with super and self in its context.
func (r *Run) runBlock(c *Context, name string, list []blockImpl, level int, out *output) error {
	if err := r.enterCall(); err != nil {
		return err
	}
	defer func() { r.depth-- }()
	b := list[level]
	inner := &frame{r: r, slots: newSlots(len(b.b.scope.names)), ctx: c, out: out, t: b.t, block: name, level: level}
	names := map[string]any{"super": blockAfter(r, c, name, list, level+1), "self": &templateRef{c, inner}}
	// The block's own scope may assign a name super; only then the variable must not be in the context.
	if i := b.b.scope.slotOf("super"); i < 0 {
		// The context is copied, since super and self belong to this version of the block only.
		parent := maps.Clone(c.allNames())
		if parent == nil {
			parent = map[string]any{}
		}
		maps.Copy(parent, names)
		inner.ctx = &Context{parent: parent, blocks: c.blocks, name: c.name}
	}
	_, err := execAll(inner, b.b.body)
	return err
}

// exec notes the parent template and appends its blocks behind those of the children. The parent runs when the main
// body ends.
func (s *extendsStmt) exec(f *frame) (signal, error) {
	fail := func(err error) (signal, error) { return goOn, f.t.placeError(err, s.line) }
	if f.main == nil {
		return fail(raise("TemplateAssertionError", "cannot use extend from a non top-level scope"))
	}
	// A second extends would have no effect, so it is an error.
	if f.main.parent != nil {
		return fail(raise("TemplateRuntimeError", "extended multiple times"))
	}
	v, err := s.template.eval(f)
	if err != nil {
		return fail(err)
	}
	if _, ok := v.(*templateValue); !ok {
		if _, text := isText(v); !text {
			if u, undef := v.(*Undefined); undef {
				return fail(u.fail())
			}
		}
	}
	t, err := f.r.pickTemplate(v)
	if err != nil {
		return fail(err)
	}
	f.main.parent = t
	if f.ctx.blocks == nil {
		f.ctx.blocks = map[string][]blockImpl{}
	}
	// The parent's versions come behind those of its children.
	for name, b := range t.code.blocks {
		f.ctx.blocks[name] = append(f.ctx.blocks[name], blockImpl{t, b})
	}
	return goOn, nil
}

// exec writes the included template.
func (s *includeStmt) exec(f *frame) (signal, error) {
	if f.isSilent(s.check) {
		return goOn, nil
	}
	if err := s.includeTemplate(f); err != nil {
		return goOn, f.t.placeError(err, s.line)
	}
	return goOn, nil
}

// includeTemplate runs the template with the current names. Without context it runs as a module, whose text is kept.
func (s *includeStmt) includeTemplate(f *frame) error {
	v, err := s.template.eval(f)
	if err != nil {
		return err
	}
	t, err := f.r.pickTemplate(v)
	if err != nil {
		// placed errors come from inside a template that does exist, so "ignore missing" does not cover them.
		if e := asError(err); s.ignoreMissing && !e.placed && (e.Kind == "TemplateNotFound" || e.Kind == "TemplatesNotFound") {
			return nil
		}
		return err
	}
	old := f.r.autoescape
	defer func() { f.r.autoescape = old }()
	// Without context the text of the module is kept.
	if !s.context {
		m, err := f.r.loadModule(t)
		if err != nil {
			return err
		}
		return f.writeText(m.body)
	}
	// autoescape may depend on the included template's name.
	f.r.autoescape = f.r.env.escapesFor(t.Name)
	return t.runInto(f.r, newContext(t, withLocals(f.ctx.allNames(), f, s.scope)), f.out)
}

// loadModule returns a template that was imported without context. It runs once per render, since it sees globals
// only.
func (r *Run) loadModule(t *Template) (*Module, error) {
	if m := r.modules[t]; m != nil {
		return m, nil
	}
	m, err := r.makeModule(t, maps.Clone(r.globals))
	if err != nil {
		return nil, err
	}
	if r.modules == nil {
		r.modules = map[*Template]*Module{}
	}
	r.modules[t] = m
	return m, nil
}

// makeModule runs a template for its exported names and its text.
func (r *Run) makeModule(t *Template, names map[string]any) (*Module, error) {
	c := newContext(t, names)
	old := r.autoescape
	r.autoescape = r.env.escapesFor(t.Name)
	defer func() { r.autoescape = old }()
	body, err := t.runMain(r, c)
	if err != nil {
		return nil, err
	}
	return &Module{name: t.Name, ctx: c, body: body}, nil
}

// importModule loads the template of an import tag and runs it, with the current names if it was imported with
// context.
func importModule(f *frame, template expr, context bool, s *scope) (*Module, error) {
	v, err := template.eval(f)
	if err != nil {
		return nil, err
	}
	t, err := f.r.pickTemplate(v)
	if err != nil {
		return nil, err
	}
	if context {
		return f.r.makeModule(t, withLocals(f.ctx.allNames(), f, s))
	}
	return f.r.loadModule(t)
}

func (s *importStmt) exec(f *frame) (signal, error) {
	m, err := importModule(f, s.template, s.context, s.scope)
	if err == nil {
		err = s.target.store(f, m)
	}
	if err != nil {
		return goOn, f.t.placeError(err, s.line)
	}
	if s.toplevel {
		f.ctx.exportName(s.name, m, false)
	}
	return goOn, nil
}

func (s *fromStmt) exec(f *frame) (signal, error) {
	m, err := importModule(f, s.template, s.context, s.scope)
	if err != nil {
		return goOn, f.t.placeError(err, s.line)
	}
	for i, name := range s.names {
		v, ok := m.get(name)
		// A missing name is not an error yet: it becomes undefined, with a hint that says from where it was
		// imported.
		if !ok {
			where := "line " + pyobj.Str(int64(s.line))
			if f.t.Name != "" {
				where += " in " + pyobj.Repr(f.t.Name)
			}
			u := f.r.undefinedName(name)
			u.hint = "the template " + pyobj.Repr(m.moduleName()) + " (imported on " + where + ") does not export the requested name " + pyobj.Repr(name)
			v = u
		}
		if err := s.targets[i].store(f, v); err != nil {
			return goOn, f.t.placeError(err, s.line)
		}
		if s.toplevel {
			f.ctx.exportName(s.as[i], v, false)
		}
	}
	return goOn, nil
}

// exec stores the macro together with the frame, which the macro's free names refer to.
func (s *macroStmt) exec(f *frame) (signal, error) {
	return goOn, s.to.store(f, &Macro{code: s.code, frame: f, name: s.code.name})
}

// exec calls the function with the body as caller and prints the result.
// The caller is a macro without a name.
func (s *callStmt) exec(f *frame) (signal, error) {
	v, err := s.call.callWith(f, &Macro{code: s.code, frame: f})
	if err == nil {
		err = f.printValue(v)
	}
	if err != nil {
		return goOn, f.t.placeError(err, s.line)
	}
	return goOn, nil
}

// exec runs the body, filters the text, and prints it unless a template with extends is silent here.
func (s *filterStmt) exec(f *frame) (signal, error) {
	v, err := f.captureBody(s.scope, s.body)
	if err == nil {
		v, err = s.filter.applyChain(f, v)
	}
	if err == nil && !f.isSilent(s.check) {
		err = f.printValue(v)
	}
	if err != nil {
		return goOn, f.t.placeError(err, s.line)
	}
	return goOn, nil
}
