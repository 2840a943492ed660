package jinja

import (
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/pyobj"
)

// frame is a scope at run time.
type frame struct {
	r      *Run
	parent *frame
	slots  []any
	ctx    *Context
	out    *output
	t      *Template
	// main is the run of a template's main body that the frame belongs to, for extends.
	main *mainRun
	// block and level are the block that is running.
	block string
	level int
}

// mainRun is one run of a template's main body.
type mainRun struct{ parent *Template }

// newFrame enters a scope.
func (f *frame) newFrame(s *scope) *frame {
	n := &frame{}
	*n = *f
	n.parent = f
	n.slots = newSlots(len(s.names))
	return n
}

func newSlots(n int) []any {
	slots := make([]any, n)
	for i := range slots {
		slots[i] = missing
	}
	return slots
}

func (n *nameExpr) eval(f *frame) (any, error) {
	for _, ref := range n.refs {
		at := f
		for range ref.up {
			at = at.parent
		}
		if v := at.slots[ref.slot]; v != missing {
			return v, nil
		}
	}
	return f.ctx.resolve(f.r, n.name)
}

func (n *constExpr) eval(*frame) (any, error) { return n.value, nil }

func evalAll(f *frame, list []expr) ([]any, error) {
	out := make([]any, len(list))
	for i, x := range list {
		v, err := x.eval(f)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (n *tupleExpr) eval(f *frame) (any, error) {
	items, err := evalAll(f, n.items)
	return f.r.made(pyobj.Tuple(items), err)
}

func (n *listExpr) eval(f *frame) (any, error) {
	items, err := evalAll(f, n.items)
	return f.r.made(&pyobj.List{Items: items}, err)
}

func (n *dictExpr) eval(f *frame) (any, error) {
	d := &pyobj.Dict{}
	for i := range n.keys {
		k, err := n.keys[i].eval(f)
		if err != nil {
			return nil, err
		}
		v, err := n.values[i].eval(f)
		if err != nil {
			return nil, err
		}
		if err := d.Set(k, v); err != nil {
			return nil, err
		}
	}
	return f.r.made(d, nil)
}

func evalTruth(f *frame, x expr) (bool, error) {
	v, err := x.eval(f)
	if err != nil {
		return false, err
	}
	return Truth(v)
}

func (n *condExpr) eval(f *frame) (any, error) {
	yes, err := evalTruth(f, n.test)
	switch {
	case err != nil:
		return nil, err
	case yes:
		return n.yes.eval(f)
	case n.no != nil:
		return n.no.eval(f)
	}
	where := ""
	if f.t.Name != "" {
		where = " in " + pyobj.Repr(f.t.Name)
	}
	u := f.r.Undefined("the inline if-expression on line " + pyobj.Str(int64(n.at())) + where +
		" evaluated to false and no else section was defined.")
	if u.kind == Strict { // here Jinja is lenient
		u.kind = Default
	}
	return u, nil
}

func (n *binExpr) eval(f *frame) (any, error) {
	a, err := n.left.eval(f)
	if err != nil {
		return nil, err
	}
	b, err := n.right.eval(f)
	if err != nil {
		return nil, err
	}
	return f.r.made(f.r.binary(n.op, a, b))
}

func (n *andExpr) eval(f *frame) (any, error) {
	v, err := n.left.eval(f)
	if err != nil {
		return nil, err
	}
	if yes, err := Truth(v); err != nil || !yes {
		return v, err
	}
	return n.right.eval(f)
}

func (n *orExpr) eval(f *frame) (any, error) {
	v, err := n.left.eval(f)
	if err != nil {
		return nil, err
	}
	if yes, err := Truth(v); err != nil || yes {
		return v, err
	}
	return n.right.eval(f)
}

func (n *notExpr) eval(f *frame) (any, error) {
	yes, err := evalTruth(f, n.x)
	return !yes, err
}

func (n *signExpr) eval(f *frame) (any, error) {
	v, err := n.x.eval(f)
	if err != nil {
		return nil, err
	}
	return sign(n.neg, v)
}

func (n *concatExpr) eval(f *frame) (any, error) {
	items, err := evalAll(f, n.items)
	if err != nil {
		return nil, err
	}
	if f.r.autoescape && constant(n.items) { // Jinja joins constants before it runs, as plain texts
		text := ""
		for _, v := range items {
			s, err := Str(v)
			if err != nil {
				return nil, err
			}
			text += s
		}
		return text, nil
	}
	return f.r.concat(items)
}

// constant tells whether expressions have the same value in every run.
func constant(list []expr) bool {
	for _, x := range list {
		switch x := x.(type) {
		case *constExpr:
		case *filterExpr:
			if x.x == nil || !constant([]expr{x.x}) || !constant(x.args) || x.values != nil || x.dynArgs != nil || x.dynKwds != nil {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// concat is the operator ~: with autoescape the parts are escaped if one of them is Markup.
func (r *Run) concat(items []any) (any, error) {
	markup := false
	if r.autoescape {
		for _, v := range items {
			_, is := v.(pyobj.Markup)
			markup = markup || is
		}
	}
	var b strings.Builder
	for _, v := range items {
		var s string
		var err error
		if markup {
			var m pyobj.Markup
			m, err = escaped(v)
			s = string(m)
		} else {
			s, err = Str(v)
		}
		if err != nil {
			return nil, err
		}
		if b.Len()+len(s) > MaxText {
			return nil, TooLong()
		}
		b.WriteString(s)
	}
	return r.made(textLike(b.String(), markup), nil)
}

func (n *compareExpr) eval(f *frame) (any, error) {
	a, err := n.first.eval(f)
	if err != nil {
		return nil, err
	}
	for _, o := range n.ops {
		b, err := o.x.eval(f)
		if err != nil {
			return nil, err
		}
		var yes bool
		switch o.op {
		case tEq:
			yes, err = equals(a, b)
		case tNe:
			yes, err = equals(a, b)
			yes = !yes
		case tIn:
			yes, err = f.r.contains(b, a)
		case tNotIn:
			yes, err = f.r.contains(b, a)
			yes = !yes
		default:
			yes, err = order(o.op, a, b)
		}
		if err != nil || !yes {
			return false, err
		}
		a = b
	}
	return true, nil
}

func (n *attrExpr) eval(f *frame) (any, error) {
	v, err := n.x.eval(f)
	if err != nil {
		return nil, err
	}
	return f.r.GetAttr(v, n.name)
}

func (n *itemExpr) eval(f *frame) (any, error) {
	v, err := n.x.eval(f)
	if err != nil {
		return nil, err
	}
	if s, ok := n.key.(*sliceExpr); ok {
		return s.of(f, v)
	}
	key, err := n.key.eval(f)
	if err != nil {
		return nil, err
	}
	return f.r.GetItem(v, key)
}

// eval of a slice in a tuple of keys: no built-in type takes such a key.
func (n *sliceExpr) eval(*frame) (any, error) { return nil, typeError("unhashable type: 'slice'") }

func (n *sliceExpr) of(f *frame, v any) (any, error) {
	var parts [3]any
	for i, x := range []expr{n.start, n.stop, n.step} {
		if x != nil {
			var err error
			if parts[i], err = x.eval(f); err != nil {
				return nil, err
			}
		}
	}
	return f.r.slice(v, parts[0], parts[1], parts[2])
}

// eval computes the arguments of a call.
func (a *arguments) eval(f *frame) (Args, error) {
	var out Args
	if a.fixed != nil {
		out.Pos = slices.Clip(a.fixed)
	} else if len(a.args) > 0 {
		items, err := evalAll(f, a.args)
		if err != nil {
			return out, err
		}
		out.Pos = items
	}
	if a.dynArgs != nil {
		v, err := a.dynArgs.eval(f)
		if err != nil {
			return out, err
		}
		more, err := Collect(v)
		if err != nil {
			if e := as(err); e.Kind == "TypeError" {
				return out, typeError("argument after * must be an iterable, not %s", pyobj.TypeName(v))
			}
			return out, err
		}
		out.Pos = append(out.Pos, more...)
	}
	for i, x := range a.values {
		v, err := x.eval(f)
		if err != nil {
			return out, err
		}
		out.Kw = append(out.Kw, KW{a.names[i], v})
	}
	if a.dynKwds == nil {
		return out, nil
	}
	v, err := a.dynKwds.eval(f)
	if err != nil {
		return out, err
	}
	d, ok := v.(*pyobj.Dict)
	if !ok {
		if u, undef := v.(*Undefined); undef {
			return out, u.fail()
		}
		return out, typeError("argument after ** must be a mapping, not %s", pyobj.TypeName(v))
	}
	for k, x := range d.All() {
		name, ok := isText(k)
		if !ok {
			return out, typeError("keywords must be strings")
		}
		if _, twice := out.Get(name); twice {
			return out, typeError("got multiple values for keyword argument '%s'", name)
		}
		out.Kw = append(out.Kw, KW{name, x})
	}
	return out, nil
}

func (n *callExpr) eval(f *frame) (any, error) { return n.with(f, nil) }

// with calls the function, with a caller if there is one.
func (n *callExpr) with(f *frame, caller *Macro) (any, error) {
	if a, ok := n.fn.(*attrExpr); ok {
		obj, err := a.x.eval(f)
		if err != nil {
			return nil, err
		}
		if builtin(obj) && !strings.HasPrefix(a.name, "_") { // no need to make a method of it first
			if hasMethod(obj, a.name) {
				args, err := n.arguments.eval(f)
				if err != nil {
					return nil, err
				}
				v, _, err := f.r.method(obj, a.name, args)
				return f.r.made(v, err)
			}
		}
		fn, err := f.r.GetAttr(obj, a.name)
		if err != nil {
			return nil, err
		}
		return n.call(f, fn, caller)
	}
	fn, err := n.fn.eval(f)
	if err != nil {
		return nil, err
	}
	return n.call(f, fn, caller)
}

func (n *callExpr) call(f *frame, fn any, caller *Macro) (any, error) {
	args, err := n.arguments.eval(f)
	if err != nil {
		return nil, err
	}
	if caller != nil {
		args.Kw = append(args.Kw, KW{"caller", caller})
	}
	f.r.frame = f
	return f.r.made(f.r.Call(fn, args))
}

// Call calls a value.
func (r *Run) Call(fn any, a Args) (any, error) {
	switch c := fn.(type) {
	case *Func:
		if c.unsafe {
			return nil, raise("SecurityError", "%s is not safely callable", c.Repr())
		}
		return c.Fn(r, a)
	case Callable:
		return c.Call(r, a)
	case *Undefined:
		return nil, c.fail()
	}
	return nil, typeError("'%s' object is not callable", pyobj.TypeName(fn))
}

func (n *filterExpr) eval(f *frame) (any, error) {
	v, err := n.x.eval(f)
	if err != nil {
		return nil, err
	}
	return n.apply(f, v)
}

// apply runs the filter, and those before it in a block's chain, on a value.
func (n *filterExpr) apply(f *frame, v any) (any, error) {
	if n.fn == nil {
		return nil, raise("TemplateRuntimeError", "No filter named %s found.", pyobj.Repr(n.name))
	}
	args, err := n.arguments.eval(f)
	if err != nil {
		return nil, err
	}
	f.r.frame = f
	args.Before = 1
	return f.r.made(n.fn(f.r, v, args))
}

// chain runs a chain of filters without a beginning on a value.
func (n *filterExpr) chain(f *frame, v any) (any, error) {
	if first, ok := n.x.(*filterExpr); ok {
		var err error
		if v, err = first.chain(f, v); err != nil {
			return nil, err
		}
	}
	return n.apply(f, v)
}

func (n *testExpr) eval(f *frame) (any, error) {
	v, err := n.x.eval(f)
	if err != nil {
		return nil, err
	}
	if n.fn == nil {
		return nil, raise("TemplateRuntimeError", "No test named %s found.", pyobj.Repr(n.name))
	}
	args, err := n.arguments.eval(f)
	if err != nil {
		return nil, err
	}
	f.r.frame = f
	args.Before = 1
	return f.r.made(n.fn(f.r, v, args))
}

func (n *nsRefExpr) eval(f *frame) (any, error) {
	v, err := n.ns.eval(f)
	if err != nil {
		return nil, err
	}
	return f.r.GetAttr(v, n.attr)
}

// macroBody is what the body of a load tag gives.
type macroBody struct {
	pos
	code *macroCode
}

func (n *macroBody) eval(f *frame) (any, error) {
	return (&Macro{code: n.code, frame: f, name: n.code.name}).Call(f.r, Args{})
}
