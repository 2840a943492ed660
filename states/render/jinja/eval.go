package jinja

import (
	"slices"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// frame is a scope at run time: the values of its names. It is copied on entry, so that an inner frame may have its
// own output or template without the outer one noticing.
type frame struct {
	r      *Run
	parent *frame
	// slots holds a value per name of the scope, missing for one that is not assigned.
	slots []any
	ctx   *Context
	out   *output
	t     *Template
	// main is the run of the main body that the frame belongs to, nil in blocks; extends notes the parent in it.
	main *mainRun
	// block and level tell which version of which block is running, for super().
	block string
	level int
}

// mainRun is one run of a template's main body. parent is set once extends has run.
type mainRun struct{ parent *Template }

// newFrame returns a frame for a scope inside of f, with empty slots.
func (f *frame) newFrame(s *scope) *frame {
	n := &frame{}
	*n = *f
	n.parent = f
	n.slots = newSlots(len(s.names))
	return n
}

// newSlots returns n empty slots.
//
//go:noinline
func newSlots(n int) []any {
	slots := make([]any, n)
	for i := range slots {
		slots[i] = missing
	}
	return slots
}

// eval looks in the frames that may hold the name, then in the context. Slots are checked for missing, since the
// assignment may not have run.
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
	// No frame holds it.
	return f.ctx.resolveName(f.r, n.name)
}

func (n *constExpr) eval(*frame) (any, error) { return n.value, nil }

// evalAll evaluates a list of expressions from left to right.
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
	return f.r.countMade(pyobj.Tuple(items), err)
}

func (n *listExpr) eval(f *frame) (any, error) {
	items, err := evalAll(f, n.items)
	return f.r.countMade(&pyobj.List{Items: items}, err)
}

// eval sets keys in the order of the text; a later one of the same value wins but keeps its first place, as in
// Python.
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
	return f.r.countMade(d, nil)
}

// evalTruth evaluates an expression as a condition.
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
	// Without else the value is undefined with this hint, which a template may print or test.
	where := ""
	if f.t.Name != "" {
		where = " in " + pyobj.Repr(f.t.Name)
	}
	// The hint is the whole message, so no name is needed.
	u := f.r.Undefined("the inline if-expression on line " + pyobj.Str(int64(n.at())) + where +
		" evaluated to false and no else section was defined.")
	if u.kind == Strict { // Jinja uses the lenient class here even in a strict environment
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
	return f.r.countMade(f.r.binaryOp(n.op, a, b))
}

// eval returns one of the operands, not a bool, and leaves the second one unevaluated if the first decides.
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
	return signedNumber(n.neg, v)
}

func (n *concatExpr) eval(f *frame) (any, error) {
	items, err := evalAll(f, n.items)
	if err != nil {
		return nil, err
	}
	if f.r.autoescape && allConstant(n.items) { // Jinja joins constants when it compiles, as plain text, so they are not escaped
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
	return f.r.concatText(items)
}

// allConstant reports whether the expressions are constants or filters on constants, which Jinja's optimizer folds.
func allConstant(list []expr) bool {
	for _, x := range list {
		switch x := x.(type) {
		case *constExpr:
		case *filterExpr:
			if x.x == nil || !allConstant([]expr{x.x}) || !allConstant(x.args) || x.values != nil || x.dynArgs != nil || x.dynKwds != nil {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// concatText implements the operator ~. With autoescape the parts are escaped if one of them is Markup.
func (r *Run) concatText(items []any) (any, error) {
	markup := false
	if r.autoescape {
		// If one part is safe the result is.
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
			m, err = escapeValue(v)
			s = string(m)
		} else {
			s, err = Str(v)
		}
		if err != nil {
			return nil, err
		}
		// The length is checked before the text grows, so that a bomb fails before it uses the memory.
		if b.Len()+len(s) > MaxText {
			return nil, TooLong()
		}
		b.WriteString(s)
	}
	return r.countMade(textLike(b.String(), markup), nil)
}

// eval compares step by step and stops at the first that does not hold, as a < b < c does in Python.
func (n *compareExpr) eval(f *frame) (any, error) {
	a, err := n.first.eval(f)
	if err != nil {
		return nil, err
	}
	// Each operand but the first and last is compared twice and evaluated once.
	for _, o := range n.ops {
		b, err := o.x.eval(f)
		if err != nil {
			return nil, err
		}
		var yes bool
		switch o.op {
		case tEq:
			yes, err = valuesEqual(a, b)
		case tNe:
			yes, err = valuesEqual(a, b)
			yes = !yes
		case tIn:
			yes, err = f.r.containsItem(b, a)
		case tNotIn:
			yes, err = f.r.containsItem(b, a)
			yes = !yes
		default:
			yes, err = orderHolds(o.op, a, b)
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
		return s.sliceValue(f, v)
	}
	key, err := n.key.eval(f)
	if err != nil {
		return nil, err
	}
	return f.r.GetItem(v, key)
}

// eval is reached for a slice inside a tuple of keys only. No built-in type accepts such a key.
func (n *sliceExpr) eval(*frame) (any, error) { return nil, typeError("unhashable type: 'slice'") }

// sliceValue applies the slice to a value.
func (n *sliceExpr) sliceValue(f *frame, v any) (any, error) {
	var parts [3]any
	for i, x := range []expr{n.start, n.stop, n.step} {
		if x != nil {
			var err error
			if parts[i], err = x.eval(f); err != nil {
				return nil, err
			}
		}
	}
	return f.r.sliceOf(v, parts[0], parts[1], parts[2])
}

// eval returns the arguments of a call in Python's order of evaluation: positional, *args, keywords, **kwargs.
func (a *arguments) eval(f *frame) (Args, error) {
	var out Args
	// Constants were evaluated by the parser.
	if a.fixed != nil {
		// Clipped, so that an append copies it.
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
		// *args takes any iterable, of any length.
		more, err := Collect(v)
		if err != nil {
			if e := asError(err); e.Kind == "TypeError" {
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
	// Keywords are bound before ** is evaluated.
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
		// Python refuses a keyword that was given twice, once by name and once in the mapping.
		if _, twice := out.Get(name); twice {
			return out, typeError("got multiple values for keyword argument '%s'", name)
		}
		out.Kw = append(out.Kw, KW{name, x})
	}
	return out, nil
}

func (n *callExpr) eval(f *frame) (any, error) { return n.callWith(f, nil) }

// callWith calls the function. If caller is not nil, it is passed as the keyword argument of that name.
func (n *callExpr) callWith(f *frame, caller *Macro) (any, error) {
	// obj.method(…): the object is evaluated once, before the arguments.
	if a, ok := n.fn.(*attrExpr); ok {
		obj, err := a.x.eval(f)
		if err != nil {
			return nil, err
		}
		if isBuiltin(obj) && !strings.HasPrefix(a.name, "_") { // calls the method at once, without an object for the bound method
			if hasMethod(obj, a.name) {
				args, err := n.arguments.eval(f)
				if err != nil {
					return nil, err
				}
				v, _, err := f.r.callMethod(obj, a.name, args)
				return f.r.countMade(v, err)
			}
		}
		fn, err := f.r.GetAttr(obj, a.name)
		if err != nil {
			return nil, err
		}
		return n.callValue(f, fn, caller)
	}
	fn, err := n.fn.eval(f)
	if err != nil {
		return nil, err
	}
	return n.callValue(f, fn, caller)
}

// callValue evaluates the arguments and calls fn. The frame is noted for functions that look at the caller's names.
func (n *callExpr) callValue(f *frame, fn any, caller *Macro) (any, error) {
	args, err := n.arguments.eval(f)
	if err != nil {
		return nil, err
	}
	// Jinja passes the body of a call block as this keyword.
	if caller != nil {
		args.Kw = append(args.Kw, KW{"caller", caller})
	}
	f.r.frame = f
	return f.r.countMade(f.r.Call(fn, args))
}

// Call calls a value with arguments. It fails with TypeError for a value that is not callable, and with
// SecurityError for an unsafe function.
func (r *Run) Call(fn any, a Args) (any, error) {
	switch c := fn.(type) {
	// The order is that of frequency: most calls in Salt's templates are of salt['…'].
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
	return n.applyFilter(f, v)
}

// applyFilter runs one filter on a value.
func (n *filterExpr) applyFilter(f *frame, v any) (any, error) {
	if n.fn == nil {
		return nil, raise("TemplateRuntimeError", "No filter named %s found.", pyobj.Repr(n.name))
	}
	args, err := n.arguments.eval(f)
	if err != nil {
		return nil, err
	}
	f.r.frame = f
	// The value counts as the first argument in Python's errors about the number of arguments.
	args.Before = 1
	return f.r.countMade(n.fn(f.r, v, args))
}

// applyChain runs the filters of a block tag on a value, the innermost first. The first one has no expression
// before it.
func (n *filterExpr) applyChain(f *frame, v any) (any, error) {
	if first, ok := n.x.(*filterExpr); ok {
		var err error
		if v, err = first.applyChain(f, v); err != nil {
			return nil, err
		}
	}
	return n.applyFilter(f, v)
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
	return f.r.countMade(n.fn(f.r, v, args))
}

func (n *nsRefExpr) eval(f *frame) (any, error) {
	v, err := n.ns.eval(f)
	if err != nil {
		return nil, err
	}
	return f.r.GetAttr(v, n.attr)
}

// macroBody is the value of the body of a load tag: the body runs like a macro without arguments.
type macroBody struct {
	pos
	code *macroCode
}

func (n *macroBody) eval(f *frame) (any, error) {
	return (&Macro{code: n.code, frame: f, name: n.code.name}).Call(f.r, Args{})
}
