package jinja

import (
	"maps"
	"strconv"

	"github.com/brine-salt/brine/internal/pyobj"
)

func execAll(f *frame, body []stmt) (signal, error) {
	for _, s := range body {
		if sig, err := s.exec(f); err != nil || sig != goOn {
			return sig, err
		}
	}
	return goOn, nil
}

// silent tells that a template with extends writes nothing here any more.
func (f *frame) silent(check bool) bool { return check && f.main != nil && f.main.parent != nil }

func (s *outputStmt) exec(f *frame) (signal, error) {
	if f.silent(s.check) {
		return goOn, nil
	}
	if s.x == nil {
		return goOn, f.write(s.text)
	}
	v, err := s.x.eval(f)
	if err == nil {
		err = f.print(v)
	}
	if err != nil {
		return goOn, f.t.place(err, s.line)
	}
	return goOn, nil
}

// print writes a value.
func (f *frame) print(v any) error {
	if f.r.env.Finalize != nil {
		var err error
		if v, err = f.r.env.Finalize(v); err != nil {
			return err
		}
	}
	if f.r.autoescape {
		m, err := escaped(v)
		if err != nil {
			return err
		}
		return f.write(string(m))
	}
	if n, ok := v.(int64); ok {
		var digits [20]byte
		return f.writeBytes(strconv.AppendInt(digits[:0], n, 10))
	}
	s, err := Str(v)
	if err != nil {
		return err
	}
	return f.write(s)
}

func (t *nameTarget) store(f *frame, v any) error {
	f.slots[t.slot] = v
	if t.export {
		f.ctx.export(t.name, v, true)
	}
	return nil
}

func (t *tupleTarget) store(f *frame, v any) error {
	var items []any
	switch x := v.(type) {
	case pyobj.Tuple:
		items = x
	default:
		var err error
		if items, err = Collect(v); err != nil {
			if e := as(err); e.Kind == "TypeError" {
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
		return goOn, f.t.place(err, s.line)
	}
	return goOn, nil
}

// capture runs a body into a text.
func (f *frame) capture(s *scope, body []stmt) (any, error) {
	inner := f.newFrame(s)
	inner.out = &output{}
	if _, err := execAll(inner, body); err != nil {
		return nil, err
	}
	return textLike(inner.out.b.String(), f.r.autoescape), nil
}

func (s *assignBlockStmt) exec(f *frame) (signal, error) {
	v, err := f.capture(s.scope, s.body)
	if err == nil && s.filter != nil {
		v, err = s.filter.chain(f, v)
	}
	if err == nil {
		if text, ok := v.(string); ok && f.r.autoescape {
			v = pyobj.Markup(text)
		}
		err = s.target.store(f, v)
	}
	if err != nil {
		return goOn, f.t.place(err, s.line)
	}
	return goOn, nil
}

func (s *ifStmt) exec(f *frame) (signal, error) {
	for i, t := range s.tests {
		yes, err := evalTruth(f, t)
		if err != nil {
			return goOn, f.t.place(err, s.lines[i])
		}
		if yes {
			return execAll(f, s.body[i])
		}
	}
	return execAll(f, s.other)
}

func (s *forStmt) exec(f *frame) (signal, error) {
	v, err := s.iter.eval(f)
	if err != nil {
		return goOn, f.t.place(err, s.line)
	}
	if u, ok := v.(*Undefined); ok && u.kind == Strict {
		return goOn, f.t.place(u.fail(), s.line)
	}
	if err := s.loop(f, v, 0); err != nil {
		return goOn, f.t.place(err, s.line)
	}
	return goOn, nil
}

// filtered goes through what the loop's test accepts.
func (s *forStmt) filtered(f *frame, next func() (any, bool, error)) *Iter {
	inner := f.newFrame(s.testScope)
	return &Iter{Kind: "generator", Next: func() (any, bool, error) {
		for {
			v, ok, err := next()
			if err != nil || !ok {
				return nil, false, err
			}
			if one, once := v.(*Iter); once && s.simple < 0 { // the loop's own target takes it apart again
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

// loop runs the loop over a value; depth counts the calls of a recursive one.
func (s *forStmt) loop(f *frame, v any, depth int) error {
	next, err := Iterate(v)
	if err != nil {
		return err
	}
	if s.test != nil {
		it := s.filtered(f, next)
		v, next = it, it.Next
	}
	var loop *Loop
	if s.loopSlot >= 0 {
		loop = &Loop{r: f.r, over: v, next: next, depth0: depth, index0: -1, after: missing, current: missing, before: missing, changedTo: nil}
		if s.recursive {
			loop.recurse = func(v any, depth int) (any, error) { return s.again(f, v, depth) }
		}
		next = loop.advance
	}
	empty := true // also if break or continue ended every round, as Jinja has it
	var inner *frame
	for {
		x, ok, err := next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := f.r.step(); err != nil {
			return err
		}
		if inner == nil || s.scope.captured {
			inner = f.newFrame(s.scope)
		} else {
			for i := range inner.slots {
				inner.slots[i] = missing
			}
		}
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
		empty = empty && sig != goOn
	}
	if empty && s.other != nil {
		_, err := execAll(f.newFrame(s.elseScope), s.other)
		return err
	}
	return nil
}

// again is loop(…) inside of a recursive loop.
func (s *forStmt) again(f *frame, v any, depth int) (any, error) {
	if err := f.r.enter(); err != nil {
		return nil, err
	}
	defer func() { f.r.depth-- }()
	inner := &frame{}
	*inner = *f
	inner.out = &output{}
	if err := s.loop(inner, v, depth); err != nil {
		return nil, f.t.place(err, s.line)
	}
	return textLike(inner.out.b.String(), f.r.autoescape), nil
}

func (s jumpStmt) exec(*frame) (signal, error) { return s.sig, nil }

func (s *withStmt) exec(f *frame) (signal, error) {
	inner := f.newFrame(s.scope)
	for i, x := range s.values {
		v, err := x.eval(f)
		if err == nil {
			err = s.targets[i].store(inner, v)
		}
		if err != nil {
			return goOn, f.t.place(err, x.at())
		}
	}
	return execAll(inner, s.body)
}

func (s *autoescapeStmt) exec(f *frame) (signal, error) {
	yes, err := evalTruth(f, s.value)
	if err != nil {
		return goOn, f.t.place(err, s.value.at())
	}
	old := f.r.autoescape
	f.r.autoescape = yes
	defer func() { f.r.autoescape = old }()
	return execAll(f.newFrame(s.scope), s.body)
}

func (s *doStmt) exec(f *frame) (signal, error) {
	if _, err := s.x.eval(f); err != nil {
		return goOn, f.t.place(err, s.line)
	}
	return goOn, nil
}

func (s *blockStmt) exec(f *frame) (signal, error) {
	if f.silent(s.toplevel) {
		return goOn, nil
	}
	list := f.ctx.blocks[s.name]
	if s.required && len(list) <= 1 {
		return goOn, f.t.place(raise("TemplateRuntimeError", "Required block %s not found", pyobj.Repr(s.name)), s.line)
	}
	c := f.ctx
	if s.scoped {
		c = c.derived(f, s.scope.parent)
	}
	if err := f.r.block(c, s.name, list, 0, f.out); err != nil {
		return goOn, f.t.place(err, s.line)
	}
	return goOn, nil
}

// block runs one version of a block.
func (r *Run) block(c *Context, name string, list []blockImpl, level int, out *output) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer func() { r.depth-- }()
	b := list[level]
	inner := &frame{r: r, slots: newSlots(len(b.b.scope.names)), ctx: c, out: out, t: b.t, block: name, level: level}
	names := map[string]any{"super": blockAfter(r, c, name, list, level+1), "self": &templateRef{c, inner}}
	if i := b.b.scope.find("super"); i < 0 {
		parent := maps.Clone(c.all())
		if parent == nil {
			parent = map[string]any{}
		}
		maps.Copy(parent, names)
		inner.ctx = &Context{parent: parent, blocks: c.blocks, name: c.name}
	}
	_, err := execAll(inner, b.b.body)
	return err
}

func (s *extendsStmt) exec(f *frame) (signal, error) {
	fail := func(err error) (signal, error) { return goOn, f.t.place(err, s.line) }
	if f.main == nil {
		return fail(raise("TemplateAssertionError", "cannot use extend from a non top-level scope"))
	}
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
	t, err := f.r.pick(v)
	if err != nil {
		return fail(err)
	}
	f.main.parent = t
	if f.ctx.blocks == nil {
		f.ctx.blocks = map[string][]blockImpl{}
	}
	for name, b := range t.code.blocks {
		f.ctx.blocks[name] = append(f.ctx.blocks[name], blockImpl{t, b})
	}
	return goOn, nil
}

func (s *includeStmt) exec(f *frame) (signal, error) {
	if f.silent(s.check) {
		return goOn, nil
	}
	if err := s.include(f); err != nil {
		return goOn, f.t.place(err, s.line)
	}
	return goOn, nil
}

func (s *includeStmt) include(f *frame) error {
	v, err := s.template.eval(f)
	if err != nil {
		return err
	}
	t, err := f.r.pick(v)
	if err != nil {
		if e := as(err); s.ignoreMissing && !e.placed && (e.Kind == "TemplateNotFound" || e.Kind == "TemplatesNotFound") {
			return nil
		}
		return err
	}
	old := f.r.autoescape
	defer func() { f.r.autoescape = old }()
	if !s.context {
		m, err := f.r.module(t)
		if err != nil {
			return err
		}
		return f.write(m.body)
	}
	f.r.autoescape = f.r.env.escapes(t.Name)
	return t.into(f.r, newContext(t, withLocals(f.ctx.all(), f, s.scope)), f.out)
}

// module is a template that was imported without context; it is run once.
func (r *Run) module(t *Template) (*Module, error) {
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

func (r *Run) makeModule(t *Template, names map[string]any) (*Module, error) {
	c := newContext(t, names)
	old := r.autoescape
	r.autoescape = r.env.escapes(t.Name)
	defer func() { r.autoescape = old }()
	body, err := t.run(r, c)
	if err != nil {
		return nil, err
	}
	return &Module{name: t.Name, ctx: c, body: body}, nil
}

func imported(f *frame, template expr, context bool, s *scope) (*Module, error) {
	v, err := template.eval(f)
	if err != nil {
		return nil, err
	}
	t, err := f.r.pick(v)
	if err != nil {
		return nil, err
	}
	if context {
		return f.r.makeModule(t, withLocals(f.ctx.all(), f, s))
	}
	return f.r.module(t)
}

func (s *importStmt) exec(f *frame) (signal, error) {
	m, err := imported(f, s.template, s.context, s.scope)
	if err == nil {
		err = s.target.store(f, m)
	}
	if err != nil {
		return goOn, f.t.place(err, s.line)
	}
	if s.toplevel {
		f.ctx.export(s.name, m, false)
	}
	return goOn, nil
}

func (s *fromStmt) exec(f *frame) (signal, error) {
	m, err := imported(f, s.template, s.context, s.scope)
	if err != nil {
		return goOn, f.t.place(err, s.line)
	}
	for i, name := range s.names {
		v, ok := m.get(name)
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
			return goOn, f.t.place(err, s.line)
		}
		if s.toplevel {
			f.ctx.export(s.as[i], v, false)
		}
	}
	return goOn, nil
}

func (s *macroStmt) exec(f *frame) (signal, error) {
	return goOn, s.to.store(f, &Macro{code: s.code, frame: f, name: s.code.name})
}

func (s *callStmt) exec(f *frame) (signal, error) {
	v, err := s.call.with(f, &Macro{code: s.code, frame: f})
	if err == nil {
		err = f.print(v)
	}
	if err != nil {
		return goOn, f.t.place(err, s.line)
	}
	return goOn, nil
}

func (s *filterStmt) exec(f *frame) (signal, error) {
	v, err := f.capture(s.scope, s.body)
	if err == nil {
		v, err = s.filter.chain(f, v)
	}
	if err == nil && !f.silent(s.check) {
		err = f.print(v)
	}
	if err != nil {
		return goOn, f.t.place(err, s.line)
	}
	return goOn, nil
}
