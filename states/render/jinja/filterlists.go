package jinja

import (
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// filterBatch implements Jinja's batch: rows of linecount items, the last one filled up.
func filterBatch(_ *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_batch", []string{"linecount", "fill_with"}, nil)
	if err != nil {
		return nil, err
	}
	items, err := Collect(v)
	if err != nil {
		return nil, err
	}
	// A count that is not an int never equals a length, so there is one row.
	n, isInt := toInteger(args[0])
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
			// A huge linecount would fill the last row without end.
			if row = append(row, args[1]); len(row) > maxItems {
				return nil, TooLong()
			}
		}
		out = append(out, &pyobj.List{Items: row})
	}
	return NewIter("generator", out), nil
}

// filterDictsort implements Jinja's dictsort. Names are compared without regard to case by default.
func filterDictsort(r *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_dictsort", []string{"case_sensitive", "by", "reverse"}, false, "key", false)
	if err != nil {
		return nil, err
	}
	// Any other value is refused, as in Jinja.
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
	pairs, err := r.itemPairs(v)
	if err != nil {
		return nil, err
	}
	// Python compares only the keys or the values, and pairs that are equal keep their order.
	out, err := sortItems(pairs, func(p any) (any, error) {
		k := p.(pyobj.Tuple)[at]
		if !cased {
			k = ignoreCase(k)
		}
		return k, nil
	}, reverse)
	return &pyobj.List{Items: out}, err
}

// itemPairs returns v.items() as a list, for filters that take any mapping.
func (r *Run) itemPairs(v any) ([]any, error) {
	switch d := v.(type) {
	case *pyobj.Dict:
		return (&view{d, "items"}).viewItems(), nil
	case *Undefined:
		return nil, d.fail()
	}
	// Any object with a method items.
	x, ok, err := r.lookupAttr(v, "items")
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

// filterFirst takes one item only, so it works on endless iterators.
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

// reversedItems implements Python's reversed(v) as a list. Sets and iterators cannot be reversed, though they can be
// collected.
func (r *Run) reversedItems(v any) ([]any, error) {
	// These have no __reversed__ and no index.
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
		if asError(err).Kind == "TypeError" {
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
	items, err := r.reversedItems(v)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return r.Undefined("No last item, sequence was empty."), nil
	}
	return items[0], nil
}

// attrGetter implements Jinja's make_attrgetter: "a.b.0" reaches into values. post is applied to the result;
// byDefault replaces an undefined part.
func (r *Run) attrGetter(attribute any, post func(any) any, byDefault any) func(v any) (any, error) {
	var parts []any
	// A path is split once, not for each item.
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

// digitPart returns an all-digit part of a path as an integer, since "0" means an index.
func digitPart(p string) any {
	if p != "" && strings.Trim(p, "0123456789") == "" {
		if n, err := strconv.ParseInt(p, 10, 64); err == nil {
			return n
		}
	}
	return p
}

// filterGroupby implements Jinja's groupby: sorted first, so that each group occurs once.
func filterGroupby(r *Run, v any, a Args) (any, error) {
	a.Before++ // Python also counts the environment
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
	by := r.attrGetter(args[0], post, args[1])
	items, err := Collect(v)
	if err != nil {
		return nil, err
	}
	if items, err = sortItems(items, by, false); err != nil {
		return nil, err
	}
	// Groups are compared without regard to case, but have the name that the first member has.
	show := r.attrGetter(args[0], nil, args[1])
	out := &pyobj.List{}
	last := missing
	for _, x := range items {
		k, err := by(x)
		if err != nil {
			return nil, err
		}
		if last != missing {
			// Neighbours with equal keys form a group.
			same, err := valuesEqual(last, k)
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

// group2 is the named tuple that groupby yields: a tuple with the attributes grouper and list.
type group2 struct{ t pyobj.Tuple }

// These methods make it a tuple in every respect but its type name.
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
	v, err := r.lookupItem(g.t, key)
	return v, err == nil, err
}

// filterItems implements Jinja's items. It is a generator, so a value that is not a mapping fails only when the
// generator is used.
func filterItems(_ *Run, v any, _ Args) (any, error) {
	switch x := v.(type) {
	case *pyobj.Dict:
		return NewIter("generator", (&view{x, "items"}).viewItems()), nil
	case *Undefined:
		return NewIter("generator", nil), nil
	}
	return &Iter{Kind: "generator", Next: func() (any, bool, error) {
		return nil, false, typeError("Can only get item pairs from a mapping.")
	}}, nil
}

// filterMap implements Jinja's map, which is lazy: no filter runs before an item is needed.
func filterMap(r *Run, v any, a Args) (any, error) {
	// For an empty or undefined value, Jinja returns an empty generator.
	yes, err := Truth(v)
	if err != nil {
		return lazyFailure(err), nil
	}
	if !yes {
		return NewIter("generator", nil), nil
	}
	fn, err := mapFunction(r, a)
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

// lazyFailure returns a generator that raises on first use. Python's generators do not check anything before that.
//
//go:noinline
func lazyFailure(err error) *Iter {
	return &Iter{Kind: "generator", Next: func() (any, bool, error) { return nil, false, err }}
}

// mapFunction returns the function that map calls for each item: it looks up an attribute, or runs a filter by name.
func mapFunction(r *Run, a Args) (func(any) (any, error), error) {
	// Without the name of a filter, the argument attribute decides.
	if len(a.Pos) == 0 {
		attribute, ok := a.Get("attribute")
		if ok {
			byDefault, _ := a.Get("default")
			for _, kw := range a.Kw {
				if kw.Name != "attribute" && kw.Name != "default" {
					return nil, raise("FilterArgumentError", "Unexpected keyword argument %s", pyobj.Repr(kw.Name))
				}
			}
			return r.attrGetter(attribute, nil, byDefault), nil
		}
		return nil, raise("FilterArgumentError", "map requires a filter argument")
	}
	name, _ := isText(a.Pos[0])
	f := r.env.findFilter(name)
	if f == nil {
		return nil, raise("TemplateRuntimeError", "No filter named %s.", pyobj.Repr(a.Pos[0]))
	}
	rest := Args{Pos: a.Pos[1:], Kw: a.Kw, Before: 1}
	return func(v any) (any, error) { return f(r, v, rest) }, nil
}

// selectFilter returns select, reject, selectattr or rejectattr.
func selectFilter(want, byAttr bool) Filter {
	return func(r *Run, v any, a Args) (any, error) {
		yes, err := Truth(v)
		// Errors are raised when the generator is used.
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
			get = r.attrGetter(a.Pos[0], nil, nil)
			a.Pos = a.Pos[1:]
		}
		// Without a test the truth of the value decides.
		check := func(v any) (bool, error) { return Truth(v) }
		if len(a.Pos) > 0 {
			// The test is looked up once.
			name, _ := isText(a.Pos[0])
			t := r.env.findTest(name)
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

// minMax implements Jinja's min and max. Errors call both do_min, because max shares the signature of that function.
func minMax(r *Run, v any, a Args, most bool) (any, error) {
	a.Before++ // Python also counts the environment
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
	// min and max of an undefined value are undefined as well.
	items, err := Collect(v)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return r.Undefined("No aggregated item, sequence was empty."), nil
	}
	return Extreme(items, r.attrGetter(args[1], post, nil), most)
}

// Extreme implements Python's min or max: of equal items it returns the first. by is the key, nil for the item
// itself. It fails where Python's comparison does.
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
		better, err := orderHolds(op, k, bestKey)
		if err != nil {
			return nil, err
		}
		if better {
			best, bestKey = x, k
		}
	}
	return best, nil
}

// filterRandom implements Jinja's random. The value needs a length and an index; being iterable is not enough.
func filterRandom(r *Run, v any, _ Args) (any, error) {
	n, err := lengthOf(v)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return r.Undefined("No random item, sequence was empty."), nil
	}
	return r.lookupItem(v, int64(rand.IntN(n)))
}

// filterReverse reverses a text into a text and anything else into an iterator, whose type shows when it is
// printed.
func filterReverse(r *Run, v any, _ Args) (any, error) {
	if s, ok := isText(v); ok {
		// Text is reversed by characters.
		chars := []rune(s)
		for i, j := 0, len(chars)-1; i < j; i, j = i+1, j-1 {
			chars[i], chars[j] = chars[j], chars[i]
		}
		_, markup := v.(pyobj.Markup)
		return textLike(string(chars), markup), nil
	}
	// The names of CPython's iterator types.
	kind := "list_reverseiterator"
	switch v.(type) {
	case pyobj.Tuple:
		kind = "reversed"
	case *pyobj.Dict:
		kind = "dict_reversekeyiterator"
	case *Range:
		kind = "range_iterator"
	}
	items, err := r.reversedItems(v)
	if err == nil {
		return NewIter(kind, items), nil
	}
	if !isKind(err, "TypeError") {
		return nil, err
	}
	// The value is iterable but not reversible, so Jinja reverses a copy.
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

// filterSlice implements Jinja's slice: it returns the given number of columns, the longer ones first.
func filterSlice(_ *Run, v any, a Args) (any, error) {
	a.Before++ // Python also counts the environment
	args, err := a.Bind("sync_do_slice", []string{"slices", "fill_with"}, nil)
	if err != nil {
		return nil, err
	}
	items, err := Collect(v)
	if err != nil {
		return nil, err
	}
	n, err := toIndex(args[0])
	if err != nil {
		return nil, err
	}
	// In Jinja the generator raises this error, so it is lazy here too.
	if n == 0 {
		return lazyFailure(raise("ZeroDivisionError", "integer division or modulo by zero")), nil
	}
	if n > maxRange {
		return nil, TooLong()
	}
	// The first extra columns get one item more.
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

// filterSort implements Jinja's sort. Several attributes, separated by commas, are compared one after the other.
func filterSort(r *Run, v any, a Args) (any, error) {
	a.Before++ // Python also counts the environment
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
	// Each part of the attribute is a key of its own.
	var by []func(any) (any, error)
	if s, ok := isText(args[2]); ok {
		for p := range strings.SplitSeq(s, ",") {
			by = append(by, r.attrGetter(p, post, nil))
		}
	} else {
		by = append(by, r.attrGetter(args[2], post, nil))
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

// filterUnique implements Jinja's unique: it keeps the first of equal items. The items must be hashable.
func filterUnique(r *Run, v any, a Args) (any, error) {
	a.Before++ // Python also counts the environment
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
	by := r.attrGetter(args[1], post, nil)
	items, err := Collect(v)
	if err != nil {
		return lazyFailure(err), nil
	}
	seen := &pyobj.Set{}
	var out []any
	// The keys may be of any hashable type, as in Python's set.
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
