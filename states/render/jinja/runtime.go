package jinja

import (
	"github.com/brine-salt/brine/modules/pyobj"
)

// Macro is a macro, or the caller of a call block: code and the frame of its definition, a closure.
type Macro struct {
	code  *macroCode
	frame *frame // the one around the definition
	name  string
}

// TypeName implements [pyobj.Object].
func (*Macro) TypeName() string { return "Macro" }

// Repr implements [pyobj.Object].
func (m *Macro) Repr() string {
	if m.code.name == "" {
		return "<Macro 'caller'>"
	}
	return "<Macro " + pyobj.Repr(m.name) + ">"
}

// GetAttr implements [Attributes] with Jinja's introspection.
func (m *Macro) GetAttr(_ *Run, name string) (any, bool, error) {
	switch name {
	case "name":
		if m.code.name == "" {
			return nil, true, nil
		}
		return m.name, true, nil
	case "arguments":
		t := pyobj.Tuple{}
		for _, a := range m.code.args {
			t = append(t, a)
		}
		return t, true, nil
	case "catch_kwargs":
		return m.code.kwargsSlot >= 0, true, nil
	case "catch_varargs":
		return m.code.varargsSlot >= 0, true, nil
	case "caller":
		return m.code.callerSlot >= 0, true, nil
	}
	return nil, false, nil
}

// Call implements [Callable]. Arguments are bound as in jinja2.runtime.Macro.__call__, whose errors differ from
// those of Python functions.
func (m *Macro) Call(r *Run, a Args) (any, error) {
	c := m.code
	f := m.frame.newFrame(c.scope)
	f.out = &output{}
	kwargs := a.Kw
	// take removes a keyword and returns its value. The list is copied, since the caller may use it again.
	take := func(name string) (any, bool) {
		for i := range kwargs {
			if kwargs[i].Name == name {
				v := kwargs[i].Value
				kwargs = append(append([]KW{}, kwargs[:i]...), kwargs[i+1:]...)
				return v, true
			}
		}
		return nil, false
	}
	// Positional arguments fill the parameters from the left.
	given := min(len(a.Pos), len(c.args))
	found := given == len(c.args) && c.explicit
	values := make([]any, len(c.args))
	for i, name := range c.args {
		if i < given {
			values[i] = a.Pos[i]
			continue
		}
		v, ok := take(name)
		if name == "caller" {
			found = true
		}
		if !ok {
			v = missing
		}
		values[i] = v
	}
	// caller is a variable of the body unless a parameter has that name.
	if c.callerSlot >= 0 && !found {
		v, ok := take("caller")
		if !ok || v == nil {
			u := r.undefinedName("caller")
			u.hint = "No caller defined"
			v = u
		}
		f.slots[c.callerSlot] = v
	}
	// kwargs and varargs receive the remaining arguments, if the body uses them.
	if c.kwargsSlot >= 0 {
		d := &pyobj.Dict{}
		for _, kw := range kwargs {
			_ = d.Set(kw.Name, kw.Value)
		}
		f.slots[c.kwargsSlot] = d
	} else if len(kwargs) > 0 {
		for _, kw := range kwargs {
			if kw.Name == "caller" {
				return nil, typeError("macro %s was invoked with two values for the special caller argument. This is most likely a bug.", m.quotedName())
			}
		}
		return nil, typeError("macro %s takes no keyword argument %s", m.quotedName(), pyobj.Repr(kwargs[0].Name))
	}
	if c.varargsSlot >= 0 {
		f.slots[c.varargsSlot] = pyobj.Tuple(append([]any{}, a.Pos[given:]...))
	} else if len(a.Pos) > len(c.args) {
		return nil, typeError("macro %s takes not more than %d argument(s)", m.quotedName(), len(c.args))
	}
	if err := r.enterCall(); err != nil {
		return nil, err
	}
	defer func() { r.depth-- }()
	// Defaults are evaluated now, in the macro's own frame, because they may use earlier parameters.
	for i, v := range values {
		if v == missing {
			if d := i - (len(c.args) - len(c.defaults)); d >= 0 {
				var err error
				if v, err = c.defaults[d].eval(f); err != nil {
					return nil, m.frame.t.placeError(err, c.defaults[d].at())
				}
			} else {
				u := r.undefinedName(c.args[i])
				u.hint = "parameter " + pyobj.Repr(c.args[i]) + " was not provided"
				v = u
			}
		}
		f.slots[c.slots[i]] = v
	}
	if _, err := execAll(f, c.body); err != nil {
		return nil, err
	}
	return textLike(f.out.b.String(), r.autoescape), nil
}

// quotedName returns the name as errors show it.
func (m *Macro) quotedName() string {
	if m.code.name == "" {
		return "None"
	}
	return pyobj.Repr(m.name)
}

// Loop is the variable loop. The loop takes its items from it, so that it can look ahead.
type Loop struct {
	r *Run
	// what the loop goes through, for its length
	over any
	// the iterator below; after holds an item that was read ahead
	next func() (any, bool, error)
	// runs the loop again, nil if it is not recursive
	recurse func(v any, depth int) (any, error)
	index0  int
	depth0  int
	// whether total is computed
	known bool
	total int

	// missing if there is no such item
	after, current, before any
	changedTo              pyobj.Tuple
	everChanged            bool
}

// TypeName implements [pyobj.Object].
func (*Loop) TypeName() string { return "LoopContext" }

// Repr implements [pyobj.Object].
func (l *Loop) Repr() string {
	n, _ := l.totalLength()
	return "<LoopContext " + pyobj.Str(int64(l.index0+1)) + "/" + pyobj.Str(int64(n)) + ">"
}

// advance moves to the next item.
func (l *Loop) advance() (any, bool, error) {
	v := l.after
	if v != missing {
		l.after = missing
	} else {
		x, ok, err := l.next()
		if err != nil || !ok {
			return nil, false, err
		}
		v = x
	}
	l.index0++
	l.before, l.current = l.current, v
	return v, true, nil
}

// peek returns the item after the current one, or missing.
func (l *Loop) peek() (any, error) {
	if l.after == missing {
		v, ok, err := l.next()
		if err != nil {
			return nil, err
		}
		if ok {
			l.after = v
		}
	}
	return l.after, nil
}

// totalLength returns the number of items. An iterator must be read to its end for that, and its items are kept for
// the loop.
func (l *Loop) totalLength() (int, error) {
	if l.known {
		return l.total, nil
	}
	n, err := lengthOf(l.over)
	// An iterator has no length, so the rest of it is read and kept.
	if _, undef := l.over.(*Iter); err != nil || undef {
		rest, err := Collect(&Iter{Kind: "", Next: l.next})
		if err != nil {
			return 0, err
		}
		l.next = overItems(func() []any { return rest })
		n = len(rest) + l.index0 + 1
		if l.after != missing {
			n++
		}
	}
	l.known, l.total = true, n
	return n, nil
}

// GetAttr implements [Attributes]. Only last, nextitem and the lengths need to read ahead.
func (l *Loop) GetAttr(r *Run, name string) (any, bool, error) {
	switch name {
	case "index":
		return int64(l.index0 + 1), true, nil
	case "index0":
		return int64(l.index0), true, nil
	case "first":
		return l.index0 == 0, true, nil
	case "last":
		v, err := l.peek()
		return v == missing, true, err
	case "length":
		n, err := l.totalLength()
		return int64(n), true, err
	case "revindex":
		n, err := l.totalLength()
		return int64(n - l.index0), true, err
	case "revindex0":
		n, err := l.totalLength()
		return int64(n - l.index0 - 1), true, err
	case "depth":
		return int64(l.depth0 + 1), true, nil
	case "depth0":
		return int64(l.depth0), true, nil
	case "previtem":
		if l.index0 == 0 {
			return r.Undefined("there is no previous item"), true, nil
		}
		return l.before, true, nil
	case "nextitem":
		v, err := l.peek()
		if v == missing {
			return r.Undefined("there is no next item"), true, err
		}
		return v, true, err
	case "cycle":
		return &Func{Name: "cycle", Fn: func(_ *Run, a Args) (any, error) {
			if len(a.Pos) == 0 {
				return nil, typeError("no items for cycling given")
			}
			return a.Pos[l.index0%len(a.Pos)], nil
		}}, true, nil
	case "changed":
		return &Func{Name: "changed", Fn: func(_ *Run, a Args) (any, error) {
			now := pyobj.Tuple(a.Pos)
			if l.everChanged && pyobj.Equal(l.changedTo, now) {
				return false, nil
			}
			l.changedTo, l.everChanged = now, true
			return true, nil
		}}, true, nil
	}
	return nil, false, nil
}

// Call implements [Callable]: it runs a recursive loop for the items of the next level.
func (l *Loop) Call(_ *Run, a Args) (any, error) {
	args, err := a.Bind("LoopContext.__call__", []string{"iterable"})
	if err != nil {
		return nil, err
	}
	if l.recurse == nil {
		return nil, typeError("The loop must have the 'recursive' marker to be called recursively.")
	}
	return l.recurse(args[0], l.depth0+1)
}

// Iterate implements [Iterable], because Jinja's loop is itself iterable.
func (l *Loop) Iterate() func() (any, bool, error) {
	return func() (any, bool, error) {
		v, ok, err := l.advance()
		return pyobj.Tuple{v, l}, ok, err
	}
}

// Namespace is the object of namespace(), the only one whose attributes a template may assign.
type Namespace struct{ d *pyobj.Dict }

// TypeName implements [pyobj.Object].
func (*Namespace) TypeName() string { return "Namespace" }

// Repr implements [pyobj.Object].
func (n *Namespace) Repr() string { return "<Namespace " + pyobj.Repr(n.d) + ">" }

// GetAttr implements [Attributes].
func (n *Namespace) GetAttr(_ *Run, name string) (any, bool, error) {
	v, ok := n.d.Get(name)
	return v, ok, nil
}

// Module is an imported template: its exported names, and what it wrote.
type Module struct {
	name string
	ctx  *Context
	body string
}

// TypeName implements [pyobj.Object].
func (*Module) TypeName() string { return "TemplateModule" }

// Repr implements [pyobj.Object].
func (m *Module) Repr() string { return "<TemplateModule " + pyobj.Repr(m.name) + ">" }

// moduleName returns the name, or None for a template without one.
func (m *Module) moduleName() any {
	if m.name == "" {
		return nil
	}
	return m.name
}

// Str implements pyobj's str: a module prints what it wrote.
func (m *Module) Str() string { return m.body }

// get returns an exported name.
func (m *Module) get(name string) (any, bool) {
	if !m.ctx.exported[name] {
		return nil, false
	}
	v, ok := m.ctx.vars[name]
	return v, ok
}

// GetAttr implements [Attributes].
func (m *Module) GetAttr(_ *Run, name string) (any, bool, error) {
	v, ok := m.get(name)
	return v, ok, nil
}

// Text returns what the module wrote, for the import_* tags.
func (m *Module) Text() string { return m.body }

// templateRef is the variable self, whose items are the blocks.
type templateRef struct {
	c *Context
	f *frame
}

func (*templateRef) TypeName() string { return "TemplateReference" }
func (t *templateRef) Repr() string {
	return "<TemplateReference " + pyobj.Repr((&Module{name: t.c.name}).moduleName()) + ">"
}

func (t *templateRef) GetItem(r *Run, key any) (any, bool, error) {
	name, ok := isText(key)
	list := t.c.blocks[name]
	if !ok || len(list) == 0 {
		return nil, false, nil
	}
	return &blockRef{t.c, name, list, 0}, true, nil
}

// blockRef is a version of a block as a function: self.name() or super().
type blockRef struct {
	c     *Context
	name  string
	list  []blockImpl
	level int
}

// blockAfter returns the version of a block at a level, or an undefined value with a hint.
func blockAfter(r *Run, c *Context, name string, list []blockImpl, level int) any {
	if level >= len(list) {
		u := r.undefinedName("super")
		u.hint = "there is no parent block called " + pyobj.Repr(name) + "."
		return u
	}
	return &blockRef{c, name, list, level}
}

func (*blockRef) TypeName() string { return "BlockReference" }
func (*blockRef) Repr() string     { return "<BlockReference>" }

func (b *blockRef) Call(r *Run, _ Args) (any, error) {
	out := &output{}
	if err := r.runBlock(b.c, b.name, b.list, b.level, out); err != nil {
		return nil, err
	}
	return textLike(out.b.String(), r.autoescape), nil
}

func (b *blockRef) GetAttr(r *Run, name string) (any, bool, error) {
	if name == "super" {
		return blockAfter(r, b.c, b.name, b.list, b.level+1), true, nil
	}
	return nil, false, nil
}

// cycler is the object of cycler(), which repeats a list.
type cycler struct {
	items []any
	pos   int
}

func (*cycler) TypeName() string { return "Cycler" }
func (*cycler) Repr() string     { return "<jinja2.utils.Cycler object>" }

func (c *cycler) GetAttr(_ *Run, name string) (any, bool, error) {
	switch name {
	case "current":
		return c.items[c.pos], true, nil
	case "pos":
		return int64(c.pos), true, nil
	case "items":
		return pyobj.Tuple(c.items), true, nil
	case "next":
		return &Func{Name: "next", Fn: func(*Run, Args) (any, error) {
			v := c.items[c.pos]
			c.pos = (c.pos + 1) % len(c.items)
			return v, nil
		}}, true, nil
	case "reset":
		return &Func{Name: "reset", Fn: func(*Run, Args) (any, error) {
			c.pos = 0
			return nil, nil
		}}, true, nil
	}
	return nil, false, nil
}

// joiner is the object of joiner(): "" on the first call, the separator afterwards.
type joiner struct {
	sep  any
	used bool
}

func (*joiner) TypeName() string { return "Joiner" }
func (*joiner) Repr() string     { return "<jinja2.utils.Joiner object>" }

func (j *joiner) Call(*Run, Args) (any, error) {
	if !j.used {
		j.used = true
		return "", nil
	}
	return j.sep, nil
}

func (j *joiner) GetAttr(_ *Run, name string) (any, bool, error) {
	switch name {
	case "sep":
		return j.sep, true, nil
	case "used":
		return j.used, true, nil
	}
	return nil, false, nil
}
