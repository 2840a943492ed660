package jinja

import (
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/pyobj"
)

func filterBatch(_ *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_batch", []string{"linecount", "fill_with"}, nil)
	if err != nil {
		return nil, err
	}
	items, err := Collect(v)
	if err != nil {
		return nil, err
	}
	n, isInt := integer(args[0])
	var out []any
	row := []any{}
	for _, x := range items {
		if isInt && len(row) == int(n) {
			out = append(out, &pyobj.List{Items: row})
			row = []any{}
		}
		row = append(row, x)
	}
	if len(row) > 0 {
		for args[1] != nil && isInt && len(row) < int(n) {
			if row = append(row, args[1]); len(row) > maxItems {
				return nil, TooLong()
			}
		}
		out = append(out, &pyobj.List{Items: row})
	}
	return NewIter("generator", out), nil
}

func filterDictsort(r *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_dictsort", []string{"case_sensitive", "by", "reverse"}, false, "key", false)
	if err != nil {
		return nil, err
	}
	at := 0
	switch args[1] {
	case "key":
	case "value":
		at = 1
	default:
		return nil, raise("FilterArgumentError", "You can only sort by either \"key\" or \"value\"")
	}
	cased, err := Truth(args[0])
	if err != nil {
		return nil, err
	}
	reverse, err := Truth(args[2])
	if err != nil {
		return nil, err
	}
	pairs, err := r.pairs(v)
	if err != nil {
		return nil, err
	}
	out, err := sortItems(pairs, func(p any) (any, error) {
		k := p.(pyobj.Tuple)[at]
		if !cased {
			k = ignoreCase(k)
		}
		return k, nil
	}, reverse)
	return &pyobj.List{Items: out}, err
}

// pairs calls v.items().
func (r *Run) pairs(v any) ([]any, error) {
	switch d := v.(type) {
	case *pyobj.Dict:
		return (&view{d, "items"}).items(), nil
	case *Undefined:
		return nil, d.fail()
	}
	x, ok, err := r.attribute(v, "items")
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, attributeError(v, "items")
	}
	v, err = r.Call(x, Args{})
	if err != nil {
		return nil, err
	}
	return Collect(v)
}

func filterFirst(r *Run, v any, _ Args) (any, error) {
	next, err := Iterate(v)
	if err != nil {
		return nil, err
	}
	x, ok, err := next()
	if err == nil && !ok {
		return r.Undefined("No first item, sequence was empty."), nil
	}
	return x, err
}

// reversed is Python's reversed(v).
func (r *Run) reversed(v any) ([]any, error) {
	switch x := v.(type) {
	case *Undefined:
		if x.kind == Strict {
			return nil, x.fail()
		}
	case *pyobj.Set, *Iter:
		return nil, typeError("'%s' object is not reversible", pyobj.TypeName(v))
	}
	items, err := Collect(v)
	if err != nil {
		if as(err).Kind == "TypeError" {
			return nil, typeError("'%s' object is not reversible", pyobj.TypeName(v))
		}
		return nil, err
	}
	for i, j := 0, len(items)-1; i < j; i, j = i+1, j-1 {
		items[i], items[j] = items[j], items[i]
	}
	return items, nil
}

func filterLast(r *Run, v any, _ Args) (any, error) {
	items, err := r.reversed(v)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return r.Undefined("No last item, sequence was empty."), nil
	}
	return items[0], nil
}

// getter is make_attrgetter: "a.b.0" reaches into values.
func (r *Run) getter(attribute any, post func(any) any, byDefault any) func(v any) (any, error) {
	var parts []any
	if s, ok := isText(attribute); ok {
		for p := range strings.SplitSeq(s, ".") {
			parts = append(parts, digitPart(p))
		}
	} else if attribute != nil {
		parts = []any{attribute}
	}
	return func(v any) (any, error) {
		for _, p := range parts {
			x, err := r.GetItem(v, p)
			if err != nil {
				return nil, err
			}
			if _, undef := x.(*Undefined); undef && byDefault != nil {
				x = byDefault
			}
			v = x
		}
		if post != nil {
			v = post(v)
		}
		return v, nil
	}
}

func digitPart(p string) any {
	if p != "" && strings.Trim(p, "0123456789") == "" {
		if n, err := strconv.ParseInt(p, 10, 64); err == nil {
			return n
		}
	}
	return p
}

func filterGroupby(r *Run, v any, a Args) (any, error) {
	a.Before++ // the environment
	args, err := a.Bind("sync_do_groupby", []string{"attribute", "default", "case_sensitive"}, nil, false)
	if err != nil {
		return nil, err
	}
	cased, err := Truth(args[2])
	if err != nil {
		return nil, err
	}
	post := ignoreCase
	if cased {
		post = nil
	}
	by := r.getter(args[0], post, args[1])
	items, err := Collect(v)
	if err != nil {
		return nil, err
	}
	if items, err = sortItems(items, by, false); err != nil {
		return nil, err
	}
	show := r.getter(args[0], nil, args[1])
	out := &pyobj.List{}
	last := missing
	for _, x := range items {
		k, err := by(x)
		if err != nil {
			return nil, err
		}
		if last != missing {
			same, err := equals(last, k)
			if err != nil {
				return nil, err
			}
			if same {
				g := out.Items[len(out.Items)-1].(*group2)
				l := g.t[1].(*pyobj.List)
				l.Items = append(l.Items, x)
				continue
			}
		}
		last = k
		name, err := show(x)
		if err != nil {
			return nil, err
		}
		if cased {
			name = k
		}
		out.Items = append(out.Items, &group2{pyobj.Tuple{name, pyobj.NewList(x)}})
	}
	return out, nil
}

// group2 is the named tuple of groupby.
type group2 struct{ t pyobj.Tuple }

func (*group2) TypeName() string                     { return "_GroupTuple" }
func (g *group2) Repr() string                       { return pyobj.Repr(g.t) }
func (g *group2) Plain() any                         { return pyobj.Plain(g.t) }
func (g *group2) Len() int                           { return len(g.t) }
func (g *group2) Iterate() func() (any, bool, error) { return overItems(func() []any { return g.t }) }

func (g *group2) GetAttr(_ *Run, name string) (any, bool, error) {
	switch name {
	case "grouper":
		return g.t[0], true, nil
	case "list":
		return g.t[1], true, nil
	}
	return nil, false, nil
}

func (g *group2) GetItem(r *Run, key any) (any, bool, error) {
	v, err := r.subscript(g.t, key)
	return v, err == nil, err
}

func filterItems(_ *Run, v any, _ Args) (any, error) {
	switch x := v.(type) {
	case *pyobj.Dict:
		return NewIter("generator", (&view{x, "items"}).items()), nil
	case *Undefined:
		return NewIter("generator", nil), nil
	}
	return &Iter{Kind: "generator", Next: func() (any, bool, error) {
		return nil, false, typeError("Can only get item pairs from a mapping.")
	}}, nil
}

func filterMap(r *Run, v any, a Args) (any, error) {
	yes, err := Truth(v)
	if err != nil {
		return lazyFailure(err), nil
	}
	if !yes {
		return NewIter("generator", nil), nil
	}
	fn, err := mapper(r, a)
	if err != nil {
		return lazyFailure(err), nil
	}
	next, err := Iterate(v)
	if err != nil {
		return lazyFailure(err), nil
	}
	return &Iter{Kind: "generator", Next: func() (any, bool, error) {
		x, ok, err := next()
		if err != nil || !ok {
			return nil, false, err
		}
		x, err = fn(x)
		return x, err == nil, err
	}}, nil
}

// lazyFailure is a generator that raises when it is used.
func lazyFailure(err error) *Iter {
	return &Iter{Kind: "generator", Next: func() (any, bool, error) { return nil, false, err }}
}

func mapper(r *Run, a Args) (func(any) (any, error), error) {
	if len(a.Pos) == 0 {
		attribute, ok := a.Get("attribute")
		if ok {
			byDefault, _ := a.Get("default")
			for _, kw := range a.Kw {
				if kw.Name != "attribute" && kw.Name != "default" {
					return nil, raise("FilterArgumentError", "Unexpected keyword argument %s", pyobj.Repr(kw.Name))
				}
			}
			return r.getter(attribute, nil, byDefault), nil
		}
		return nil, raise("FilterArgumentError", "map requires a filter argument")
	}
	name, _ := isText(a.Pos[0])
	f := r.env.filter(name)
	if f == nil {
		return nil, raise("TemplateRuntimeError", "No filter named %s.", pyobj.Repr(a.Pos[0]))
	}
	rest := Args{Pos: a.Pos[1:], Kw: a.Kw, Before: 1}
	return func(v any) (any, error) { return f(r, v, rest) }, nil
}

// selector is select, reject, selectattr and rejectattr.
func selector(want, byAttr bool) Filter {
	return func(r *Run, v any, a Args) (any, error) {
		yes, err := Truth(v)
		if err != nil {
			return lazyFailure(err), nil
		}
		if !yes {
			return NewIter("generator", nil), nil
		}
		get := func(v any) (any, error) { return v, nil }
		if byAttr {
			if len(a.Pos) == 0 {
				return lazyFailure(raise("FilterArgumentError", "Missing parameter for attribute name")), nil
			}
			get = r.getter(a.Pos[0], nil, nil)
			a.Pos = a.Pos[1:]
		}
		check := func(v any) (bool, error) { return Truth(v) }
		if len(a.Pos) > 0 {
			name, _ := isText(a.Pos[0])
			t := r.env.test(name)
			if t == nil {
				return lazyFailure(raise("TemplateRuntimeError", "No test named %s.", pyobj.Repr(a.Pos[0]))), nil
			}
			rest := Args{Pos: a.Pos[1:], Kw: a.Kw, Before: 1}
			check = func(v any) (bool, error) { return t(r, v, rest) }
		}
		next, err := Iterate(v)
		if err != nil {
			return lazyFailure(err), nil
		}
		return &Iter{Kind: "generator", Next: func() (any, bool, error) {
			for {
				x, ok, err := next()
				if err != nil || !ok {
					return nil, false, err
				}
				part, err := get(x)
				if err != nil {
					return nil, false, err
				}
				yes, err := check(part)
				if err != nil {
					return nil, false, err
				}
				if yes == want {
					return x, true, nil
				}
			}
		}}, nil
	}
}

func minMax(r *Run, v any, a Args, most bool) (any, error) {
	a.Before++ // the environment
	args, err := a.Bind("do_min", []string{"case_sensitive", "attribute"}, false, nil)
	if err != nil {
		return nil, err
	}
	cased, err := Truth(args[0])
	if err != nil {
		return nil, err
	}
	post := ignoreCase
	if cased {
		post = nil
	}
	items, err := Collect(v)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return r.Undefined("No aggregated item, sequence was empty."), nil
	}
	return Extreme(items, r.getter(args[1], post, nil), most)
}

// Extreme is Python's min and max.
func Extreme(items []any, by func(any) (any, error), most bool) (any, error) {
	var best, bestKey any
	for i, x := range items {
		k := x
		if by != nil {
			var err error
			if k, err = by(x); err != nil {
				return nil, err
			}
		}
		if i == 0 {
			best, bestKey = x, k
			continue
		}
		op := tLt
		if most {
			op = tGt
		}
		better, err := order(op, k, bestKey)
		if err != nil {
			return nil, err
		}
		if better {
			best, bestKey = x, k
		}
	}
	return best, nil
}

func filterRandom(r *Run, v any, _ Args) (any, error) {
	n, err := length(v)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return r.Undefined("No random item, sequence was empty."), nil
	}
	return r.subscript(v, int64(rand.IntN(n)))
}

func filterReverse(r *Run, v any, _ Args) (any, error) {
	if s, ok := isText(v); ok {
		chars := []rune(s)
		for i, j := 0, len(chars)-1; i < j; i, j = i+1, j-1 {
			chars[i], chars[j] = chars[j], chars[i]
		}
		_, markup := v.(pyobj.Markup)
		return textLike(string(chars), markup), nil
	}
	kind := "list_reverseiterator"
	switch v.(type) {
	case pyobj.Tuple:
		kind = "reversed"
	case *pyobj.Dict:
		kind = "dict_reversekeyiterator"
	case *Range:
		kind = "range_iterator"
	}
	items, err := r.reversed(v)
	if err == nil {
		return NewIter(kind, items), nil
	}
	if !isKind(err, "TypeError") {
		return nil, err
	}
	if items, err = Collect(v); err != nil {
		if isKind(err, "TypeError") {
			return nil, raise("FilterArgumentError", "argument must be iterable")
		}
		return nil, err
	}
	for i, j := 0, len(items)-1; i < j; i, j = i+1, j-1 {
		items[i], items[j] = items[j], items[i]
	}
	return &pyobj.List{Items: items}, nil
}

func filterSlice(_ *Run, v any, a Args) (any, error) {
	a.Before++ // the environment
	args, err := a.Bind("sync_do_slice", []string{"slices", "fill_with"}, nil)
	if err != nil {
		return nil, err
	}
	items, err := Collect(v)
	if err != nil {
		return nil, err
	}
	n, err := index(args[0])
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return lazyFailure(raise("ZeroDivisionError", "integer division or modulo by zero")), nil
	}
	if n > maxRange {
		return nil, TooLong()
	}
	var out []any
	per, extra, offset := 0, 0, 0
	if n > 0 {
		per, extra = len(items)/n, len(items)%n
	}
	for i := range max(n, 0) {
		start := offset + i*per
		if i < extra {
			offset++
		}
		end := offset + (i+1)*per
		row := append([]any{}, items[start:end]...)
		if args[1] != nil && i >= extra {
			row = append(row, args[1])
		}
		out = append(out, &pyobj.List{Items: row})
	}
	return NewIter("generator", out), nil
}

func filterSort(r *Run, v any, a Args) (any, error) {
	a.Before++ // the environment
	args, err := a.Bind("do_sort", []string{"reverse", "case_sensitive", "attribute"}, false, false, nil)
	if err != nil {
		return nil, err
	}
	reverse, err := Truth(args[0])
	if err != nil {
		return nil, err
	}
	cased, err := Truth(args[1])
	if err != nil {
		return nil, err
	}
	post := ignoreCase
	if cased {
		post = nil
	}
	var by []func(any) (any, error)
	if s, ok := isText(args[2]); ok {
		for p := range strings.SplitSeq(s, ",") {
			by = append(by, r.getter(p, post, nil))
		}
	} else {
		by = append(by, r.getter(args[2], post, nil))
	}
	items, err := Collect(v)
	if err != nil {
		return nil, err
	}
	out, err := sortItems(items, func(v any) (any, error) {
		keys := make([]any, len(by))
		for i, f := range by {
			var err error
			if keys[i], err = f(v); err != nil {
				return nil, err
			}
		}
		return &pyobj.List{Items: keys}, nil
	}, reverse)
	return &pyobj.List{Items: out}, err
}

func filterUnique(r *Run, v any, a Args) (any, error) {
	a.Before++ // the environment
	args, err := a.Bind("sync_do_unique", []string{"case_sensitive", "attribute"}, false, nil)
	if err != nil {
		return nil, err
	}
	cased, err := Truth(args[0])
	if err != nil {
		return nil, err
	}
	post := ignoreCase
	if cased {
		post = nil
	}
	by := r.getter(args[1], post, nil)
	items, err := Collect(v)
	if err != nil {
		return lazyFailure(err), nil
	}
	seen := &pyobj.Set{}
	var out []any
	for _, x := range items {
		k, err := by(x)
		if err != nil {
			return lazyFailure(err), nil
		}
		if seen.Has(k) {
			continue
		}
		if err := seen.Add(k); err != nil {
			return lazyFailure(err), nil
		}
		out = append(out, x)
	}
	return NewIter("generator", out), nil
}
